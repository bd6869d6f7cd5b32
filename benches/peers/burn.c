// burn CPU_MS WAIT_MS PHASES: computes and waits in turn. The computing is measured by the CPU time of
// the process, not by a number of loops, so that it is the same on a busy machine.
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

int main(int count, char **words) {
    if (count < 4) return 2;
    double cpu = atof(words[1]), wait = atof(words[2]);
    int phases = atoi(words[3]);
    for (int phase = 1; phase <= phases; phase++) {
        while (now(CLOCK_PROCESS_CPUTIME_ID) < cpu * phase / phases) {
            for (volatile int turn = 0; turn < 2000; turn++) {}
        }
        double part = wait / phases;
        struct timespec pause = {(time_t)(part / 1e3), (long)((part - (long)(part / 1e3) * 1e3) * 1e6)};
        if (part > 0) clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    return 0;
}
