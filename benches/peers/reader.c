/* Reads everything that line_flood wrote, 64 KiB at a time, and prints how much it was:
 *   bytes wrong
 * wrong: how many blocks do not begin with their number. (A number that is split between two reads is not checked.)
 * Build: cc -O2 -static -o reader reader.c */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "block.h"

static char room[BLOCK];

int main(void)
{
    unsigned long long bytes = 0, wrong = 0;
    uint64_t number;
    ssize_t got;

    while ((got = read(0, room, sizeof room)) != 0) {
        size_t at = (size_t)((BLOCK - bytes % BLOCK) % BLOCK);

        if (got < 0) {
            if (errno == EINTR)
                continue;
            perror("reader");
            return 2;
        }
        /* A read is no longer than a block, so at most one begins in it. */
        if (at + sizeof number <= (size_t)got) {
            memcpy(&number, room + at, sizeof number);
            wrong += number != (bytes + at) / BLOCK;
        }
        bytes += (unsigned long long)got;
    }
    printf("%llu %llu\n", bytes, wrong);
    return wrong != 0;
}
