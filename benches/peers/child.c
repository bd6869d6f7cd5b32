/* A child without libc; its argument says what it does:
 *   t     exits at once
 *   sN    sleeps N seconds
 *   pN    prints a line, sleeps N seconds, prints a line
 * Build: cc -O2 -static -nostdlib -o child child.c */
#include "bare.h"

static int child(long argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "t", *digit;
    long rest[2] = { 0, 0 };

    for (digit = what + (*what != 0); *digit >= '0' && *digit <= '9'; digit++)
        rest[0] = rest[0] * 10 + (*digit - '0');
    if (*what == 'p' && call(SYS_write, 1, "begin\n", 6) != 6)
        return 1;
    /* An interrupted sleep continues with the rest. */
    while (rest[0] + rest[1] > 0 && call(SYS_nanosleep, (long)rest, rest, 0) != 0)
        ;
    if (*what == 'p' && call(SYS_write, 1, "end\n", 4) != 4)
        return 1;
    return 0;
}
