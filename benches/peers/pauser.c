/* A child without libc that does nothing until it is killed, whatever its arguments: what is left is the cost of
 * keeping it and of hearing its end. Build: cc -O2 -static -nostdlib -o pauser pauser.c */
#include "bare.h"

static int child(long argc, char **argv)
{
    const long week[2] = { 7 * 24 * 3600, 0 };

    (void)argc, (void)argv;
    while (call(SYS_nanosleep, (long)week, 0, 0) <= 0)
        ;
    return 1;
}
