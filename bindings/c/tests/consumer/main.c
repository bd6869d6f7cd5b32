/* Starts one child by the installed library. */
#include <minder.h>
#include <stdio.h>

int main(void) {
    if (minder_check_version(MINDER_VERSION) != MINDER_OK) return 1;
    minder_command *command = minder_command_new("true");
    minder_child *child = NULL;
    minder_exit end = MINDER_INIT(minder_exit);
    const minder_status status = minder_command_spawn(command, &child);
    if (status == MINDER_OK) minder_child_wait(child, MINDER_FOREVER, &end);
    printf("minder %s: %s, code %d\n", minder_version_text(), minder_status_name(status), end.code);
    minder_child_free(child);
    minder_command_free(command);
    return status != MINDER_OK || end.code != 0;
}
