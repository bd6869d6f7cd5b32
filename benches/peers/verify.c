/* Checks what line_writer wrote, as it came through a runner:
 *   verify JOBS BYTES < all
 *   bytes lines torn disorder switches wrong
 * torn: lines that line_writer did not write, by their form and their sum, a rest without newline too. disorder: whole lines that do
 * not follow the last one of their job. switches: how often a line is of another job than the one before it (the first
 * counts, so jobs in blocks give JOBS). wrong: jobs of which not exactly all BYTES came, by their number and by a hash over
 * all their lines; what is expected is made anew, after the end of the input. Ends with 1 unless all is well.
 * Build: cc -O2 -static -o verify verify.c */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "lines.h"
#include "spent.h"

enum { ROOM = 1 << 20, JOBS_MOST = 1 << 16 };

struct job {
    unsigned long next;
    unsigned long long bytes;
    uint64_t hash;
};

static struct job jobs[JOBS_MOST];
static unsigned long count, last = JOBS_MOST;
static unsigned long long bytes, all, torn, disorder, switches;
static char room[ROOM];

/* Reads a number and the colon behind it; returns what follows, or NULL. */
static const char *number(const char *text, const char *end, unsigned long *value)
{
    const char *begin = text;

    for (*value = 0; text < end && *text >= '0' && *text <= '9' && text - begin < 12; text++)
        *value = *value * 10 + (unsigned long)(*text - '0');
    return text > begin && text < end && *text == ':' ? text + 1 : NULL;
}

/* Takes a line of n bytes, newline included. */
static void take(const char *text, size_t n)
{
    const char *end = text + n - 1, *rest;
    unsigned long which, line;
    char sum[SUM];
    uint64_t hash;

    all++;
    if (n <= SUM + 1 || !(rest = number(text, end - SUM, &which)) || which >= count ||
        !number(rest, end - SUM, &line)) {
        torn++;
        return;
    }
    hash = hash_of(text, n - SUM - 1);
    put_sum(sum, hash);
    if (memcmp(sum, end - SUM, SUM) != 0) {
        torn++;
        return;
    }
    if (which != last)
        switches++;
    last = which;
    if (line != jobs[which].next)
        disorder++;
    jobs[which].next = line + 1;
    jobs[which].bytes += n;
    jobs[which].hash = mix(jobs[which].hash, hash);
}

/* Reads to the end of the input. A line longer than the room is torn, and is passed over. */
static int take_all(void)
{
    size_t have = 0;
    ssize_t got;

    while ((got = read(0, room + have, ROOM - have)) != 0) {
        char *at = room, *newline;

        if (got < 0) {
            if (errno == EINTR)
                continue;
            perror("verify");
            return 1;
        }
        bytes += (unsigned long long)got;
        have += (size_t)got;
        while ((newline = memchr(at, '\n', have))) {
            take(at, (size_t)(newline + 1 - at));
            have -= (size_t)(newline + 1 - at);
            at = newline + 1;
        }
        if (have == ROOM)
            torn++, have = 0;
        memmove(room, at, have);
    }
    torn += have > 0;
    return 0;
}

static unsigned long wrong_jobs(unsigned long long each)
{
    unsigned long wrong = 0, which;
    char line[LINE_MOST];

    for (which = 0; which < count; which++) {
        struct lines lines;
        uint64_t hash = 0;
        size_t n;

        lines_begin(&lines, (unsigned)which, each);
        while ((n = lines_next(&lines, line)) > 0)
            hash = mix(hash, hash_of(line, n - SUM - 1));
        wrong += jobs[which].bytes != each || jobs[which].next != lines.number || jobs[which].hash != hash;
    }
    return wrong;
}

int main(int argc, char **argv)
{
    unsigned long long each = argc == 3 ? size_of(argv[2]) : 0;
    unsigned long wrong;

    if (each < LINE_LEAST || (count = strtoul(argv[1], NULL, 10)) < 1 || count > JOBS_MOST) {
        fprintf(stderr, "usage: verify JOBS BYTES, at most %d and at least %d\n", JOBS_MOST, LINE_LEAST);
        return 2;
    }
    if (take_all() != 0)
        return 2;
    wrong = wrong_jobs(each);
    printf("%llu %llu %llu %llu %llu %lu\n", bytes, all, torn, disorder, switches, wrong);
    return torn || disorder || wrong;
}
