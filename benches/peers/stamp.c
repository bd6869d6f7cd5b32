/* A child without libc that sleeps 2 ms and then, as its last act, writes the monotonic clock in nanoseconds to its
 * standard output: eight bytes in the machine's order. The parent sleeps long before that.
 * Build: cc -O2 -static -nostdlib -o stamp stamp.c */
#include "bare.h"

enum { CLOCK_MONOTONIC = 1 };

static int child(long argc, char **argv)
{
    const long pause[2] = { 0, 2 * 1000 * 1000 };
    long now[2];

    (void)argc, (void)argv;
    call(SYS_nanosleep, (long)pause, 0, 0);
    if (call(SYS_clock_gettime, CLOCK_MONOTONIC, now, 0) != 0)
        return 1;
    now[0] = now[0] * 1000 * 1000 * 1000 + now[1];
    return call(SYS_write, 1, now, sizeof now[0]) != sizeof now[0];
}
