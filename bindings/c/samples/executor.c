/* Adds up numbers on four threads. The finisher runs on this thread, and needs no locks. */
#include <minder.h>
#include <stdio.h>

struct job {
    unsigned last, sum;
};

/* Runs on any thread, for at most four jobs at once. */
static int32_t add_up(void *user, void *object) {
    (void)user;
    struct job *job = object;
    for (unsigned number = 1; number <= job->last; number++) job->sum += number;
    return 0;
}

/* Runs on the thread of main(), for one job at a time, as soon as that is processed. */
static int32_t count(void *user, void *object, int32_t result) {
    unsigned *total = user;
    const struct job *job = object;
    if (result == 0) *total += job->sum;
    return 0; /* go on */
}

int main(void) {
    struct job jobs[] = { { 1000, 0 }, { 10, 0 }, { 100, 0 } };
    void *objects[] = { &jobs[0], &jobs[1], &jobs[2] };
    const uint64_t costs[] = { 1000, 10, 100 };

    minder_execute_options options = MINDER_INIT(minder_execute_options);
    options.degree = 4;
    options.order = MINDER_ORDER_LONGEST_FIRST;
    options.costs = costs;
    minder_execute_summary summary = MINDER_INIT(minder_execute_summary);
    unsigned total = 0;
    if (minder_execute(&options, objects, 3, add_up, count, &total, &summary) != MINDER_OK) {
        fprintf(stderr, "executor: %s\n", minder_last_error());
        return 1;
    }
    printf("%d jobs, total %u\n", (int)summary.succeeded, total);
    return 0;
}
