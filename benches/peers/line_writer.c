/* A child that writes many lines, in writes of odd sizes that do not end with a line:
 *   line_writer JOB [BYTES]
 * BYTES, or else $LINE_WRITER_BYTES, is exact. The lines are those of lines.h; a write has 1 byte to 100 KiB. They are made just
 * before the write, in a buffer that stays in the processor's cache. With $SPENT it writes down its processor time.
 * Build: cc -O2 -static -o line_writer line_writer.c */
#include "lines.h"
#include "spent.h"

enum { CHUNK_MOST = 100 * 1024 };

static char room[CHUNK_MOST + LINE_MOST];

int main(int argc, char **argv)
{
    unsigned long long bytes = size_of(argc > 2 ? argv[2] : getenv("LINE_WRITER_BYTES"));
    long long before = spent_us();
    size_t have = 0, want, n;
    struct lines lines;
    uint64_t random;

    if (argc < 2 || bytes < LINE_LEAST) {
        fprintf(stderr, "usage: line_writer JOB [BYTES], at least %d of them\n", LINE_LEAST);
        return 2;
    }
    lines_begin(&lines, (unsigned)atoi(argv[1]), bytes);
    random = lines.random ^ 0x5555;
    do {
        want = next_random(&random) % CHUNK_MOST | 1;
        while (have < want && (n = lines_next(&lines, room + have)) > 0)
            have += n;
        if (want > have)
            want = have;
        if (put(room, want) != 0) {
            perror("line_writer");
            return 1;
        }
        have -= want;
        memmove(room, room + want, have);
    } while (have > 0 || lines.left > 0);
    return spent_tell(before);
}
