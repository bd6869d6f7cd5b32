/* Measures the processor time that libuv's loop takes for the exit of a child.
 *   exits_uv CHILD ROUND EXITS LIVE... | --version
 * LIVE children run CHILD, which must not end by itself. `one`: EXITS pseudo-random ones are killed, each when the exit
 * callback of the one before was called; a quarter may be missing before others take their places, unmeasured, as `minder
 * bench exit` does it. `burst`: all are killed at once, and the loop runs until the last callback. Prints rows of CSV in
 * nanoseconds per exit, kill(2) included. ROUND is a column, and selects the children that are killed.
 * Build: cc -O2 -o exits_uv exits_uv.c -luv */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

struct times {
    double cpu, wall;
};

/* The living ones. */
static uv_process_t **children;
static unsigned ended, closed;
static char *program;

static double ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static struct times now(void)
{
    struct times at = { ns(CLOCK_PROCESS_CPUTIME_ID), ns(CLOCK_MONOTONIC) };

    return at;
}

static void check(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "exits_uv: %s: %s\n", what, uv_strerror(error));
    exit(1);
}

static void on_exit_of(uv_process_t *child, int64_t status, int signal)
{
    (void)child, (void)status;
    if (signal != SIGKILL) {
        fprintf(stderr, "exits_uv: a child ended that was not killed\n");
        exit(1);
    }
    ended++;
}

static void on_close_of(uv_handle_t *child)
{
    (void)child;
    closed++;
}

static void start(uv_process_t *child)
{
    char *args[] = { program, NULL };
    uv_stdio_container_t streams[3] = { 0 };
    uv_process_options_t options = { .file = program, .args = args, .exit_cb = on_exit_of, .stdio = streams,
                                     .stdio_count = 3 };

    for (int fd = 0; fd < 3; fd++) {
        streams[fd].flags = UV_INHERIT_FD;
        streams[fd].data.fd = fd;
    }
    check(uv_spawn(uv_default_loop(), child, &options), "uv_spawn");
}

static void start_all(unsigned count)
{
    const struct timespec rest = { 0, 20 * 1000 * 1000 };

    for (unsigned n = 0; n < count; n++)
        start(children[n]);
    /* The last ones still run their first instructions on the other processors. */
    nanosleep(&rest, NULL);
}

/* Kills the first so many, one by one or all at once, and runs the loop until their exits were
 * reported. */
static struct times end(unsigned count, int one_by_one)
{
    struct times before = now(), after;

    ended = 0;
    for (unsigned n = 0; n < count; n++) {
        check(uv_kill(uv_process_get_pid(children[n]), SIGKILL), "kill");
        while (one_by_one && ended <= n)
            uv_run(uv_default_loop(), UV_RUN_ONCE);
    }
    while (ended < count)
        uv_run(uv_default_loop(), UV_RUN_ONCE);
    after = now();
    return (struct times) { after.cpu - before.cpu, after.wall - before.wall };
}

static void forget(unsigned count)
{
    closed = 0;
    for (unsigned n = 0; n < count; n++)
        uv_close((uv_handle_t *)children[n], on_close_of);
    while (closed < count)
        uv_run(uv_default_loop(), UV_RUN_NOWAIT);
}

static void row(const char *kind, unsigned live, unsigned round, unsigned exits, struct times spent)
{
    printf("libuv,%s,%u,%u,%u,%.1f,%.1f\n", kind, live, round, exits, spent.cpu / exits, spent.wall / exits);
    fflush(stdout);
}

static void measure(unsigned live, unsigned round, unsigned exits)
{
    uint64_t dice = round * 0x9e3779b97f4a7c15u;
    unsigned quarter = live < 4 ? 1 : live / 4;
    struct times sum = { 0, 0 };

    start_all(live);
    for (unsigned done = 0, count; done < exits; done += count) {
        struct times spent;

        count = quarter < exits - done ? quarter : exits - done;
        for (unsigned n = 0; n < count; n++) {
            unsigned drawn;
            uv_process_t *child = children[n];

            dice ^= dice << 13, dice ^= dice >> 7, dice ^= dice << 17;
            drawn = n + ((dice >> 32) * (live - n) >> 32);
            children[n] = children[drawn], children[drawn] = child;
        }
        spent = end(count, 1);
        sum.cpu += spent.cpu, sum.wall += spent.wall;
        forget(count);
        start_all(count);
    }
    row("one", live, round, exits, sum);
    sum = end(live, 0);
    row("burst", live, round, live, sum);
    forget(live);
}

int main(int argc, char **argv)
{
    int round = argc > 4 ? atoi(argv[2]) : 0, exits = argc > 4 ? atoi(argv[3]) : 0;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts(uv_version_string());
        return 0;
    }
    if (round < 1 || exits < 1) {
        fprintf(stderr, "usage: exits_uv CHILD ROUND EXITS LIVE...\n");
        return 2;
    }
    program = argv[1];
    printf("mechanism,kind,live,round,exits,cpu_ns,wall_ns\n");
    for (int place = 4; place < argc; place++) {
        int live = atoi(argv[place]);
        uv_process_t *room = live < 1 ? NULL : calloc(live, sizeof *room);

        children = live < 1 ? NULL : calloc(live, sizeof *children);
        if (!room || !children) {
            fprintf(stderr, "exits_uv: `%s` is no number of children\n", argv[place]);
            return 2;
        }
        for (int n = 0; n < live; n++)
            children[n] = room + n;
        measure(live, round, exits);
        free(children);
        free(room);
    }
    return 0;
}
