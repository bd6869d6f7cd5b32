/* Runs a program and writes one line about it:
 *   meter FILE PROGRAM [ARGUMENT]...
 *   wall_us tree_us self_us maxrss_kb status
 * tree: processor time, user and system, of the program and of all that was waited for below it (wait4).
 * self: of the program alone, all its threads, in the kernel's ticks (utime and stime of /proc/PID/stat, read while it
 * is a zombie). maxrss: the largest of the tree; of no use for children of a big parent, which inherit its peak. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static long long self_us(pid_t pid)
{
    char name[64], text[1024], *end;
    unsigned long user, kernel;
    FILE *stat;
    size_t n;

    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    if (!(stat = fopen(name, "r")))
        return 0;
    n = fread(text, 1, sizeof text - 1, stat);
    fclose(stat);
    text[n] = 0;
    /* After the name, which may hold anything: state and 10 more fields, then the two wanted. */
    end = strrchr(text, ')');
    if (!end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) != 2)
        return 0;
    return (long long)(user + kernel) * 1000000LL / sysconf(_SC_CLK_TCK);
}

int main(int argc, char **argv)
{
    long long begin, wall, alone, tree;
    struct rusage used;
    siginfo_t info;
    int status;
    pid_t child;
    FILE *out;

    if (argc < 3) {
        fprintf(stderr, "usage: meter FILE PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    begin = now_us();
    child = vfork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    if (child < 0 || waitid(P_PID, child, &info, WEXITED | WNOWAIT) != 0) {
        perror("meter");
        return 1;
    }
    wall = now_us() - begin;
    alone = self_us(child);
    if (wait4(child, &status, 0, &used) != child || !(out = fopen(argv[1], "w"))) {
        perror("meter");
        return 1;
    }
    tree = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000LL + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    fprintf(out, "%lld %lld %lld %ld %d\n", wall, tree, alone, used.ru_maxrss,
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return fclose(out) != 0;
}
