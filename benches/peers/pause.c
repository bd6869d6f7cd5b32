/* A child without libc that does nothing until it is killed, whatever its arguments: what is left is the cost of
 * keeping it and of noticing its exit. Build: cc -O2 -static -nostdlib -o pause pause.c */
#include "bare.h"

static int child(long argc, char **argv)
{
    const long week[2] = { 7 * 24 * 3600, 0 };

    (void)argc, (void)argv;
    while (call(SYS_nanosleep, (long)week, 0, 0) <= 0)
        ;
    return 1;
}
