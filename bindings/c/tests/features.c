/* What each option does: streams, environment, groups, terminals, limits, restarts, pollers. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs a command, and checks what it wrote. */
static void check_output(minder_command *command, const char *expected) {
    minder_output *output = NULL;
    OK(minder_command_output(command, NULL, &output));
    size_t len = 0;
    const char *text = (const char *)minder_output_bytes(output, MINDER_STDOUT, &len);
    if (len != strlen(expected) || strcmp(text, expected) != 0) {
        fprintf(stderr, "expected `%s`, got `%s`\n", expected, text);
        exit(1);
    }
    minder_output_free(output);
    minder_command_free(command);
}

static void environment_and_directory(void) {
    minder_command *command = shell("echo \"$A-$B-$HOME\"; pwd");
    OK(minder_command_env(command, "HOME", "x"));
    OK(minder_command_env_clear(command));
    OK(minder_command_env(command, "A", "one"));
    OK(minder_command_env(command, "B", "two"));
    OK(minder_command_env(command, "B", NULL));
    OK(minder_command_current_dir(command, "/"));
    OK(minder_command_nice(command, 0));
    OK(minder_command_die_with_parent(command, true));
    check_output(command, "one--\n/\n");
}

static void timer_slack(void) {
    minder_command *command = minder_command_new("cat");
    OK(minder_command_arg(command, "/proc/self/timerslack_ns"));
    OK(minder_command_timer_slack(command, 5000000));
    check_output(command, "5000000\n");
}

static void streams(void) {
    char path[] = "/tmp/minder-c-XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    /* Twice into a file, once by a descriptor. */
    for (int i = 0; i < 3; i++) {
        minder_command *command = shell("echo $0; echo error >&2");
        if (i < 2) OK(minder_command_stdio_file(command, MINDER_STDOUT, path, i == 1));
        else OK(minder_command_stdio_fd(command, MINDER_STDOUT, fd));
        OK(minder_command_stdio(command, MINDER_STDERR, MINDER_SAME_AS_STDOUT));
        OK(minder_command_stdio(command, MINDER_STDIN, MINDER_NULL));
        minder_child *child = NULL;
        if (i == 2) lseek(fd, 0, SEEK_END);
        OK(minder_command_spawn(command, &child));
        CHECK(minder_child_pid(child) > 1);
        OK(minder_child_wait(child, MINDER_FOREVER, NULL));
        minder_child_free(child);
        minder_command_free(command);
    }
    minder_command *command = minder_command_new("cat");
    OK(minder_command_stdio_file(command, MINDER_STDIN, path, false));
    check_output(command, "sh\nerror\nsh\nerror\nsh\nerror\n");
    close(fd);
    unlink(path);
    command = minder_command_new("cat");
    CHECK_STATUS(minder_command_stdio_file(command, MINDER_STDIN, path, false), MINDER_NOT_FOUND);
    CHECK(strstr(minder_last_error(), path) != NULL && minder_last_os_error() == ENOENT);
    minder_command_free(command);
}

static void passed_descriptor(void) {
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    char line[64];
    snprintf(line, sizeof line, "echo passed >&%d", ends[1]);
    minder_command *command = minder_command_new("bash");
    OK(minder_command_arg(command, "-c"));
    OK(minder_command_arg(command, line));
    OK(minder_command_pass_fd(command, ends[1]));
    check_output(command, "");
    char text[16] = "";
    CHECK(read(ends[0], text, sizeof text) == 7 && strcmp(text, "passed\n") == 0);
    CHECK(read(ends[0], text, sizeof text) == 0); /* the command has closed it */
    close(ends[0]);
}

