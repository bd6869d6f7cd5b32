/* A fiber scheduler: what its files share. */

#ifndef MINDER_SCHEDULER_H
#define MINDER_SCHEDULER_H

#include "list.h"
#include "shim.h"
#include "timers.h"

#include <ruby/st.h>

/* How many sources one wait reports. More stay in the kernel, and come first in the next one. */
#define REPORTS_MAX 256

/*
 * A fiber that waits. It lies on the stack of that fiber, from before the fiber yields until after it
 * continues. Fibers have separate stacks, so the loop reads and changes it meanwhile.
 */
struct waiter {
    /* In `waiters` of the scheduler, through which the collector finds the fiber. */
    struct link all;
    /* In `ready` of the scheduler, or in the list of a descriptor. */
    struct link queue;
    /* In `fresh` or `checked` of the scheduler, if it waits for a descriptor. */
    struct link check;
    struct timer timer;
    struct scheduler *scheduler;
    VALUE fiber;
    /* The IO, or the object that blocks. */
    VALUE object;
    /* When it was checked last, and until when it waits; INT64_MAX for ever. */
    int64_t checked_at, deadline;
    int fd;
    uint32_t pid;
    /* What it waits for, and what is ready, as IO::READABLE and IO::WRITABLE. */
    int events, ready;
    bool is_woken, has_expired, is_closed;
    /* Its fiber runs the loop itself, so nothing resumes it: see yield_to_loop(). */
    bool is_nested;
    /* The scheduler was closed, or the process forked: nothing wakes it. */
    bool is_forgotten;
    /* The waiter with which the same fiber blocks already, below this one on its stack, or NULL. */
    struct waiter *outer;
    /* What else ends with the wait, or NULL. */
    void (*end)(struct waiter *waiter);
};

/* What kind of file a descriptor is. It decides how to read without blocking the thread. */
enum file_kind {
    FILE_UNKNOWN,
    FILE_SOCKET,
    FILE_PIPE,
    /* A file or a block device: never waited for, and read without the lock of the interpreter. */
    FILE_STORED,
    /* Anything else, such as a terminal. */
    FILE_OTHER
};

/* What is known of a descriptor, under its number. */
struct descriptor {
    /* The IO that the rest is about. The collector does not see it: it is compared, never used. */
    VALUE io;
    /* The interest that the poller has: MINDER_READABLE, MINDER_WRITABLE. */
    uint32_t registered;
    enum file_kind kind;
    struct link waiters;
};

/* A task that was resumed, by the loop or by Fiber.schedule. It lies on the stack of what resumed it. */
struct resumption {
    struct scheduler *scheduler;
    struct resumption *below;
    /* nil for the block of a timer, which runs in the fiber of the loop. */
    VALUE fiber;
    /* What is raised in the fiber, as the arguments of `raise`; none if it continues. */
    int argc;
    const VALUE *exception;
};

struct scheduler {
    minder_poller *poller;
    /* The thread of the fibers; nil until one waits. */
    VALUE thread;
    /* Every fiber that waits. */
    struct link waiters;
    /* Those of them that continue in the next turn. */
    struct link ready;
    size_t ready_count;
    /* The fibers that wait for a descriptor: those that were never checked, and the others, by time. */
    struct link fresh, checked;
    struct timers timers;
    /* When the timer of the poller expires; INT64_MAX if it is not set. */
    int64_t alarm_at;
    /* The time at the last look at the clock, in nanoseconds. */
    int64_t now;
    struct descriptor **descriptors;
    size_t descriptor_count;
    /* From fibers that block or sleep to their waiters. */
    st_table *blocked;
    /* From fibers that were unblocked before they blocked to the object. */
    st_table *unblocked_early;
    /* From pids to the waiters of these processes. */
    st_table *processes;
    /* The task that runs, and below it those whose generators run the loop; NULL for none. */
    struct resumption *running;
    /* In a forked process, the fiber that forked: nothing is left to which it could yield. Otherwise nil. */
    VALUE forked;
    /* The exception of a task that a nested loop resumed, for `run`; otherwise nil. */
    VALUE error;
    int turns_without_poll;
    /* How many times this process had been forked when the scheduler was made. */
    unsigned forks;
    /* Whether a registration stays until it is deleted, so that the next wait needs no system call. */
    bool keeps_registrations;
    /* Whether the thread waits without the lock of the interpreter, and has to be notified. */
    bool is_waiting;
    /* The poller has made the descriptor by which the thread waits together with others. */
    bool is_watched;
    bool is_closed;
    /* What the last wait reported and is not handled yet. */
    size_t report_count;
    minder_ready reports[REPORTS_MAX];
};

/* Returns the scheduler of an object that is open. Begins anew in a forked process. */
struct scheduler *scheduler_of(VALUE self);

/* Does the same for a call that may wait. Raises in another thread than that of the fibers. */
struct scheduler *scheduler_here(VALUE self);

/* Makes a waiter for the fiber that runs. It has to be passed to scheduler_suspend(). */
void waiter_init(struct waiter *waiter, struct scheduler *scheduler, VALUE object);

/*
 * Suspends the fiber that runs until its waiter is woken, or `timeout` nanoseconds have passed. Afterwards
 * the waiter is in no list, also if the fiber was interrupted by an exception.
 */
void scheduler_suspend(struct waiter *waiter, int64_t timeout);

/* Lets a fiber continue in the next turn. */
void scheduler_wake(struct waiter *waiter);

/* Replaces the poller, and registers everything once more. Changes nothing if it fails. */
minder_status scheduler_renew(struct scheduler *scheduler);

/* Descriptors: `descriptors.c`. */

/*
 * Suspends the fiber that runs until an IO is ready. Returns what is ready, or 0 after the time-out. Raises
 * if the IO was closed, or its descriptor cannot be waited for.
 */
int descriptors_wait(struct scheduler *scheduler, VALUE io, int events, int64_t timeout);

/* Returns the entry of an open descriptor for this IO. Raises IOError for a closed IO. */
struct descriptor *descriptors_find(struct scheduler *scheduler, VALUE io, int *fd);

/* Handles the report of a descriptor. */
void descriptors_report(struct scheduler *scheduler, uint64_t fd, uint32_t flags);

/* Checks the waiters for which it is time. Returns when the next one is due; INT64_MAX for never. */
int64_t descriptors_check(struct scheduler *scheduler);

/* Registers all descriptors for which fibers wait, with a new poller. */
void descriptors_renew(struct scheduler *scheduler);

/* Wakes the fibers that wait for a descriptor that is about to be closed. */
void descriptors_close(struct scheduler *scheduler, int fd);

void descriptors_free(struct scheduler *scheduler);
size_t descriptors_size(const struct scheduler *scheduler);

/* Transfers: `transfer.c`. */

VALUE scheduler_io_read(int argc, VALUE *argv, VALUE self);
VALUE scheduler_io_write(int argc, VALUE *argv, VALUE self);
VALUE scheduler_io_pread(int argc, VALUE *argv, VALUE self);
VALUE scheduler_io_pwrite(int argc, VALUE *argv, VALUE self);

#endif
