/* What a child spends between the start of its main and its end, appended to the file that $SPENT names: a line
 * of microseconds, user and system. Its start and its exit count for the runner. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static inline long long spent_us(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000LL + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

/* Returns 0 if that went well. One write to a file opened for appending: lines of many children do not mix. */
static inline int spent_tell(long long before)
{
    const char *name = getenv("SPENT");
    char line[32];
    int n, file;

    if (!name || !*name)
        return 0;
    if ((file = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) < 0)
        return 1;
    n = snprintf(line, sizeof line, "%lld\n", spent_us() - before);
    return write(file, line, (size_t)n) != n || close(file) != 0;
}

/* Writes all to standard output; returns 0 if that went well. */
static inline int put(const char *text, size_t n)
{
    while (n > 0) {
        ssize_t done = write(1, text, n);

        if (done < 0 && errno != EINTR)
            return 1;
        if (done > 0)
            text += done, n -= (size_t)done;
    }
    return 0;
}

/* A number of bytes, with K, M or G; 0 if it is none. */
static inline unsigned long long size_of(const char *text)
{
    char *end;
    unsigned long long n = text ? strtoull(text, &end, 10) : 0;

    if (n == 0)
        return 0;
    switch (*end) {
    case 'G': n <<= 10; /* fallthrough */
    case 'M': n <<= 10; /* fallthrough */
    case 'K': n <<= 10; end++;
    }
    return *end ? 0 : n;
}
