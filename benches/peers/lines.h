/* The lines that line_writer.c writes and verify.c knows: `JOB:NUMBER:FILLER SUM`, of random length, the same wherever they are
 * made. SUM is eight digits of a hash over all that stands before it in the line. */
#include <stdint.h>
#include <string.h>

/* A line has at most 200 bytes; the last takes up to LINE_LEAST more, so that a job has exactly its number of bytes. */
enum { FILLER_MOST = 170, LINE_LEAST = 64, LINE_MOST = 300, SUM = 8, TABLE = 4096 };

struct lines {
    uint64_t random;
    unsigned long number;
    unsigned long long left; /* How many bytes the job still has to write. */
    size_t head;
    char name[16]; /* `JOB:` */
};

static char table[TABLE + LINE_MOST];

/* Knuth's multiplier, and a shift that brings the high bits down. */
static inline uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 6364136223846793005ULL;
    return hash ^ hash >> 31;
}

static inline uint64_t hash_of(const char *text, size_t n)
{
    uint64_t hash = n, word;

    for (; n >= 8; n -= 8, text += 8) {
        memcpy(&word, text, 8);
        hash = mix(hash, word);
    }
    for (word = 0; n > 0; n--, text++)
        word = word << 8 | (unsigned char)*text;
    return mix(hash, word);
}

static inline void put_sum(char *to, uint64_t hash)
{
    int i;

    for (i = 0; i < SUM; i++, hash >>= 4)
        to[i] = "0123456789abcdef"[hash & 15];
}

static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Writes a number and returns how many digits it has. */
static inline size_t put_number(char *to, unsigned long number)
{
    char digits[24];
    size_t n = sizeof digits;

    do
        digits[--n] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    memcpy(to, digits + n, sizeof digits - n);
    return sizeof digits - n;
}

static void lines_begin(struct lines *lines, unsigned job, unsigned long long bytes)
{
    uint64_t random = 88172645463325252ULL;
    size_t i;

    if (!table[0])
        for (i = 0; i < sizeof table; i++)
            table[i] = (char)(' ' + next_random(&random) % 95);
    lines->random = mix(job + 1, bytes) | 1;
    lines->number = 0;
    lines->left = bytes;
    lines->head = put_number(lines->name, job);
    lines->name[lines->head++] = ':';
}

/* Writes the next line and returns its length; 0 after the last line. The buffer has room for LINE_MOST. */
static inline size_t lines_next(struct lines *lines, char *to)
{
    uint64_t random = next_random(&lines->random);
    size_t head, n;

    if (lines->left == 0)
        return 0;
    memcpy(to, lines->name, sizeof lines->name);
    head = lines->head + put_number(to + lines->head, lines->number++);
    to[head++] = ':';
    n = head + random % (FILLER_MOST + 1) + SUM + 1;
    if (lines->left < n + LINE_LEAST)
        n = lines->left;
    memcpy(to + head, table + (random >> 32) % TABLE, n - head - SUM - 1);
    put_sum(to + n - SUM - 1, hash_of(to, n - SUM - 1));
    to[n - 1] = '\n';
    lines->left -= n;
    return n;
}