static void child_pipes(void) {
    minder_command *command = minder_command_new("cat");
    OK(minder_command_stdio(command, MINDER_STDIN, MINDER_PIPE));
    OK(minder_command_stdio(command, MINDER_STDOUT, MINDER_PIPE));
    minder_child *child = NULL;
    OK(minder_command_spawn(command, &child));
    size_t count = 0;
    OK(minder_child_write(child, (const uint8_t *)"text", 4, &count));
    CHECK(count == 4 && minder_child_fd(child, MINDER_STDOUT) != MINDER_NO_FD);
    uint8_t buffer[16];
    OK(minder_child_read(child, MINDER_STDOUT, buffer, sizeof buffer, &count));
    CHECK(count == 4 && memcmp(buffer, "text", 4) == 0);
    CHECK_STATUS(minder_child_wait(child, MINDER_MILLISECOND, NULL), MINDER_TIMED_OUT);
    OK(minder_child_close_stdin(child));
    OK(minder_child_read(child, MINDER_STDOUT, buffer, sizeof buffer, &count));
    CHECK(count == 0);
    minder_exit end = MINDER_INIT(minder_exit);
    OK(minder_child_wait(child, MINDER_FOREVER, &end));
    CHECK(end.kind == MINDER_EXIT_CODE && end.code == 0 && end.has_usage && end.max_rss > 0);
    minder_child_free(child);
    minder_command_free(command);
}

/* The signal would end this program: it has not changed what SIGPIPE does. */
static void write_to_a_child_that_is_gone(void) {
    minder_command *command = shell("exit 0");
    OK(minder_command_stdio(command, MINDER_STDIN, MINDER_PIPE));
    minder_child *child = NULL;
    OK(minder_command_spawn(command, &child));
    OK(minder_child_wait(child, 60 * MINDER_SECOND, NULL));
    size_t count = 7;
    CHECK(minder_child_write(child, (const uint8_t *)"text", 4, &count) < 0);
    CHECK(count == 0 && minder_last_os_error() == EPIPE);
    minder_child_free(child);
    minder_command_free(command);
}

static void groups_and_terminals(void) {
    static const int32_t GROUPS[] = { MINDER_GROUP_NEW, MINDER_GROUP_INHERIT, MINDER_GROUP_SESSION };
    for (int i = 0; i < 3; i++) {
        minder_command *command = shell("exec sleep 600");
        OK(minder_command_group(command, GROUPS[i]));
        minder_child *child = NULL;
        OK(minder_command_spawn(command, &child));
        const pid_t pid = (pid_t)minder_child_pid(child);
        CHECK((getpgid(pid) == pid) == (GROUPS[i] != MINDER_GROUP_INHERIT));
        CHECK((getsid(pid) == pid) == (GROUPS[i] == MINDER_GROUP_SESSION));
        const minder_signal_step steps[] = { { SIGINT, 0, MINDER_SECOND }, { SIGTERM, 0, MINDER_SECOND } };
        minder_termination how = MINDER_INIT(minder_termination);
        how.step_count = 2;
        how.steps = steps;
        minder_exit end = MINDER_INIT(minder_exit);
        OK(minder_child_kill_and_wait(child, &how, &end));
        CHECK(end.kind == MINDER_EXIT_SIGNAL && end.signal == SIGINT);
        minder_child_free(child);
        minder_command_free(command);
    }
    minder_command *command = shell("stty size; read line; stty size");
    OK(minder_command_terminal(command, 40, 120));
    minder_child *child = NULL;
    OK(minder_command_spawn(command, &child));
    char text[256] = "";
    size_t len = 0;
    size_t count = 1;
    bool resized = false;
    while (count > 0) {
        OK(minder_child_read(child, MINDER_STDOUT, (uint8_t *)text + len, sizeof text - 1 - len, &count));
        len += count;
        if (!resized && strstr(text, "40 120") != NULL) {
            OK(minder_child_resize(child, 50, 132));
            OK(minder_child_write(child, (const uint8_t *)"\n", 1, NULL));
            resized = true;
        }
    }
    CHECK(strstr(text, "50 132") != NULL);
    OK(minder_child_wait(child, MINDER_FOREVER, NULL));
    minder_child_free(child);
    minder_command_free(command);
}

