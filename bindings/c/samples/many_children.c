/* Runs a hundred children at once on one thread, and counts what each writes in its own object. */
#include <minder.h>
#include <stdio.h>

/* What the program knows of one child. */
struct job {
    size_t bytes;
    int code;
};

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
    struct job jobs[100] = { { 0, 0 } };
    minder_spawn_options options = MINDER_INIT(minder_spawn_options);
    for (int i = 0; i < 100; i++) {
        options.user = &jobs[i];
        if (minder_set_spawn(set, command, &options, NULL) != MINDER_OK) return fail("spawn");
    }
    minder_command_free(command);

    minder_events *events = minder_events_new();
    while (minder_set_children(set) > 0) {
        if (minder_set_wait(set, MINDER_FOREVER) != MINDER_OK) return fail("wait");
        minder_set_take(set, events, SIZE_MAX, NULL);
        const minder_event *event;
        while ((event = minder_events_next(events)) != NULL) {
            struct job *job = event->user;
            if (event->kind == MINDER_EVENT_OUTPUT) job->bytes += event->len;
            if (event->kind == MINDER_EVENT_DONE) job->code = event->exit->code;
        }
    }
    size_t bytes = 0, done = 0, failed = 0;
    for (; done < 100; done++) {
        bytes += jobs[done].bytes;
        failed += jobs[done].code != 0;
    }
    printf("%zu children, %zu failed, %zu bytes\n", done, failed, bytes);

    minder_events_free(events);
    minder_set_stop(set, 0);
    minder_set_free(set);
    return 0;
}
