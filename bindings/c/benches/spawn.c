/* Starts children, some at once, and hears each to its end: the twin of spawn.rs. `cargo bench-lab c` compares them.
 *
 * spawn PROGRAM CHILDREN AT-ONCE */
#include <minder.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what) {
    fprintf(stderr, "spawn: %s: %s\n", what, minder_last_error());
    return 1;
}

int main(int count, char **words) {
    if (count != 4) return 2;
    const unsigned long children = strtoul(words[2], NULL, 10);
    const unsigned long at_once = strtoul(words[3], NULL, 10);
    minder_set *set = NULL;
    if (minder_set_new(NULL, &set) != MINDER_OK) return fail("set");
    minder_command *command = minder_command_new(words[1]);
    minder_command_stdio(command, MINDER_STDIN, MINDER_NULL);
    minder_command_stdio(command, MINDER_STDOUT, MINDER_PIPE);
    minder_command_stdio(command, MINDER_STDERR, MINDER_NULL);

    minder_events *events = minder_events_new();
    unsigned long started = 0, done = 0, bytes = 0;
    while (done < children) {
        while (started < children && started - done < at_once) {
            if (minder_set_spawn(set, command, NULL, NULL) != MINDER_OK) return fail("start");
            started++;
        }
        if (minder_set_wait(set, MINDER_FOREVER) != MINDER_OK) return fail("wait");
        if (minder_set_take(set, events, SIZE_MAX, NULL) != MINDER_OK) return fail("take");
        const minder_event *event;
        while ((event = minder_events_next(events)) != NULL) {
            if (event->kind == MINDER_EVENT_OUTPUT) bytes += event->len;
            if (event->kind == MINDER_EVENT_DONE) done++;
        }
    }
    printf("%lu children, %lu bytes\n", done, bytes);
    minder_events_free(events);
    minder_command_free(command);
    minder_set_stop(set, 0);
    minder_set_free(set);
    return 0;
}