static void output_options(void) {
    minder_command *command = shell("cat; sleep 600");
    const uint8_t input[] = "text";
    minder_output_options options = MINDER_INIT(minder_output_options);
    options.input = input;
    options.input_len = 4;
    options.timeout = 300 * MINDER_MILLISECOND;
    options.kill = MINDER_GRACEFUL(MINDER_SECOND);
    minder_output *output = NULL;
    OK(minder_command_output(command, &options, &output));
    minder_exit end = MINDER_INIT(minder_exit);
    OK(minder_output_exit(output, &end));
    size_t len = 0;
    CHECK(memcmp(minder_output_bytes(output, MINDER_STDOUT, &len), "text", 5) == 0 && len == 4);
    CHECK(end.timed_out && end.kind == MINDER_EXIT_SIGNAL && end.signal == SIGTERM);
    minder_output_free(output);
    minder_command_free(command);
    command = shell("head -c 5000 /dev/zero");
    options = (minder_output_options)MINDER_INIT(minder_output_options);
    options.max_bytes = 100;
    CHECK_STATUS(minder_command_output(command, &options, &output), MINDER_LIMIT);
    CHECK(output == NULL);
    minder_command_free(command);
}

/* What a child of a set reported. */
struct report {
    size_t bytes, eofs, exits, restarts, writable, done;
    minder_exit end;
};

/* Takes events of the set until `count` children are done. */
static struct report take_until_done(minder_set *set, size_t count) {
    struct report report = { .end = MINDER_INIT(minder_exit) };
    minder_events *events = minder_events_new();
    while (report.done < count) {
        OK(minder_set_wait(set, 60 * MINDER_SECOND));
        OK(minder_set_take(set, events, 10000, NULL));
        const minder_event *event;
        while ((event = minder_events_next(events)) != NULL) {
            switch (event->kind) {
            case MINDER_EVENT_OUTPUT:
                CHECK(event->bytes != NULL && report.exits <= report.restarts);
                report.bytes += event->len;
                break;
            case MINDER_EVENT_EOF: report.eofs++; break;
            case MINDER_EVENT_WRITABLE: report.writable++; break;
            case MINDER_EVENT_EXITED: report.exits++; break;
            case MINDER_EVENT_RESTARTING: CHECK(event->exit != NULL); break;
            case MINDER_EVENT_RESTARTED:
                CHECK(event->pid > 1);
                report.restarts++;
                break;
            case MINDER_EVENT_DONE:
                report.done++;
                report.end = *event->exit;
                break;
            }
        }
    }
    minder_events_free(events);
    return report;
}

static minder_set *new_set(size_t max_buffered_bytes) {
    minder_set_options options = MINDER_INIT(minder_set_options);
    options.max_buffered_bytes = max_buffered_bytes;
    options.max_child_bytes = max_buffered_bytes / 2;
    options.max_children = 3;
    options.leak_timeout = 50 * MINDER_MILLISECOND;
    options.spill_dir = "/tmp";
    minder_set *set = NULL;
    OK(minder_set_new(&options, &set));
    return set;
}

static void set_keeps_its_limits(void) {
    static const int32_t POLICIES[] = { MINDER_OVERFLOW_BLOCK, MINDER_OVERFLOW_SPILL,
                                        MINDER_OVERFLOW_DROP_OLDEST };
    minder_command *command = minder_command_new("head");
    OK(minder_command_args(command, (const char *const[]){ "-c", "1000000", "/dev/zero", NULL }));
    OK(minder_command_stdio(command, MINDER_STDOUT, MINDER_PIPE));
    for (int i = 0; i < 3; i++) {
        minder_set *set = new_set(200000);
        minder_spawn_options options = MINDER_INIT(minder_spawn_options);
        options.overflow = POLICIES[i];
        options.output_mode = i == 0 ? MINDER_OUTPUT_STREAM : MINDER_OUTPUT_AT_EXIT;
        OK(minder_set_spawn(set, command, &options, NULL));
        OK(minder_set_wait(set, 60 * MINDER_SECOND));
        CHECK(minder_set_queued_bytes(set) <= 300000);
        const struct report report = take_until_done(set, 1);
        CHECK(report.bytes + report.end.dropped == 1000000 && report.eofs == 1 && report.exits == 1);
        CHECK((report.end.dropped > 0) == (POLICIES[i] == MINDER_OVERFLOW_DROP_OLDEST));
        OK(minder_set_take_error(set));
        OK(minder_set_stop(set, 0));
        minder_set_free(set);
    }
    minder_command_free(command);
}

