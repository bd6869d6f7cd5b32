/* A binary heap of timers. Starting, cancelling and taking one costs the logarithm of their number. */

#ifndef MINDER_TIMERS_H
#define MINDER_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A timer. It lies in what it belongs to, and is in the heap until it expires or is cancelled. */
struct timer {
    /* Its place in the heap, counted from 1; 0 if it is not there. */
    size_t place;
    /* The object whose block it calls; 0 if it belongs to a fiber that waits. */
    uintptr_t object;
};

/* The deadlines lie in the heap, so that comparisons touch no timer. */
struct timer_slot {
    int64_t at;
    struct timer *timer;
};

struct timers {
    struct timer_slot *slots;
    size_t count, capacity;
};

static inline bool timer_is_set(const struct timer *timer) {
    return timer->place != 0;
}

/* Starts a timer that is not started. Raises NoMemoryError, and changes nothing then. */
void timers_start(struct timers *timers, struct timer *timer, int64_t at);

/* Cancels a timer, if it is started. */
void timers_cancel(struct timers *timers, struct timer *timer);

/* Takes the first timer that has expired; NULL if there is none. */
struct timer *timers_take(struct timers *timers, int64_t now);

/* Cancels all timers, and frees the memory of the heap. */
void timers_clear(struct timers *timers);

/* The deadline of the first timer; INT64_MAX if there is none. */
static inline int64_t timers_next(const struct timers *timers) {
    return timers->count ? timers->slots[0].at : INT64_MAX;
}

#endif
