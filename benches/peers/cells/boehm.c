/* A chain of cells in the heap of Boehm's collector: boehm CELLS. Prints rows `name,value`.

   The collector takes every word of the stack and of static data for an address. One such word would keep a
   part of the chain alive, so the links are cut before the chain is dropped. */
#include <gc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct cell {
    uintptr_t first;
    struct cell *rest;
};

static struct cell *chain;

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double cpu, wall;

static void start(void)
{
    cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    wall = now(CLOCK_MONOTONIC);
}

static void stop(const char *name, long cells)
{
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = now(CLOCK_MONOTONIC) - wall;
    printf("%s_ns,%.6f\n%s_ms,%.6f\n%s_wall_ms,%.6f\n", name, cpu * 1e9 / (double)cells, name, cpu * 1e3, name,
           wall * 1e3);
}

static void grow(long cells)
{
    for (long i = 0; i < cells; i++) {
        struct cell *cell = GC_MALLOC(sizeof *cell);
        if (!cell)
            exit(1);
        /* No address is as small. */
        cell->first = 1;
        cell->rest = chain;
        chain = cell;
    }
}

/* Takes about half of the cells out of the chain, and returns how many are left. */
static long thin(void)
{
    uint64_t random = 1;
    long left = 1;
    struct cell *last = chain;
    for (struct cell *cell = chain->rest; cell; cell = cell->rest) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if (random >> 63 == 0) {
            left++;
            last->rest = cell;
            last = cell;
        }
    }
    last->rest = NULL;
    return left;
}

static void drop(void)
{
    struct cell *cell = chain;
    while (cell) {
        struct cell *rest = cell->rest;
        cell->rest = NULL;
        cell = rest;
    }
    chain = NULL;
}

int main(int argc, char **argv)
{
    long cells = argc == 2 ? atol(argv[1]) : 0;
    if (cells < 2)
        return 2;
    GC_INIT();
    start();
    grow(cells);
    stop("build", cells);
    GC_gcollect();
    start();
    GC_gcollect();
    stop("live", cells);
    long left = thin();
    start();
    GC_gcollect();
    stop("half", cells);
    start();
    grow(cells - left);
    stop("refill_half", cells - left);
    drop();
    start();
    GC_gcollect();
    stop("dead", cells);
    start();
    grow(cells);
    stop("refill_dead", cells);
    return 0;
}