static void set_limits_children(void) {
    minder_set *set = new_set(200000);
    minder_command *command = shell("exec sleep 600");
    minder_child_id child = 0;
    for (int i = 0; i < 3; i++) OK(minder_set_spawn(set, command, NULL, &child));
    CHECK_STATUS(minder_set_spawn(set, command, NULL, NULL), MINDER_LIMIT);
    uint32_t pid = 0;
    OK(minder_set_pid(set, child, &pid));
    OK(minder_set_suspend(set, child));
    OK(minder_set_resume(set, child));
    CHECK(kill((pid_t)pid, 0) == 0 && minder_set_children(set) == 3);
    OK(minder_set_kill(set, child, MINDER_GRACEFUL(MINDER_SECOND)));
    const struct report report = take_until_done(set, 1);
    CHECK(report.end.killed && report.end.signal == SIGTERM && !report.end.timed_out);
    CHECK_STATUS(minder_set_kill(set, child, NULL), MINDER_UNKNOWN);
    OK(minder_set_stop(set, 0));
    minder_set_free(set);
    minder_command_free(command);
}

static void set_writes_times_out_and_restarts(void) {
    minder_set *set = new_set(2000000);
    minder_command *command = minder_command_new("cat");
    OK(minder_command_stdio(command, MINDER_STDIN, MINDER_PIPE));
    OK(minder_command_stdio(command, MINDER_STDOUT, MINDER_PIPE));
    minder_child_id child = 0;
    uint32_t pid = 0, same_pid = 0;
    minder_spawn_options spawn_options = MINDER_INIT(minder_spawn_options);
    spawn_options.pid = &pid;
    OK(minder_set_spawn(set, command, &spawn_options, &child));
    OK(minder_set_pid(set, child, &same_pid));
    CHECK(pid > 0 && pid == same_pid && kill((pid_t)pid, 0) == 0);
    uint8_t *bytes = calloc(1, 1000000);
    size_t written = 0;
    OK(minder_set_write(set, child, bytes, 1000000, &written));
    CHECK(written == 256 << 10); /* the rest has no room */
    OK(minder_set_close_stdin(set, child));
    free(bytes);
    CHECK(take_until_done(set, 1).bytes == written);
    minder_command_free(command);

    command = shell("exec sleep 600");
    minder_spawn_options options = MINDER_INIT(minder_spawn_options);
    options.timeout = 100 * MINDER_MILLISECOND;
    OK(minder_set_spawn(set, command, &options, NULL));
    const struct report late = take_until_done(set, 1);
    CHECK(late.end.timed_out && late.end.killed && late.end.signal == SIGKILL);
    minder_command_free(command);

    command = shell("exit 3");
    options = (minder_spawn_options)MINDER_INIT(minder_spawn_options);
    options.restart = MINDER_RESTART_ON_FAILURE;
    options.restart_delay = MINDER_MILLISECOND;
    options.restart_max_count = 2;
    OK(minder_set_spawn(set, command, &options, NULL));
    const struct report again = take_until_done(set, 1);
    CHECK(again.restarts == 2 && again.exits == 3 && again.end.code == 3);
    minder_command_free(command);

    command = shell("stty size; exec sleep 600");
    OK(minder_command_terminal(command, 1, 1));
    options.restart = MINDER_RESTART_ALWAYS;
    OK(minder_set_spawn(set, command, &options, &child));
    OK(minder_set_resize(set, child, 50, 132));
    OK(minder_set_restart(set, child, NULL));
    OK(minder_set_stop(set, MINDER_SECOND));
    minder_set_free(set);
    minder_command_free(command);
}

/* What the host knows of one child. */
struct object {
    int runs, events, done;
};

