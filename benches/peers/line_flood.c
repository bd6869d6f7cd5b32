/* A child that writes as fast as it can, in blocks of 64 KiB, each of which begins with its number:
 *   line_flood BYTES[K|M|G]
 * With $SPENT it writes down its processor time. Build: cc -O2 -static -o line_flood line_flood.c */
#include "block.h"
#include "spent.h"

static char block[BLOCK];

int main(int argc, char **argv)
{
    unsigned long long left = argc == 2 ? size_of(argv[1]) : 0;
    long long before = spent_us();
    uint64_t number;
    size_t n;

    if (left == 0) {
        fprintf(stderr, "usage: line_flood BYTES[K|M|G]\n");
        return 2;
    }
    memset(block, 'b', sizeof block);
    for (number = 0; left > 0; number++, left -= n) {
        n = left < BLOCK ? (size_t)left : BLOCK;
        memcpy(block, &number, sizeof number);
        if (put(block, n) != 0) {
            perror("line_flood");
            return 1;
        }
    }
    return spent_tell(before);
}
