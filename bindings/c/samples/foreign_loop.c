/* A loop of the program itself, around poll(2): it watches one descriptor for all children. */
#include <minder.h>
#include <poll.h>
#include <stdio.h>

int main(void) {
    minder_set *set = NULL;
    if (minder_set_new(NULL, &set) != MINDER_OK) return 1;
    minder_command *command = minder_command_new("cat");
    minder_command_stdio(command, MINDER_STDIN, MINDER_PIPE);
    minder_command_stdio(command, MINDER_STDOUT, MINDER_PIPE);
    minder_child_id child = 0;
    if (minder_set_spawn(set, command, NULL, &child) != MINDER_OK) {
        fprintf(stderr, "foreign_loop: %s\n", minder_last_error());
        return 1;
    }
    minder_command_free(command);
    minder_set_write(set, child, (const uint8_t *)"text\n", 5, NULL);
    minder_set_close_stdin(set, child);

    minder_events *events = minder_events_new();
    struct pollfd watched = { .fd = minder_set_fd(set), .events = POLLIN };
    while (minder_set_children(set) > 0) {
        poll(&watched, 1, -1); /* and whatever else the program watches */
        minder_set_take(set, events, SIZE_MAX, NULL);
        const minder_event *event;
        while ((event = minder_events_next(events)) != NULL) {
            switch (event->kind) {
            case MINDER_EVENT_OUTPUT: fwrite(event->bytes, 1, event->len, stdout); break;
            case MINDER_EVENT_EXITED: printf("exit code %d\n", event->exit->code); break;
            default: break; /* a later version may add kinds */
            }
        }
    }
    minder_events_free(events);
    minder_set_stop(set, 0);
    minder_set_free(set);
    return 0;
}