/* Every event has the pointer of its child, after restarts, too. */
static void set_keeps_a_pointer_for_each_child(void) {
    minder_set *set = new_set(2000000);
    minder_command *command = shell("echo x; exit 3");
    OK(minder_command_stdio(command, MINDER_STDOUT, MINDER_PIPE));
    struct object objects[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
    minder_spawn_options options = MINDER_INIT(minder_spawn_options);
    options.restart = MINDER_RESTART_ON_FAILURE;
    options.restart_delay = MINDER_MILLISECOND;
    options.restart_max_count = 2;
    minder_child_id children[3];
    for (int i = 0; i < 2; i++) {
        options.user = &objects[i];
        OK(minder_set_spawn(set, command, &options, &children[i]));
        void *user = NULL;
        OK(minder_set_user(set, children[i], &user));
        CHECK(user == &objects[i]);
    }
    options.user = NULL;
    OK(minder_set_spawn(set, command, &options, &children[2]));
    minder_events *events = minder_events_new();
    while (minder_set_children(set) > 0) {
        OK(minder_set_wait(set, 60 * MINDER_SECOND));
        OK(minder_set_take(set, events, SIZE_MAX, NULL));
        const minder_event *event;
        while ((event = minder_events_next(events)) != NULL) {
            struct object *object = event->user;
            CHECK((object == NULL) == (event->child == children[2]));
            if (object == NULL) continue;
            CHECK(event->child == children[object - objects] && object->done == 0);
            object->events++;
            object->runs += event->kind == MINDER_EVENT_EXITED;
            object->done += event->kind == MINDER_EVENT_DONE;
        }
    }
    for (int i = 0; i < 2; i++) CHECK(objects[i].runs == 3 && objects[i].done == 1 && objects[i].events > 8);
    void *user = NULL;
    CHECK_STATUS(minder_set_user(set, children[0], &user), MINDER_UNKNOWN);
    CHECK_STATUS(minder_set_set_user(set, children[0], NULL), MINDER_UNKNOWN);
    minder_command_free(command);

    /* Another pointer is in the events that are taken later. A structure of an older header has no pointer. */
    command = minder_command_new("true");
    options = (minder_spawn_options)MINDER_INIT(minder_spawn_options);
    options.size = offsetof(minder_spawn_options, user);
    options.user = &objects[0];
    minder_child_id child = 0;
    OK(minder_set_spawn(set, command, &options, &child));
    OK(minder_set_user(set, child, &user));
    CHECK(user == NULL);
    OK(minder_set_set_user(set, child, &objects[1]));
    OK(minder_set_user(set, child, &user));
    CHECK(user == &objects[1]);
    while (minder_set_children(set) > 0) {
        OK(minder_set_wait(set, 60 * MINDER_SECOND));
        OK(minder_set_take(set, events, SIZE_MAX, NULL));
        const minder_event *event;
        while ((event = minder_events_next(events)) != NULL) CHECK(event->user == &objects[1]);
    }
    minder_events_free(events);
    OK(minder_set_stop(set, 0));
    minder_set_free(set);
    minder_command_free(command);
}

/* Children of a host that is killed by SIGKILL end. `cargo xtask c` sets MINDER_GUARDIAN. */
static void guardian_ends_children(void) {
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    fflush(NULL);
    const pid_t host = fork();
    CHECK(host >= 0);
    if (host == 0) {
        minder_guardian *guardian = NULL;
        OK(minder_guardian_new(NULL, &guardian));
        CHECK(minder_guardian_pid(guardian) > 1);
        minder_set_options options = MINDER_INIT(minder_set_options);
        options.guardian = guardian;
        minder_set *set = NULL;
        OK(minder_set_new(&options, &set));
        minder_command *command = shell("exec sleep 600");
        /* Both children hold the pipe: it ends when they have ended. */
        OK(minder_command_stdio_fd(command, MINDER_STDOUT, ends[1]));
        minder_child *child = NULL;
        OK(minder_guardian_spawn(guardian, command, &child));
        OK(minder_set_spawn(set, command, NULL, NULL));
        CHECK(write(ends[1], "x", 1) == 1);
        for (;;) pause();
    }
    close(ends[1]);
    char byte;
    CHECK(read(ends[0], &byte, 1) == 1);
    CHECK(kill(host, SIGKILL) == 0 && waitpid(host, NULL, 0) == host);
    CHECK(read(ends[0], &byte, 1) == 0);
    close(ends[0]);
}

/* Forks. The fork sleeps after a byte has arrived, and exits if this process ends before that. */
static pid_t fork_sleeper(int *go) {
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        char byte;
        close(ends[1]);
        if (read(ends[0], &byte, 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ends[0]);
    *go = ends[1];
    return pid;
}

/* The same for processes that the library has not started. */
static void guardian_ends_forked_processes(void) {
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    fflush(NULL);
    const pid_t host = fork();
    CHECK(host >= 0);
    if (host == 0) {
        minder_guardian *guardian = NULL;
        OK(minder_guardian_new(NULL, &guardian));
        for (int i = 0; i < 4; i++) {
            int go = -1;
            const pid_t pid = fork_sleeper(&go);
            if (i % 2 == 0) CHECK(setpgid(pid, pid) == 0);
            minder_guarded *guarded = NULL;
            OK(minder_guardian_guard(guardian, (uint32_t)pid, &guarded));
            CHECK(write(go, "x", 1) == 1 && close(go) == 0);
            if (i < 2) continue; /* this process is killed before it frees these */
            CHECK(kill(pid, SIGKILL) == 0);
            minder_guarded_free(guarded);
            CHECK(waitpid(pid, NULL, 0) == pid);
        }
        CHECK(write(ends[1], "x", 1) == 1);
        for (;;) pause();
    }
    close(ends[1]);
    char byte;
    CHECK(read(ends[0], &byte, 1) == 1);
    CHECK(kill(host, SIGKILL) == 0 && waitpid(host, NULL, 0) == host);
    CHECK(read(ends[0], &byte, 1) == 0);
    close(ends[0]);
}

/* Messages are found wherever the chunks of a stream end. */
static void framer_finds_messages(void) {
    uint8_t stream[64];
    size_t len = 0;
    for (int i = 0; i < 2; i++) {
        size_t count = 0;
        OK(minder_frame_encode(MINDER_FRAME_CONTENT_LENGTH, (const uint8_t *)"{}", 2, stream + len,
                               sizeof stream - len, &count));
        len += count;
    }
    for (size_t cut = 0; cut <= len; cut++) {
        minder_framer_options options = MINDER_INIT(minder_framer_options);
        options.format = MINDER_FRAME_CONTENT_LENGTH;
        minder_framer *framer = NULL;
        OK(minder_framer_new(&options, &framer));
        minder_frame frame = MINDER_INIT(minder_frame);
        int messages = 0;
        const uint8_t *rest = stream;
        for (int part = 0; part < 2; part++) {
            size_t left = part == 0 ? cut : len - cut;
            while (minder_framer_next(framer, &rest, &left, &frame) == MINDER_OK) {
                CHECK(frame.len == 2 && memcmp(frame.bytes, "{}", 2) == 0);
                CHECK(frame.offset == (size_t)messages * (len / 2));
                messages++;
            }
            CHECK(left == 0);
        }
        CHECK(messages == 2);
        CHECK_STATUS(minder_framer_finish(framer, &frame), MINDER_NONE);
        minder_framer_free(framer);
    }
}

/* The loop of the documentation. Appends each message and a space to `messages`. Returns how many errors
 * there were. */
static int take_messages(minder_framer *framer, const uint8_t *rest, size_t left, char *messages) {
    minder_frame frame = MINDER_INIT(minder_frame);
    int errors = 0;
    for (;;) {
        const minder_status status = minder_framer_next(framer, &rest, &left, &frame);
        if (status == MINDER_OK) {
            strncat(messages, (const char *)frame.bytes, frame.len);
            strcat(messages, " ");
        } else if (status == MINDER_NONE || minder_framer_resync(framer) != MINDER_OK) {
            break;
        } else {
            errors++;
        }
    }
    CHECK(left == 0);
    return errors;
}

/* The rest of a chunk is not lost after an error, wherever the chunk ends. */
static void framer_continues_after_malformed_frames(void) {
    /* A line that is no header, and a message that is too long. */
    static const char STREAM[] = "Warning!\nContent-Length: 2\r\n\r\n{}Content-Length: 2\r\n\r\n[]"
                                 "Content-Length: 12\r\n\r\n[1,2,3,4,56]Content-Length: 1\r\n\r\n7";
    const size_t len = strlen(STREAM);
    const uint8_t *const stream = (const uint8_t *)STREAM;
    for (size_t cut = 0; cut <= len; cut++) {
        minder_framer_options options = MINDER_INIT(minder_framer_options);
        options.format = MINDER_FRAME_CONTENT_LENGTH;
        options.max_frame_bytes = 10;
        minder_framer *framer = NULL;
        OK(minder_framer_new(&options, &framer));
        char messages[256] = "";
        int errors = take_messages(framer, stream, cut, messages);
        errors += take_messages(framer, stream + cut, len - cut, messages);
        CHECK(errors == 2 && strcmp(messages, "{} [] 7 ") == 0);
        CHECK_STATUS(minder_framer_finish(framer, NULL), MINDER_NONE);
        minder_framer_free(framer);
    }
}

/* One descriptor in one-shot mode, closed and used again without a word to the poller. */
static void poller_rearms_reused_descriptors(void) {
    static const char *const BACKENDS[] = { "epoll", "io_uring", "poll" };
    for (size_t i = 0; i < 3; i++) {
        minder_poller *poller = NULL;
        if (minder_poller_new(BACKENDS[i], &poller) != MINDER_OK) continue; /* a container forbids it */
        for (int turn = 0; turn < 20; turn++) {
            int pair[2];
            CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
            minder_ready ready[2];
            size_t count = 0;
            for (int wait = 0; wait < 3; wait++) {
                const uint64_t token = (uint64_t)(turn * 10 + wait);
                OK(minder_poller_arm(poller, pair[0], MINDER_READABLE | MINDER_ONESHOT, token));
                CHECK(write(pair[1], "x", 1) == 1);
                OK(minder_poller_wait(poller, 60 * MINDER_SECOND, ready, 2, &count));
                CHECK(count == 1 && ready[0].token == token && ready[0].flags == MINDER_READABLE);
                CHECK_STATUS(minder_poller_wait(poller, 0, ready, 2, &count), MINDER_TIMED_OUT);
            }
            close(pair[0]);
            close(pair[1]);
        }
        minder_poller_free(poller);
    }
}

static void poller_watches_processes_and_timers(void) {
    minder_poller *poller = NULL;
    OK(minder_poller_new(NULL, &poller));
    const pid_t pid = fork();
    if (pid == 0) _exit(3);
    /* It may have exited already: it is a zombie, and counts as exited. */
    OK(minder_poller_add_process(poller, (uint32_t)pid, 1));
    minder_ready ready[2];
    size_t count = 0;
    OK(minder_poller_wait(poller, MINDER_FOREVER, ready, 2, &count));
    CHECK(count == 1 && ready[0].token == 1 && (ready[0].flags & MINDER_READABLE) != 0);
    OK(minder_poller_delete_process(poller, (uint32_t)pid));
    CHECK(waitpid(pid, NULL, 0) == pid);
    CHECK_STATUS(minder_poller_add_process(poller, (uint32_t)pid, 1), MINDER_UNKNOWN);
    /* No report is lost if the array is too small. */
    for (uint64_t token = 10; token < 15; token++) OK(minder_poller_add_timer(poller, token, 0, 0));
    uint64_t sum = 0;
    for (int waits = 0; waits < 5; waits++) {
        OK(minder_poller_wait(poller, MINDER_FOREVER, ready, 1, &count));
        CHECK(count == 1 && ready[0].flags == MINDER_EXPIRED);
        sum += ready[0].token;
    }
    CHECK(sum == 10 + 11 + 12 + 13 + 14);
    OK(minder_poller_add_timer(poller, 1, 600 * MINDER_SECOND, MINDER_SECOND));
    OK(minder_poller_delete_timer(poller, 1));
    OK(minder_poller_notify(poller));
    CHECK_STATUS(minder_poller_wait(poller, MINDER_FOREVER, ready, 2, &count), MINDER_WOKEN);
    CHECK(minder_poller_fd(poller) != MINDER_NO_FD);
    minder_poller_free(poller);
}

int main(void) {
    environment_and_directory();
    timer_slack();
    streams();
    passed_descriptor();
    child_pipes();
    write_to_a_child_that_is_gone();
    groups_and_terminals();
    output_options();
    set_keeps_its_limits();
    set_limits_children();
    set_writes_times_out_and_restarts();
    set_keeps_a_pointer_for_each_child();
    guardian_ends_children();
    guardian_ends_forked_processes();
    framer_finds_messages();
    framer_continues_after_malformed_frames();
    poller_rearms_reused_descriptors();
    poller_watches_processes_and_timers();
    puts("features: ok");
    return 0;
}
