/* Kills a shell with everything that it started: it is asked first, and killed after a second. */
#include <minder.h>
#include <stdio.h>

int main(void) {
    minder_command *command = minder_command_new("sh");
    minder_command_args(command, (const char *const[]){ "-c", "sleep 600 & sleep 600; true", NULL });
    minder_child *child = NULL;
    if (minder_command_spawn(command, &child) != MINDER_OK) {
        fprintf(stderr, "kill_tree: %s\n", minder_last_error());
        return 1;
    }
    minder_command_free(command);
    if (minder_child_wait(child, 10 * MINDER_MILLISECOND, NULL) == MINDER_TIMED_OUT) puts("it runs");

    minder_exit end = MINDER_INIT(minder_exit);
    if (minder_child_kill_and_wait(child, MINDER_GRACEFUL(MINDER_SECOND), &end) != MINDER_OK) {
        fprintf(stderr, "kill_tree: %s\n", minder_last_error());
        return 1;
    }
    printf("signal %d\n", end.signal);
    minder_child_free(child);
    return 0;
}
