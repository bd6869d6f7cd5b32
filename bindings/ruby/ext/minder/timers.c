/* A binary heap of timers. */

#include "timers.h"

#include <ruby.h>

static void put(struct timers *timers, size_t index, struct timer_slot slot) {
    timers->slots[index] = slot;
    slot.timer->place = index + 1;
}

/* Moves a slot towards the root, to its place. Returns whether it moved. */
static bool rise(struct timers *timers, size_t index, struct timer_slot slot) {
    size_t start = index;
    while (index > 0) {
        size_t parent = (index - 1) / 2;
        if (timers->slots[parent].at <= slot.at) break;
        put(timers, index, timers->slots[parent]);
        index = parent;
    }
    put(timers, index, slot);
    return index != start;
}

static void sink(struct timers *timers, size_t index, struct timer_slot slot) {
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= timers->count) break;
        if (child + 1 < timers->count && timers->slots[child + 1].at < timers->slots[child].at) child++;
        if (timers->slots[child].at >= slot.at) break;
        put(timers, index, timers->slots[child]);
        index = child;
    }
    put(timers, index, slot);
}

void timers_start(struct timers *timers, struct timer *timer, int64_t at) {
    if (timers->count == timers->capacity) {
        size_t capacity = timers->capacity ? 2 * timers->capacity : 64;
        timers->slots = ruby_xrealloc2(timers->slots, capacity, sizeof *timers->slots);
        timers->capacity = capacity;
    }
    rise(timers, timers->count++, (struct timer_slot){ .at = at, .timer = timer });
}

void timers_cancel(struct timers *timers, struct timer *timer) {
    if (!timer_is_set(timer)) return;
    size_t index = timer->place - 1;
    timer->place = 0;
    struct timer_slot last = timers->slots[--timers->count];
    if (index == timers->count) return;
    if (!rise(timers, index, last)) sink(timers, index, last);
}

struct timer *timers_take(struct timers *timers, int64_t now) {
    if (timers_next(timers) > now) return NULL;
    struct timer *timer = timers->slots[0].timer;
    timers_cancel(timers, timer);
    return timer;
}

void timers_clear(struct timers *timers) {
    for (size_t index = 0; index < timers->count; index++) timers->slots[index].timer->place = 0;
    ruby_xfree(timers->slots);
    *timers = (struct timers){ 0 };
}
