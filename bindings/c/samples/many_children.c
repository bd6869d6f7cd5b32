/* Runs a hundred children at once on one thread, and counts what they write. */
#include <minder.h>
#include <stdio.h>

static int fail(const char *what) {
    fprintf(stderr, "many_children: %s: %s\n", what, minder_last_error());
    return 1;
}

int main(void) {
    minder_set *set = NULL;
    if (minder_set_new(NULL, &set) != MINDER_OK) return fail("set");

    minder_command *command = minder_command_new("echo");
    minder_command_arg(command, "text");
    minder_command_stdio(command, MINDER_STDIN, MINDER_NULL);
    minder_command_stdio(command, MINDER_STDOUT, MINDER_PIPE);
    for (int i = 0; i < 100; i++)
        if (minder_set_spawn(set, command, NULL, NULL) != MINDER_OK) return fail("spawn");
    minder_command_free(command);

    size_t bytes = 0, done = 0, failed = 0;
    minder_events *events = minder_events_new();
    while (minder_set_children(set) > 0) {
        if (minder_set_wait(set, MINDER_FOREVER) != MINDER_OK) return fail("wait");
        minder_set_take(set, events, SIZE_MAX, NULL);
        const minder_event *event;
        while ((event = minder_events_next(events)) != NULL) {
            if (event->kind == MINDER_EVENT_OUTPUT) bytes += event->len;
            if (event->kind == MINDER_EVENT_DONE) {
                done++;
                failed += event->exit->code != 0;
            }
        }
    }
    printf("%zu children, %zu failed, %zu bytes\n", done, failed, bytes);

    minder_events_free(events);
    minder_set_stop(set, 0);
    minder_set_free(set);
    return 0;
}
