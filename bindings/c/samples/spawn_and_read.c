/* Runs one command for at most ten seconds, and prints what it wrote. */
#include <minder.h>
#include <stdio.h>

int main(void) {
    minder_command *command = minder_command_new("sh");
    minder_command_args(command, (const char *const[]){ "-c", "echo text; echo message >&2; exit 3", NULL });

    minder_output_options options = MINDER_INIT(minder_output_options);
    options.merge_stderr = 1;
    options.timeout = 10 * MINDER_SECOND;

    minder_output *output = NULL;
    if (minder_command_output(command, &options, &output) != MINDER_OK) {
        fprintf(stderr, "spawn_and_read: %s\n", minder_last_error());
        return 1;
    }
    minder_exit end = MINDER_INIT(minder_exit);
    minder_output_exit(output, &end);
    size_t len = 0;
    const uint8_t *bytes = minder_output_bytes(output, MINDER_STDOUT, &len);
    fwrite(bytes, 1, len, stdout);
    printf("exit code %d\n", end.code);

    minder_output_free(output);
    minder_command_free(command);
    return 0;
}
