/* Wrong use of the library: NULL, handles of another type, numbers that mean nothing, many threads, fork(2). */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint8_t *const BYTES = (const uint8_t *)"text";

static void null_command(void) {
    CHECK(minder_command_new(NULL) == NULL);
    CHECK(strcmp(minder_last_error(), "argument `program` is NULL") == 0);
    minder_command_free(NULL);
    CHECK_STATUS(minder_command_arg(NULL, "x"), MINDER_INVALID);
    CHECK_STATUS(minder_command_args(NULL, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_command_env(NULL, "x", "y"), MINDER_INVALID);
    CHECK_STATUS(minder_command_env_clear(NULL), MINDER_INVALID);
    CHECK_STATUS(minder_command_current_dir(NULL, "/"), MINDER_INVALID);
    CHECK_STATUS(minder_command_stdio(NULL, MINDER_STDIN, MINDER_NULL), MINDER_INVALID);
    CHECK_STATUS(minder_command_stdio_fd(NULL, MINDER_STDIN, 0), MINDER_INVALID);
    CHECK_STATUS(minder_command_stdio_file(NULL, MINDER_STDIN, "/dev/null", false), MINDER_INVALID);
    CHECK_STATUS(minder_command_pass_fd(NULL, MINDER_NO_FD), MINDER_INVALID);
    CHECK_STATUS(minder_command_group(NULL, MINDER_GROUP_NEW), MINDER_INVALID);
    CHECK_STATUS(minder_command_terminal(NULL, 24, 80), MINDER_INVALID);
    CHECK_STATUS(minder_command_nice(NULL, 0), MINDER_INVALID);
    CHECK_STATUS(minder_command_timer_slack(NULL, 1), MINDER_INVALID);
    CHECK_STATUS(minder_command_die_with_parent(NULL, true), MINDER_INVALID);
    CHECK_STATUS(minder_command_spawn(NULL, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_command_output(NULL, NULL, NULL), MINDER_INVALID);
}

static void null_child_and_output(void) {
    minder_output_free(NULL);
    CHECK_STATUS(minder_output_exit(NULL, NULL), MINDER_INVALID);
    CHECK(minder_output_bytes(NULL, MINDER_STDOUT, NULL) == NULL);
    minder_child_free(NULL);
    CHECK(minder_child_pid(NULL) == 0);
    CHECK_STATUS(minder_child_wait(NULL, 0, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_child_kill(NULL, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_child_kill_and_wait(NULL, NULL, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_child_write(NULL, BYTES, 4, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_child_close_stdin(NULL), MINDER_INVALID);
    CHECK_STATUS(minder_child_read(NULL, MINDER_STDOUT, NULL, 4, NULL), MINDER_INVALID);
    CHECK(minder_child_fd(NULL, MINDER_STDIN) == MINDER_NO_FD);
    CHECK_STATUS(minder_child_resize(NULL, 1, 1), MINDER_INVALID);
}

static void null_set(void) {
    CHECK_STATUS(minder_set_new(NULL, NULL), MINDER_INVALID);
    minder_set_free(NULL);
    CHECK_STATUS(minder_set_spawn(NULL, NULL, NULL, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_set_write(NULL, 0, BYTES, 4, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_set_close_stdin(NULL, 0), MINDER_INVALID);
    CHECK_STATUS(minder_set_kill(NULL, 0, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_set_restart(NULL, 0, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_set_suspend(NULL, 0), MINDER_INVALID);
    CHECK_STATUS(minder_set_resume(NULL, 0), MINDER_INVALID);
    CHECK_STATUS(minder_set_resize(NULL, 0, 1, 1), MINDER_INVALID);
    CHECK_STATUS(minder_set_pid(NULL, 0, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_set_user(NULL, 0, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_set_set_user(NULL, 0, NULL), MINDER_INVALID);
    CHECK(minder_set_fd(NULL) == MINDER_NO_FD);
    CHECK_STATUS(minder_set_wait(NULL, 0), MINDER_INVALID);
    CHECK_STATUS(minder_set_take(NULL, NULL, 0, NULL), MINDER_INVALID);
    CHECK(minder_set_children(NULL) == 0 && minder_set_queued_bytes(NULL) == 0);
    CHECK_STATUS(minder_set_take_error(NULL), MINDER_INVALID);
    CHECK_STATUS(minder_set_stop(NULL, 0), MINDER_INVALID);
    minder_events_free(NULL);
    CHECK(minder_events_next(NULL) == NULL && minder_events_count(NULL) == 0);
}

static void null_poller(void) {
    CHECK_STATUS(minder_poller_new(NULL, NULL), MINDER_INVALID);
    minder_poller_free(NULL);
    CHECK_STATUS(minder_poller_renew(NULL), MINDER_INVALID);
    minder_poller *none = NULL;
    CHECK_STATUS(minder_poller_renew(&none), MINDER_INVALID);
    CHECK(strcmp(minder_poller_backend(NULL), "") == 0);
    CHECK_STATUS(minder_poller_add(NULL, 0, MINDER_READABLE, 1), MINDER_INVALID);
    CHECK_STATUS(minder_poller_modify(NULL, 0, MINDER_READABLE, 1), MINDER_INVALID);
    CHECK_STATUS(minder_poller_arm(NULL, 0, MINDER_READABLE, 1), MINDER_INVALID);
    CHECK_STATUS(minder_poller_delete(NULL, 0), MINDER_INVALID);
    CHECK_STATUS(minder_poller_add_process(NULL, 1, 1), MINDER_INVALID);
    CHECK_STATUS(minder_poller_delete_process(NULL, 1), MINDER_INVALID);
    CHECK_STATUS(minder_poller_add_timer(NULL, 1, 0, 0), MINDER_INVALID);
    CHECK_STATUS(minder_poller_delete_timer(NULL, 1), MINDER_INVALID);
    CHECK_STATUS(minder_poller_wait(NULL, 0, NULL, 0, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_poller_notify(NULL), MINDER_INVALID);
    CHECK(minder_poller_fd(NULL) == MINDER_NO_FD);
}

static void wrong_frames(void) {
    const uint8_t *rest = BYTES;
    size_t left = 4;
    minder_frame frame = MINDER_INIT(minder_frame);
    minder_framer_free(NULL);
    CHECK_STATUS(minder_framer_new(NULL, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_framer_next(NULL, &rest, &left, &frame), MINDER_INVALID);
    CHECK_STATUS(minder_framer_finish(NULL, &frame), MINDER_INVALID);
    CHECK_STATUS(minder_framer_resync(NULL), MINDER_INVALID);
    size_t needed = 0;
    CHECK_STATUS(minder_frame_encode(99, BYTES, 4, NULL, 0, &needed), MINDER_INVALID);
    CHECK_STATUS(minder_frame_encode(MINDER_FRAME_LINES, NULL, 4, NULL, 0, &needed), MINDER_INVALID);
    CHECK_STATUS(minder_frame_encode(MINDER_FRAME_LENGTH_BE32, BYTES, 4, NULL, 0, &needed), MINDER_LIMIT);
    CHECK(needed == 8);
    minder_framer_options options = MINDER_INIT(minder_framer_options);
    minder_framer *framer = NULL;
    options.format = 99;
    CHECK_STATUS(minder_framer_new(&options, &framer), MINDER_INVALID);
    CHECK(framer == NULL);
    options.format = MINDER_FRAME_LINES;
    options.max_frame_bytes = 2;
    options.label = "stdout";
    OK(minder_framer_new(&options, &framer));
    CHECK_STATUS(minder_framer_next(framer, NULL, &left, &frame), MINDER_INVALID);
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(minder_framer_next(framer, &rest, &left, &frame), MINDER_LIMIT);
        CHECK(strstr(minder_last_error(), "`stdout`") != NULL);
    }
    OK(minder_framer_resync(framer));
    CHECK_STATUS(minder_framer_resync(framer), MINDER_NONE);
    rest = (const uint8_t *)"\na\n";
    left = 3;
    OK(minder_framer_next(framer, &rest, &left, &frame));
    CHECK(frame.len == 1 && *frame.bytes == 'a' && left == 0);
    minder_framer_free(framer);
}

static int32_t fails(void *user, void *object) {
    (void)user;
    return object == NULL ? 0 : 5;
}

static int32_t stops(void *user, void *object, int32_t result) {
    CHECK(result == (object == NULL ? 0 : 5));
    return ++*(int *)user == 3;
}

static void wrong_executions(void) {
    int finished = 0;
    void *objects[100] = { NULL, objects };
    CHECK_STATUS(minder_execute(NULL, NULL, 1, fails, stops, &finished, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_execute(NULL, objects, 1, NULL, stops, &finished, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_execute(NULL, objects, 1, fails, NULL, &finished, NULL), MINDER_INVALID);
    minder_execute_options options = MINDER_INIT(minder_execute_options);
    options.order = 99;
    CHECK_STATUS(minder_execute(&options, objects, 1, fails, stops, &finished, NULL), MINDER_INVALID);
    options.order = MINDER_ORDER_FIFO;
    options.reserved = 1;
    CHECK_STATUS(minder_execute(&options, objects, 1, fails, stops, &finished, NULL), MINDER_INVALID);
    CHECK(strstr(minder_last_error(), "`reserved`") != NULL);
    /* More than memory can hold, as an array of pointers, and as the objects of the library. */
    const size_t counts[] = { SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 16 };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        CHECK_STATUS(minder_execute(NULL, objects, counts[i], fails, stops, &finished, NULL), MINDER_INVALID);
        CHECK(strstr(minder_last_error(), "`objects`") != NULL);
    }
    CHECK(finished == 0);
    OK(minder_execute(NULL, NULL, 0, fails, stops, &finished, NULL));
    for (int serial = 0; serial < 2; serial++) {
        minder_execute_summary summary = MINDER_INIT(minder_execute_summary);
        options = (minder_execute_options)MINDER_INIT(minder_execute_options);
        options.degree = 1;
        options.serial = serial;
        finished = 0;
        OK(minder_execute(&options, objects, 100, fails, stops, &finished, &summary));
        CHECK(finished == 3 && summary.failed == 1 && (summary.threads == 0) == (serial == 1));
        CHECK(summary.succeeded + summary.failed + summary.not_run == 100);
        CHECK(serial == 0 || summary.not_run == 97);
    }
}

static void wrong_guardians(void) {
    minder_guardian_free(NULL);
    CHECK_STATUS(minder_guardian_new(NULL, NULL), MINDER_INVALID);
    CHECK(minder_guardian_pid(NULL) == 0);
    CHECK_STATUS(minder_guardian_spawn(NULL, NULL, NULL), MINDER_INVALID);
    minder_guarded *guarded = NULL;
    minder_guarded_free(NULL);
    CHECK_STATUS(minder_guardian_guard(NULL, 1, &guarded), MINDER_INVALID);
    minder_guardian_options options = MINDER_INIT(minder_guardian_options);
    options.program = "/nowhere/minder-guardian";
    minder_guardian *guardian = NULL;
    CHECK_STATUS(minder_guardian_new(&options, &guardian), MINDER_NOT_FOUND);
    CHECK(guardian == NULL);
    minder_command *command = shell("exit 0");
    minder_set_options set_options = MINDER_INIT(minder_set_options);
    set_options.guardian = (minder_guardian *)command;
    minder_set *set = NULL;
    CHECK_STATUS(minder_set_new(&set_options, &set), MINDER_INVALID);
    CHECK_STATUS(minder_guardian_guard((minder_guardian *)command, 1, &guarded), MINDER_INVALID);
    minder_command_free(command);
}

/* Numbers that are no child, a child that was reaped, and a forked process with handles of its parent. */
static void wrong_guarded_processes(void) {
    minder_guardian *guardian = NULL;
    OK(minder_guardian_new(NULL, &guardian));
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        for (;;) pause();
    }
    CHECK_STATUS(minder_guardian_guard(guardian, (uint32_t)pid, NULL), MINDER_INVALID);
    minder_guarded *guarded = NULL;
    OK(minder_guardian_guard(guardian, (uint32_t)pid, &guarded));
    minder_guardian_free((minder_guardian *)guarded); /* another type: nothing happens */
    const pid_t forked = fork();
    CHECK(forked >= 0);
    if (forked == 0) {
        minder_guarded *other = NULL;
        CHECK_STATUS(minder_guardian_guard(guardian, (uint32_t)pid, &other), MINDER_PERMISSION_DENIED);
        minder_guarded_free(guarded);
        minder_guardian_free(guardian);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(forked, &status, 0) == forked && status == 0);
    CHECK(kill(pid, SIGKILL) == 0);
    minder_guarded_free(guarded);
    CHECK(waitpid(pid, NULL, 0) == pid);
    const uint32_t wrong[] = { 0, 1, (uint32_t)getpid(), (uint32_t)pid, UINT32_MAX };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_STATUS(minder_guardian_guard(guardian, wrong[i], &guarded), MINDER_UNKNOWN);
        CHECK(guarded == NULL && strstr(minder_last_error(), "not a child of this process") != NULL);
    }
    CHECK_STATUS(minder_guardian_guard(guardian, minder_guardian_pid(guardian), &guarded), MINDER_INVALID);
    minder_guardian_free(guardian);
}

static void wrong_handles(void) {
    minder_command *command = shell("exit 0");
    minder_events *events = minder_events_new();
    CHECK_STATUS(minder_set_stop((minder_set *)command, 0), MINDER_INVALID);
    CHECK(strstr(minder_last_error(), "another type") != NULL);
    CHECK_STATUS(minder_child_kill((minder_child *)events, NULL), MINDER_INVALID);
    minder_child *child = NULL;
    CHECK_STATUS(minder_command_spawn((minder_command *)events, &child), MINDER_INVALID);
    CHECK(child == NULL);
    /* Freeing it as another type does nothing, and it can be used afterwards. */
    minder_set_free((minder_set *)command);
    minder_poller_free((minder_poller *)command);
    OK(minder_command_spawn(command, &child));
    OK(minder_child_wait(child, MINDER_FOREVER, NULL));
    minder_child_free(child);
    minder_events_free(events);
    minder_command_free(command);
}

static void wrong_numbers_and_structures(void) {
    minder_command *command = shell("exit 0");
    minder_set *set = NULL;
    OK(minder_set_new(NULL, &set));
    minder_spawn_options options = { 0 };
    CHECK_STATUS(minder_set_spawn(set, command, &options, NULL), MINDER_INVALID);
    CHECK(strstr(minder_last_error(), "MINDER_INIT") != NULL);
    options = (minder_spawn_options)MINDER_INIT(minder_spawn_options);
    options.overflow = 77;
    CHECK_STATUS(minder_set_spawn(set, command, &options, NULL), MINDER_INVALID);
    options.overflow = MINDER_OVERFLOW_BLOCK;
    options.output_mode = MINDER_OUTPUT_AT_EXIT;
    CHECK_STATUS(minder_set_spawn(set, command, &options, NULL), MINDER_INVALID);
    options = (minder_spawn_options)MINDER_INIT(minder_spawn_options);
    options.reserved = 7;
    CHECK_STATUS(minder_set_spawn(set, command, &options, NULL), MINDER_INVALID);
    CHECK(strcmp(minder_last_error(), "member `reserved` of `options` is 7, and must be zero") == 0);
    CHECK_STATUS(minder_set_write(set, 0, BYTES, SIZE_MAX, NULL), MINDER_INVALID);

    /* A later header has more options. The library accepts them while they are not used. */
    struct {
        minder_spawn_options known;
        int64_t later;
    } newer = { .known = MINDER_INIT(minder_spawn_options) };
    newer.known.size = sizeof newer;
    OK(minder_set_spawn(set, command, &newer.known, NULL));
    uint32_t pid = 7;
    newer.known.pid = &pid;
    minder_command *missing = minder_command_new("/no/such/program");
    CHECK_STATUS(minder_set_spawn(set, missing, &newer.known, NULL), MINDER_NOT_FOUND);
    CHECK(pid == 0);
    minder_command_free(missing);
    /* An earlier header has fewer: the library does not read beyond them. */
    newer.known.size = offsetof(minder_spawn_options, pid);
    pid = 7;
    OK(minder_set_spawn(set, command, &newer.known, NULL));
    CHECK(pid == 7);
    newer.known.size = sizeof newer;
    newer.later = 1;
    CHECK_STATUS(minder_set_spawn(set, command, &newer.known, NULL), MINDER_UNSUPPORTED);

    minder_termination how = MINDER_INIT(minder_termination);
    how.step_count = 2;
    CHECK_STATUS(minder_set_kill(set, 0, &how), MINDER_INVALID);
    minder_signal_step steps[MINDER_SIGNALS_MAX + 1] = { { .signal = 15 } };
    how.steps = steps;
    how.step_count = MINDER_SIGNALS_MAX + 1;
    CHECK_STATUS(minder_set_kill(set, 0, &how), MINDER_INVALID);
    how.step_count = 1;
    steps[0].reserved = 1;
    CHECK_STATUS(minder_set_kill(set, 0, &how), MINDER_INVALID);
    CHECK(strstr(minder_last_error(), "`reserved`") != NULL);
    CHECK_STATUS(minder_set_kill(set, 123456789, NULL), MINDER_UNKNOWN);
    CHECK_STATUS(minder_set_write(set, 123456789, BYTES, 4, NULL), MINDER_UNKNOWN);
    OK(minder_set_stop(set, 0));
    CHECK_STATUS(minder_set_stop(set, 0), MINDER_OK); /* it is stopped */
    CHECK_STATUS(minder_set_spawn(set, command, NULL, NULL), MINDER_FAILED);
    minder_set_free(set);

    minder_set_options set_options = MINDER_INIT(minder_set_options);
    set_options.backend = "no such backend";
    CHECK_STATUS(minder_set_new(&set_options, &set), MINDER_INVALID);
    CHECK(set == NULL);

    /* A failed setter makes every start fail in the same way. */
    CHECK_STATUS(minder_command_stdio(command, 9, MINDER_NULL), MINDER_INVALID);
    OK(minder_command_arg(command, "x"));
    minder_child *child = NULL;
    CHECK_STATUS(minder_command_spawn(command, &child), MINDER_INVALID);
    CHECK(strstr(minder_last_error(), "stream") != NULL);
    minder_command_free(command);
}

static void wrong_descriptors(void) {
    enum { CLOSED = 99999 };
    minder_command *command = shell("exit 0");
    CHECK_STATUS(minder_command_pass_fd(command, CLOSED), MINDER_INVALID);
    CHECK(strstr(minder_last_error(), "`fd` is 99999: ") != NULL && minder_last_os_error() == EBADF);
    CHECK_STATUS(minder_command_stdio_fd(command, MINDER_STDOUT, CLOSED), MINDER_INVALID);
    CHECK(strstr(minder_last_error(), "`fd` is 99999: ") != NULL && minder_last_os_error() == EBADF);
    /* It is not closed when the command is freed. */
    CHECK_STATUS(minder_command_pass_fd(command, STDOUT_FILENO), MINDER_INVALID);
    minder_command_free(command);
    CHECK(fcntl(STDOUT_FILENO, F_GETFD) >= 0);

    command = shell("exit 0");
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(fd > STDERR_FILENO);
    OK(minder_command_pass_fd(command, fd));
    CHECK_STATUS(minder_command_pass_fd(command, fd), MINDER_INVALID);
    CHECK(strstr(minder_last_error(), "owns already") != NULL && fcntl(fd, F_GETFD) >= 0);
    minder_command_free(command);
    CHECK(fcntl(fd, F_GETFD) < 0);
}

static void large_limits(void) {
    minder_set *set = NULL;
    minder_set_options options = MINDER_INIT(minder_set_options);
    options.read_buffer_bytes = SIZE_MAX;
    CHECK_STATUS(minder_set_new(&options, &set), MINDER_INVALID);
    CHECK(set == NULL && strstr(minder_last_error(), "16 MiB") != NULL);
    options.read_buffer_bytes = (size_t)16 << 20;
    options.max_children = options.max_buffered_bytes = options.max_child_bytes = SIZE_MAX;
    options.max_input_bytes = SIZE_MAX;
    OK(minder_set_new(&options, &set));
    minder_command *command = shell("cat");
    minder_command_stdio(command, MINDER_STDIN, MINDER_PIPE);
    minder_command_stdio(command, MINDER_STDOUT, MINDER_PIPE);
    minder_child_id child = 0;
    OK(minder_set_spawn(set, command, NULL, &child));
    OK(minder_set_write(set, child, BYTES, 4, NULL));
    OK(minder_set_close_stdin(set, child));
    minder_events *events = minder_events_new();
    size_t bytes = 0;
    while (minder_set_children(set) > 0) {
        OK(minder_set_wait(set, 60 * MINDER_SECOND));
        OK(minder_set_take(set, events, SIZE_MAX, NULL));
        const minder_event *event;
        while ((event = minder_events_next(events)) != NULL)
            if (event->kind == MINDER_EVENT_OUTPUT) bytes += event->len;
    }
    CHECK(bytes == 4);
    minder_events_free(events);
    minder_set_free(set);
    minder_command_free(command);
}

static void wrong_order(void) {
    minder_command *command = shell("exit 4");
    minder_command_stdio(command, MINDER_STDIN, MINDER_PIPE);
    minder_child *child = NULL;
    OK(minder_command_spawn(command, &child));
    OK(minder_child_close_stdin(child));
    OK(minder_child_close_stdin(child));
    CHECK_STATUS(minder_child_write(child, BYTES, 4, NULL), MINDER_INVALID);
    CHECK(minder_child_fd(child, MINDER_STDOUT) == MINDER_NO_FD);
    uint8_t buffer[4];
    size_t count = 0;
    CHECK_STATUS(minder_child_read(child, MINDER_STDOUT, buffer, sizeof buffer, &count), MINDER_INVALID);
    CHECK_STATUS(minder_child_read(child, MINDER_STDOUT, buffer, SIZE_MAX, &count), MINDER_INVALID);
    for (int i = 0; i < 2; i++) {
        minder_exit end = MINDER_INIT(minder_exit);
        OK(minder_child_wait(child, MINDER_FOREVER, &end));
        CHECK(end.kind == MINDER_EXIT_CODE && end.code == 4);
        OK(minder_child_kill(child, NULL));
    }
    minder_child_free(child);
    minder_command_free(command);

    command = minder_command_new("no-such-program-anywhere");
    CHECK_STATUS(minder_command_spawn(command, &child), MINDER_NOT_FOUND);
    CHECK(strcmp(minder_last_error(), "failed to start `no-such-program-anywhere`: not found in PATH") == 0);
    CHECK(minder_last_os_error() == 0 || minder_last_os_error() == ENOENT);
    minder_command_free(command);
}

static void poller_errors(void) {
    minder_poller *poller = NULL;
    CHECK_STATUS(minder_poller_new("no such backend", &poller), MINDER_INVALID);
    CHECK_STATUS(minder_poller_new("iocp", &poller), MINDER_UNSUPPORTED);
    OK(minder_poller_new(NULL, &poller));
    CHECK_STATUS(minder_poller_add(poller, -1, MINDER_READABLE, 1), MINDER_INVALID);
    CHECK(minder_poller_add(poller, 99999, MINDER_READABLE, 1) < 0 && minder_last_os_error() == EBADF);
    CHECK(minder_poller_arm(poller, 99999, MINDER_READABLE, 1) < 0 && minder_last_os_error() == EBADF);
    CHECK_STATUS(minder_poller_modify(poller, 99999, MINDER_READABLE, 1), MINDER_UNKNOWN);
    CHECK_STATUS(minder_poller_delete(poller, 99999), MINDER_UNKNOWN);
    CHECK_STATUS(minder_poller_add(poller, 0, 0, 1), MINDER_INVALID);
    CHECK_STATUS(minder_poller_add(poller, 0, MINDER_READABLE | MINDER_ONESHOT | MINDER_EDGE, 1), MINDER_INVALID);
    CHECK_STATUS(minder_poller_add(poller, 0, MINDER_READABLE | 1u << 30, 1), MINDER_INVALID);
    CHECK_STATUS(minder_poller_add_process(poller, 0x7fffffff, 1), MINDER_UNKNOWN);
    CHECK_STATUS(minder_poller_delete_process(poller, 0x7fffffff), MINDER_UNKNOWN);
    CHECK_STATUS(minder_poller_delete_timer(poller, 1), MINDER_UNKNOWN);
    OK(minder_poller_add_timer(poller, 1, MINDER_SECOND, 0));
    CHECK_STATUS(minder_poller_add_timer(poller, 1, MINDER_SECOND, 0), MINDER_INVALID);
    CHECK_STATUS(minder_poller_add_timer(poller, 2, -1, 0), MINDER_INVALID);
    CHECK_STATUS(minder_poller_add_timer(poller, UINT64_MAX, 0, 0), MINDER_INVALID);
    int ends[2];
    CHECK(pipe(ends) == 0);
    CHECK_STATUS(minder_poller_modify(poller, ends[0], MINDER_READABLE, 1), MINDER_UNKNOWN);
    CHECK_STATUS(minder_poller_delete(poller, ends[0]), MINDER_UNKNOWN);
    OK(minder_poller_add(poller, ends[0], MINDER_READABLE, 1));
    CHECK_STATUS(minder_poller_add(poller, ends[0], MINDER_READABLE, 1), MINDER_INVALID);
    minder_ready ready[1];
    size_t count = 7;
    CHECK_STATUS(minder_poller_wait(poller, 0, ready, 0, &count), MINDER_INVALID);
    CHECK_STATUS(minder_poller_wait(poller, 0, ready, 1, &count), MINDER_TIMED_OUT);
    CHECK(count == 0);
    OK(minder_poller_delete(poller, ends[0]));
    minder_poller_free(poller);
    close(ends[0]);
    close(ends[1]);
}

/* Several threads use one set, and all of them see only their own errors. */

enum { THREADS = 8, CHILDREN = 5 };

struct shared {
    minder_set *set;
    minder_command *command;
    minder_poller *poller;
};

static void *start_children(void *argument) {
    const struct shared *shared = argument;
    for (int i = 0; i < CHILDREN; i++) {
        minder_child_id child = 0;
        OK(minder_set_spawn(shared->set, shared->command, NULL, &child));
        CHECK_STATUS(minder_set_kill(shared->set, 1u << 20, NULL), MINDER_UNKNOWN);
        CHECK(strstr(minder_last_error(), "done") != NULL);
        minder_set_kill(shared->set, child, NULL); /* it may be done */
        OK(minder_poller_notify(shared->poller));
    }
    return NULL;
}

static void many_threads(void) {
    struct shared shared = { .command = shell("exit 0") };
    OK(minder_set_new(NULL, &shared.set));
    OK(minder_poller_new(NULL, &shared.poller));
    OK(minder_poller_add(shared.poller, minder_set_fd(shared.set), MINDER_READABLE, 7));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, start_children, &shared) == 0);
    minder_events *events = minder_events_new();
    size_t done = 0;
    while (done < THREADS * CHILDREN) {
        minder_ready ready[4];
        size_t count = 0;
        CHECK(minder_poller_wait(shared.poller, 60 * MINDER_SECOND, ready, 4, &count) != MINDER_TIMED_OUT);
        OK(minder_set_take(shared.set, events, 1000, NULL));
        const minder_event *event;
        while ((event = minder_events_next(events)) != NULL) done += event->kind == MINDER_EVENT_DONE;
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    OK(minder_poller_delete(shared.poller, minder_set_fd(shared.set)));
    minder_events_free(events);
    OK(minder_set_stop(shared.set, 0));
    minder_set_free(shared.set);
    minder_poller_free(shared.poller);
    minder_command_free(shared.command);
}

static void *wait_for_child(void *child) {
    minder_exit end = MINDER_INIT(minder_exit);
    OK(minder_child_wait(child, MINDER_FOREVER, &end));
    CHECK(end.kind == MINDER_EXIT_SIGNAL && end.signal == 9);
    return NULL;
}

static void many_threads_wait_for_one_child(void) {
    minder_command *command = shell("sleep 600");
    minder_child *child = NULL;
    OK(minder_command_spawn(command, &child));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, wait_for_child, child) == 0);
    OK(minder_child_kill(child, NULL));
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    minder_child_free(child);
    minder_command_free(command);
}

/* A thread that blocks in a write or a read hinders no other thread: the child can be killed. */

static void *write_until_killed(void *child) {
    static uint8_t bytes[1 << 20];
    CHECK(minder_child_write(child, bytes, sizeof bytes, NULL) < 0);
    return NULL;
}

static void *read_until_killed(void *child) {
    uint8_t byte;
    size_t count = 7;
    OK(minder_child_read(child, MINDER_STDOUT, &byte, 1, &count));
    CHECK(count == 0);
    return NULL;
}

static void blocked_threads(void) {
    minder_command *command = shell("exec sleep 600");
    minder_command_stdio(command, MINDER_STDIN, MINDER_PIPE);
    minder_command_stdio(command, MINDER_STDOUT, MINDER_PIPE);
    minder_child *child = NULL;
    OK(minder_command_spawn(command, &child));
    pthread_t threads[2];
    CHECK(pthread_create(&threads[0], NULL, write_until_killed, child) == 0);
    CHECK(pthread_create(&threads[1], NULL, read_until_killed, child) == 0);
    usleep(10000); /* so that they probably block */
    CHECK(minder_child_fd(child, MINDER_STDOUT) != MINDER_NO_FD);
    CHECK_STATUS(minder_child_resize(child, 1, 1), MINDER_INVALID);
    OK(minder_child_close_stdin(child));
    OK(minder_child_kill_and_wait(child, NULL, NULL));
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    minder_child_free(child);
    minder_command_free(command);
}

/* A process that was made by fork(2) learns nothing of the children of its parent. */
static void child_in_forked_process(void) {
    minder_command *command = shell("exec cat");
    minder_command_stdio(command, MINDER_STDIN, MINDER_PIPE);
    minder_command_stdio(command, MINDER_STDOUT, MINDER_PIPE);
    minder_child *child = NULL;
    OK(minder_command_spawn(command, &child));
    fflush(NULL);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        uint8_t buffer[4];
        size_t count = 0;
        CHECK_STATUS(minder_child_wait(child, 0, NULL), MINDER_FORKED);
        CHECK_STATUS(minder_child_wait(child, MINDER_FOREVER, NULL), MINDER_FORKED);
        CHECK_STATUS(minder_child_kill(child, NULL), MINDER_FORKED);
        CHECK_STATUS(minder_child_kill_and_wait(child, NULL, NULL), MINDER_FORKED);
        CHECK_STATUS(minder_child_write(child, BYTES, 4, NULL), MINDER_FORKED);
        CHECK_STATUS(minder_child_read(child, MINDER_STDOUT, buffer, 4, &count), MINDER_FORKED);
        CHECK_STATUS(minder_child_close_stdin(child), MINDER_FORKED);
        CHECK_STATUS(minder_child_resize(child, 1, 1), MINDER_FORKED);
        CHECK(minder_child_fd(child, MINDER_STDIN) == MINDER_NO_FD);
        CHECK(minder_child_pid(child) > 0);
        minder_child_free(child);
        minder_command_free(command);
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    /* The forked process has neither ended the child nor closed a pipe of this one. */
    CHECK_STATUS(minder_child_wait(child, 0, NULL), MINDER_TIMED_OUT);
    OK(minder_child_write(child, BYTES, 4, NULL));
    minder_exit end = MINDER_INIT(minder_exit);
    OK(minder_child_wait(child, MINDER_FOREVER, &end));
    CHECK(end.kind == MINDER_EXIT_CODE && end.code == 0);
    minder_child_free(child);
    minder_command_free(command);
}

/* A process that was made by fork(2) gets an error, and a new poller works there. */
static void forked_process(void) {
    static const char *const BACKENDS[] = { "epoll", "io_uring", "poll" };
    for (size_t i = 0; i < 3; i++) {
        minder_set *set = NULL;
        minder_poller *poller = NULL;
        if (minder_poller_new(BACKENDS[i], &poller) != MINDER_OK) continue; /* a container forbids it */
        OK(minder_set_new(NULL, &set));
        OK(minder_poller_add_timer(poller, 5, 600 * MINDER_SECOND, 0));
        fflush(NULL);
        const pid_t pid = fork();
        CHECK(pid >= 0);
        minder_ready ready[4];
        size_t count = 0;
        if (pid == 0) {
            CHECK_STATUS(minder_set_wait(set, MINDER_FOREVER), MINDER_FORKED);
            CHECK_STATUS(minder_set_spawn(set, NULL, NULL, NULL), MINDER_FORKED);
            CHECK(minder_set_fd(set) == MINDER_NO_FD);
            minder_set_free(set);
            CHECK_STATUS(minder_poller_wait(poller, MINDER_FOREVER, ready, 4, &count), MINDER_FORKED);
            CHECK_STATUS(minder_poller_arm(poller, 0, MINDER_READABLE, 1), MINDER_FORKED);
            OK(minder_poller_renew(&poller));
            CHECK(strcmp(minder_poller_backend(poller), BACKENDS[i]) == 0);
            OK(minder_poller_add_timer(poller, 5, MINDER_MILLISECOND, 0));
            OK(minder_poller_wait(poller, MINDER_FOREVER, ready, 4, &count));
            CHECK(count == 1 && ready[0].token == 5 && ready[0].flags == MINDER_EXPIRED);
            minder_poller_free(poller);
            /* What belongs to threads of the parent stays allocated; a new program is no leak. */
            execlp("true", "true", (char *)NULL);
            _exit(1);
        }
        int status = 0;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        CHECK_STATUS(minder_poller_wait(poller, 0, ready, 4, &count), MINDER_TIMED_OUT);
        OK(minder_set_stop(set, 0));
        minder_set_free(set);
        minder_poller_free(poller);
    }
}

int main(void) {
    CHECK(minder_version() == MINDER_VERSION && minder_version_text()[0] != 0);
    OK(minder_check_version(MINDER_VERSION));
    CHECK_STATUS(minder_check_version(MINDER_VERSION + 1), MINDER_UNSUPPORTED);
    CHECK_STATUS(minder_check_version(7u << 16), MINDER_UNSUPPORTED);
    CHECK(strcmp(minder_status_name(12345), "?") == 0);
    null_command();
    null_child_and_output();
    null_set();
    null_poller();
    wrong_frames();
    wrong_executions();
    wrong_guardians();
    wrong_guarded_processes();
    wrong_handles();
    wrong_numbers_and_structures();
    wrong_descriptors();
    large_limits();
    wrong_order();
    poller_errors();
    many_threads();
    many_threads_wait_for_one_child();
    blocked_threads();
    child_in_forked_process();
    forked_process();
    puts("abuse: ok");
    return 0;
}
