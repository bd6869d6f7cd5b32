/*
 * What the files of the extension share.
 *
 * Rules for every function here that calls Ruby: a call of Ruby may raise, which is a longjmp(3), or let
 * another thread run. So no lock of the library is held and no memory is owned by a C local across it;
 * what has to be undone is undone by rb_ensure(), or belongs to an object that the collector frees.
 */

#ifndef MINDER_SHIM_H
#define MINDER_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#include "minder.h"
#include <ruby.h>
#include <ruby/version.h>

#ifndef RBOOL
#define RBOOL(value) ((value) ? Qtrue : Qfalse)
#endif

extern VALUE minder_module;

/* How many times this process is a forked copy of another. A forked copy frees nothing of the library. */
extern unsigned minder_forks;

/*
 * The interpreter is ending. Nothing of the library is freed then: to free the last handle of a
 * guardian would release the children, and the end of the process frees the rest.
 */
extern bool minder_is_exiting;

/* Raises what a negative status says, with the text of the library. */
NORETURN(void minder_raise(minder_status status));

/* Raises if a status is an error; returns it otherwise. */
static inline minder_status minder_check(minder_status status) {
    if (status < 0) minder_raise(status);
    return status;
}

/*
 * Returns a time in nanoseconds: nil is MINDER_FOREVER, a negative number is 0, and a time beyond 100 years
 * is MINDER_FOREVER. Rounds up, so that no wait ends early.
 */
int64_t minder_time(VALUE seconds);

/* Returns the number of the descriptor of an IO, or -1 if it is closed. Raises nothing for an IO. */
int minder_descriptor(VALUE io);

void Init_minder_process(void);
void Init_minder_errors(void);
void Init_minder_scheduler(void);
void Init_minder_children(void);

#endif
