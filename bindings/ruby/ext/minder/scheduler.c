/*
 * A scheduler of fibers: one loop for each thread that has one.
 *
 * A fiber that has to wait puts a `struct waiter` on its stack, and yields to the loop. The loop polls,
 * wakes the waiters that are ready, and resumes their fibers. All of that happens with the lock of the
 * interpreter; only a wait of the loop releases it.
 *
 * Hooks that are not called often are in lib/minder/scheduler.rb.
 */

#include "scheduler.h"

#include <poll.h>
#include <ruby/io.h>
#include <ruby/thread.h>
#include <time.h>
#include <unistd.h>

/* Tokens of the poller. Descriptors have their numbers. */
#define PROCESS_TOKEN (UINT64_C(1) << 40)
#define ALARM_TOKEN (UINT64_C(1) << 41)
/* How many turns may pass without a look at the descriptors while fibers are ready: a look costs a system
 * call. */
#define TURNS_WITHOUT_POLL 8
/* An alarm that is set although nothing expires then, in nanoseconds. */
#define ALARM_MAX (3600 * MINDER_SECOND)
/* The most fibers that are remembered as unblocked before they blocked, until dead ones are removed. */
#define EARLY_MAX 64

static VALUE scheduler_class, timer_class;

static bool has_work(const struct scheduler *scheduler) {
    return !list_is_empty(&scheduler->waiters) || scheduler->timers.count > 0;
}

/* ---- Memory ---- */

/* A timer that calls a block. */
struct block_timer {
    struct timer timer;
    VALUE scheduler, block;
};

static void mark(void *data) {
    struct scheduler *scheduler = data;
    if (!scheduler->waiters.next) return;
    for (struct link *link = scheduler->waiters.next; link != &scheduler->waiters; link = link->next) {
        struct waiter *waiter = LIST_ELEMENT(link, struct waiter, all);
        /* Pinned: tables have their addresses as keys. */
        rb_gc_mark(waiter->fiber);
        rb_gc_mark(waiter->object);
    }
    for (size_t index = 0; index < scheduler->timers.count; index++) {
        uintptr_t object = scheduler->timers.slots[index].timer->object;
        if (object) rb_gc_mark((VALUE)object);
    }
    if (scheduler->unblocked_early) rb_mark_set(scheduler->unblocked_early);
    rb_gc_mark(scheduler->forked);
    rb_gc_mark(scheduler->thread);
    rb_gc_mark(scheduler->error);
}

static void release(struct scheduler *scheduler) {
    minder_poller_free(scheduler->poller);
    scheduler->poller = NULL;
    descriptors_free(scheduler);
    if (scheduler->blocked) st_free_table(scheduler->blocked);
    if (scheduler->unblocked_early) st_free_table(scheduler->unblocked_early);
    if (scheduler->processes) st_free_table(scheduler->processes);
    scheduler->blocked = scheduler->unblocked_early = scheduler->processes = NULL;
}

static void destroy(void *data) {
    struct scheduler *scheduler = data;
    /* Waiters and timers may be gone already: at the end of the process the collector frees in any order. */
    ruby_xfree(scheduler->timers.slots);
    release(scheduler);
    ruby_xfree(data);
}

static size_t size(const void *data) {
    const struct scheduler *scheduler = data;
    return sizeof(struct scheduler) + descriptors_size(scheduler)
        + scheduler->timers.capacity * sizeof(struct timer_slot)
        + (scheduler->blocked ? st_memsize(scheduler->blocked) : 0);
}

static const rb_data_type_t scheduler_type = {
    .wrap_struct_name = "Minder::Scheduler",
    .function = { .dmark = mark, .dfree = destroy, .dsize = size },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE allocate(VALUE class) {
    struct scheduler *scheduler;
    VALUE self = TypedData_Make_Struct(class, struct scheduler, &scheduler_type, scheduler);
    scheduler->forked = scheduler->thread = scheduler->error = Qnil;
    scheduler->is_closed = true;
    return self;
}

static struct scheduler *structure_of(VALUE self) {
    return rb_check_typeddata(self, &scheduler_type);
}

/* Forgets all waiters: their fibers do not continue in this process. */
static void forget_waiters(struct scheduler *scheduler) {
    while (!list_is_empty(&scheduler->waiters)) {
        struct waiter *waiter = LIST_ELEMENT(scheduler->waiters.next, struct waiter, all);
        waiter->is_forgotten = true;
        list_remove(&waiter->all);
        list_remove(&waiter->queue);
        list_remove(&waiter->check);
    }
    timers_clear(&scheduler->timers);
    scheduler->ready_count = scheduler->report_count = 0;
    st_clear(scheduler->blocked);
    st_clear(scheduler->unblocked_early);
    st_clear(scheduler->processes);
}

struct scheduler *scheduler_of(VALUE self) {
    struct scheduler *scheduler = structure_of(self);
    if (scheduler->is_closed) rb_raise(rb_eRuntimeError, "the scheduler is closed");
    if (scheduler->forks != minder_forks) {
        scheduler->forks = minder_forks;
        forget_waiters(scheduler);
        scheduler->is_waiting = false;
        scheduler->running = NULL;
        scheduler->forked = rb_fiber_current();
        scheduler->thread = scheduler->error = Qnil;
        minder_check(scheduler_renew(scheduler));
    }
    return scheduler;
}

/* Raises if the fibers of a scheduler belong to another thread that lives. */
static void check_thread(struct scheduler *scheduler) {
    VALUE thread = rb_thread_current();
    if (scheduler->thread == thread) return;
    bool is_used = scheduler->running || has_work(scheduler);
    if (is_used && !NIL_P(scheduler->thread) && RTEST(rb_funcall(scheduler->thread, rb_intern("alive?"), 0)))
        rb_raise(rb_eThreadError, "the scheduler belongs to another thread: only `after` and `unblock` work here");
    scheduler->thread = thread;
}

struct scheduler *scheduler_here(VALUE self) {
    struct scheduler *scheduler = scheduler_of(self);
    check_thread(scheduler);
    return scheduler;
}

/* ---- Time ---- */

static int64_t read_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * MINDER_SECOND + now.tv_nsec;
}

/* Returns the end of a time-out that begins now; INT64_MAX for MINDER_FOREVER. */
static int64_t deadline_after(int64_t timeout) {
    return timeout < 0 ? INT64_MAX : read_clock() + timeout;
}

/* ---- Waiters ---- */

void waiter_init(struct waiter *waiter, struct scheduler *scheduler, VALUE object) {
    *waiter = (struct waiter){ .scheduler = scheduler, .fiber = rb_fiber_current(), .object = object, .fd = -1 };
    list_init(&waiter->all);
    list_init(&waiter->queue);
    list_init(&waiter->check);
}

void scheduler_wake(struct waiter *waiter) {
    if (waiter->is_woken) return;
    waiter->is_woken = true;
    list_remove(&waiter->queue);
    list_remove(&waiter->check);
    if (waiter->is_nested) return;
    list_append(&waiter->scheduler->ready, &waiter->queue);
    waiter->scheduler->ready_count++;
}

static void turn(struct scheduler *scheduler, const struct waiter *nested);

NORETURN(static void raise_stopped(void));

static void raise_stopped(void) {
    rb_raise(rb_const_get(scheduler_class, rb_intern("Stopped")), "the scheduler was closed");
}

/*
 * Whether the fiber that runs must not yield. It may have been resumed by the program, from within a task: a
 * generator, say. If it yielded, the task would continue without what it asked the generator for.
 */
static bool is_nested(const struct scheduler *scheduler, VALUE fiber) {
    return fiber == scheduler->forked || (scheduler->running && scheduler->running->fiber != fiber);
}

static VALUE yield_to_loop(VALUE argument) {
    struct waiter *waiter = (struct waiter *)argument;
    struct scheduler *scheduler = waiter->scheduler;
    if (!is_nested(scheduler, waiter->fiber)) return rb_fiber_yield(0, NULL);
    waiter->is_nested = true;
    while (!waiter->is_woken) {
        if (waiter->is_forgotten) raise_stopped();
        turn(scheduler, waiter);
    }
    return Qnil;
}

/* Takes a waiter out of every list. Its fiber may have been resumed by an exception or by the program. */
static VALUE end_wait(VALUE argument) {
    struct waiter *waiter = (struct waiter *)argument;
    struct scheduler *scheduler = waiter->scheduler;
    if (waiter->is_woken && !list_is_empty(&waiter->queue)) scheduler->ready_count--;
    list_remove(&waiter->all);
    list_remove(&waiter->queue);
    list_remove(&waiter->check);
    timers_cancel(&scheduler->timers, &waiter->timer);
    if (waiter->end && !scheduler->is_closed) waiter->end(waiter);
    return Qnil;
}

void scheduler_suspend(struct waiter *waiter, int64_t timeout) {
    struct scheduler *scheduler = waiter->scheduler;
    list_append(&scheduler->waiters, &waiter->all);
    waiter->deadline = deadline_after(timeout);
    if (waiter->deadline != INT64_MAX) timers_start(&scheduler->timers, &waiter->timer, waiter->deadline);
    rb_ensure(yield_to_loop, (VALUE)waiter, end_wait, (VALUE)waiter);
}

/* ---- Tasks ---- */

static VALUE resume(VALUE argument) {
    struct resumption *resumption = (struct resumption *)argument;
    if (resumption->argc == 0) return rb_fiber_resume(resumption->fiber, 0, NULL);
    return rb_funcallv(resumption->fiber, rb_intern("raise"), resumption->argc, resumption->exception);
}

static VALUE end_resume(VALUE argument) {
    struct resumption *resumption = (struct resumption *)argument;
    resumption->scheduler->running = resumption->below;
    return Qnil;
}

/* Resumes a fiber as a task until it waits or ends; with arguments, it raises them there. */
static VALUE run_task(struct scheduler *scheduler, VALUE fiber, int argc, const VALUE *exception) {
    struct resumption resumption = { scheduler, scheduler->running, fiber, argc, exception };
    scheduler->running = &resumption;
    return rb_ensure(resume, (VALUE)&resumption, end_resume, (VALUE)&resumption);
}

/* ---- The loop ---- */

struct wait_call {
    struct scheduler *scheduler;
    int64_t timeout;
    /* A descriptor that is ready when the wait has something to report; MINDER_NO_FD if it is not needed. */
    minder_fd watched;
    minder_status status;
};

static void *wait_without_lock(void *argument) {
    struct wait_call *call = argument;
    struct scheduler *scheduler = call->scheduler;
    if (call->watched != MINDER_NO_FD) {
        struct pollfd one = { .fd = call->watched, .events = POLLIN };
        if (poll(&one, 1, -1) <= 0) return NULL;
        call->timeout = 0;
    }
    call->status = minder_poller_wait(scheduler->poller, call->timeout, scheduler->reports, REPORTS_MAX,
                                      &scheduler->report_count);
    return NULL;
}

static void interrupt_wait(void *poller) {
    minder_poller_notify(poller);
}

static void report(struct scheduler *scheduler, const minder_ready *ready) {
    if (ready->token == ALARM_TOKEN) {
        scheduler->alarm_at = INT64_MAX;
    } else if (ready->token >= PROCESS_TOKEN) {
        st_data_t waiter;
        st_data_t pid = (st_data_t)(ready->token - PROCESS_TOKEN);
        if (st_lookup(scheduler->processes, pid, &waiter)) scheduler_wake((struct waiter *)waiter);
    } else {
        descriptors_report(scheduler, ready->token, ready->flags);
    }
}

/* Handles what the last wait reported. A source may report it only once. */
static void take_reports(struct scheduler *scheduler) {
    size_t count = scheduler->report_count;
    scheduler->report_count = 0;
    for (size_t index = 0; index < count; index++) report(scheduler, &scheduler->reports[index]);
}

/*
 * Sets the timer of the poller, unless it expires earlier anyway: then that wake-up sets it again. One timer
 * that stays costs less than a time-out for each wait. Returns false if no descriptor is free for it.
 */
static bool set_alarm(struct scheduler *scheduler, int64_t at) {
    if (at >= scheduler->alarm_at) return true;
    if (scheduler->alarm_at != INT64_MAX) minder_poller_delete_timer(scheduler->poller, ALARM_TOKEN);
    scheduler->alarm_at = INT64_MAX;
    int64_t delay = at > scheduler->now ? at - scheduler->now : 0;
    minder_status status = minder_poller_add_timer(scheduler->poller, ALARM_TOKEN, delay, 0);
    if (status == MINDER_EXHAUSTED) {
        /* The poller may have the timer nevertheless. */
        minder_poller_delete_timer(scheduler->poller, ALARM_TOKEN);
        return false;
    }
    minder_check(status);
    scheduler->alarm_at = at;
    return true;
}

/* Returns whether a few descriptors are free. */
static bool has_free_descriptors(void) {
    int pipes[2][2], count = 0;
    while (count < 2 && rb_cloexec_pipe(pipes[count]) == 0) count++;
    for (int index = 0; index < count; index++) {
        close(pipes[index][0]);
        close(pipes[index][1]);
    }
    return count == 2;
}

/*
 * Returns the descriptor by which to wait if there are other threads. If the only one of them ends while this
 * one waits, nothing calls interrupt_wait() for a signal any more: Ruby relies on EINTR then, at which a wait of
 * the library does not end.
 *
 * The first call makes what the backend needs for it, a timer included. If it failed for want of descriptors, all
 * later waits would fail, so it is not tried then.
 */
static minder_fd watched_descriptor(struct scheduler *scheduler) {
    if (rb_thread_alone()) return MINDER_NO_FD;
    if (!scheduler->is_watched) {
        if (!has_free_descriptors() || !set_alarm(scheduler, scheduler->now + ALARM_MAX)) return MINDER_NO_FD;
        scheduler->is_watched = true;
    }
    return minder_poller_fd(scheduler->poller);
}

/* Whether nothing can continue: no fiber that the loop resumes, and not the one whose nested loop runs. */
static bool is_idle(const struct scheduler *scheduler, const struct waiter *nested) {
    return scheduler->ready_count == 0 && !(nested && nested->is_woken);
}

/* Polls, and waits if nothing can continue. */
static void poll_sources(struct scheduler *scheduler, const struct waiter *nested) {
    /* An exception ended the last wait, and its reports were left. */
    take_reports(scheduler);
    struct wait_call call = { .scheduler = scheduler, .watched = MINDER_NO_FD };
    if (!is_idle(scheduler, nested)) {
        wait_without_lock(&call);
    } else {
        /* The fibers may have computed for long. */
        scheduler->now = read_clock();
        int64_t next = timers_next(&scheduler->timers);
        int64_t check_at = descriptors_check(scheduler);
        if (check_at < next) next = check_at;
        bool has_alarm = next == INT64_MAX || set_alarm(scheduler, next);
        /* The check may have woken a fiber. */
        if (is_idle(scheduler, nested)) {
            if (has_alarm) {
                call.timeout = MINDER_FOREVER;
                call.watched = watched_descriptor(scheduler);
            } else if (next > scheduler->now) {
                call.timeout = next - scheduler->now;
            }
        }
        /* From here on, unblock() of another thread notifies. No other thread runs before the wait. */
        scheduler->is_waiting = true;
        /* It raises what another thread or a signal handler raises here, with the reports left. */
        rb_nogvl(wait_without_lock, &call, interrupt_wait, scheduler->poller, RB_NOGVL_UBF_ASYNC_SAFE);
        scheduler->is_waiting = false;
    }
    scheduler->now = read_clock();
    minder_check(call.status);
    take_reports(scheduler);
}

static VALUE call_now(VALUE block) {
    return rb_proc_call_with_block(block, 0, NULL, Qnil);
}

/* Calls the block of a timer. If it waits, the loop runs within that wait. */
static void call_block(struct scheduler *scheduler, VALUE block) {
    struct resumption resumption = { .scheduler = scheduler, .below = scheduler->running, .fiber = Qnil };
    scheduler->running = &resumption;
    rb_ensure(call_now, block, end_resume, (VALUE)&resumption);
}

static void run_timers(struct scheduler *scheduler) {
    struct timer *timer;
    while ((timer = timers_take(&scheduler->timers, scheduler->now))) {
        if (timer->object) {
            struct block_timer *owner = LIST_ELEMENT(timer, struct block_timer, timer);
            VALUE block = owner->block;
            owner->block = Qnil;
            call_block(scheduler, block);
        } else {
            struct waiter *waiter = LIST_ELEMENT(timer, struct waiter, timer);
            waiter->has_expired = !waiter->is_woken;
            scheduler_wake(waiter);
        }
    }
}

static VALUE run_protected(VALUE argument) {
    struct resumption *resumption = (struct resumption *)argument;
    return run_task(resumption->scheduler, resumption->fiber, 0, NULL);
}

/*
 * Resumes a task from a nested loop. An exception of it is not for the fiber that runs this loop: that one is
 * stopped, and `run` raises the exception.
 */
static void run_below(struct scheduler *scheduler, VALUE fiber) {
    struct resumption task = { .scheduler = scheduler, .fiber = fiber };
    int state = 0;
    rb_protect(run_protected, (VALUE)&task, &state);
    if (state == 0) return;
    VALUE error = rb_errinfo();
    if (!RTEST(rb_obj_is_kind_of(error, rb_eException))) rb_jump_tag(state);
    rb_set_errinfo(Qnil);
    if (NIL_P(scheduler->error)) scheduler->error = error;
    raise_stopped();
}

/* Resumes the fibers that are ready. Those that become ready meanwhile are for the next turn. */
static void run_ready(struct scheduler *scheduler, const struct waiter *nested) {
    for (size_t count = scheduler->ready_count; count > 0 && !list_is_empty(&scheduler->ready); count--) {
        struct waiter *waiter = LIST_ELEMENT(scheduler->ready.next, struct waiter, queue);
        list_remove(&waiter->queue);
        scheduler->ready_count--;
        if (nested)
            run_below(scheduler, waiter->fiber);
        else
            run_task(scheduler, waiter->fiber, 0, NULL);
    }
}

/*
 * One turn of the loop: resumes what is ready, polls, and wakes what became ready. `nested` is the waiter of the
 * fiber that runs the loop, or NULL.
 */
static void turn(struct scheduler *scheduler, const struct waiter *nested) {
    run_ready(scheduler, nested);
    if (!has_work(scheduler) || (nested && nested->is_woken)) return;
    if (scheduler->ready_count > 0 && ++scheduler->turns_without_poll < TURNS_WITHOUT_POLL) return;
    scheduler->turns_without_poll = 0;
    poll_sources(scheduler, nested);
    run_timers(scheduler);
}

minder_status scheduler_renew(struct scheduler *scheduler) {
    minder_status status = minder_poller_renew(&scheduler->poller);
    if (status < 0) return status;
    scheduler->alarm_at = INT64_MAX;
    scheduler->is_watched = false;
    descriptors_renew(scheduler);
    st_index_t count = scheduler->processes->num_entries;
    if (count == 0) return status;
    st_data_t *pids = ALLOCA_N(st_data_t, count);
    st_keys(scheduler->processes, pids, count);
    for (st_index_t index = 0; index < count; index++) {
        st_data_t waiter;
        if (minder_poller_add_process(scheduler->poller, (uint32_t)pids[index], PROCESS_TOKEN + pids[index]) < 0
            && st_lookup(scheduler->processes, pids[index], &waiter))
            scheduler_wake((struct waiter *)waiter);
    }
    return status;
}

/* ---- Methods ---- */

/* Opens the poller; `backend` is a name, or nil for the best one. */
static VALUE open_backend(VALUE self, VALUE backend) {
    struct scheduler *scheduler = structure_of(self);
    if (scheduler->poller) rb_raise(rb_eRuntimeError, "the scheduler is open already");
    const char *name = NIL_P(backend) ? NULL : StringValueCStr(backend);
    minder_check(minder_poller_new(name, &scheduler->poller));
    list_init(&scheduler->waiters);
    list_init(&scheduler->ready);
    list_init(&scheduler->fresh);
    list_init(&scheduler->checked);
    scheduler->blocked = st_init_numtable();
    scheduler->unblocked_early = st_init_numtable();
    scheduler->processes = st_init_numtable();
    scheduler->alarm_at = INT64_MAX;
    scheduler->now = read_clock();
    /* The other backends report closed descriptors in other ways. */
    scheduler->keeps_registrations = strcmp(minder_poller_backend(scheduler->poller), "epoll") == 0;
    scheduler->forks = minder_forks;
    scheduler->is_closed = false;
    return self;
}

static VALUE backend_name(VALUE self) {
    return rb_str_new_cstr(minder_poller_backend(scheduler_of(self)->poller));
}

/* Returns whether a backend can be opened on this machine. */
static VALUE has_backend(VALUE class, VALUE name) {
    minder_poller *poller = NULL;
    minder_status status = minder_poller_new(StringValueCStr(name), &poller);
    minder_poller_free(poller);
    return RBOOL(status == MINDER_OK);
}

/* Raises the exception of a task that a nested loop resumed. */
static void raise_error(struct scheduler *scheduler) {
    VALUE error = scheduler->error;
    if (NIL_P(error)) return;
    scheduler->error = Qnil;
    rb_exc_raise(error);
}

static VALUE turn_once(VALUE self) {
    turn(structure_of(self), NULL);
    return Qnil;
}

/* A task ended by Stopped: an exception of another one stopped its nested loop, or the end of the scheduler. */
static VALUE end_turn(VALUE self, VALUE stopped) {
    struct scheduler *scheduler = structure_of(self);
    raise_error(scheduler);
    if (!scheduler->is_closed) rb_exc_raise(stopped);
    return Qnil;
}

static void turn_outermost(VALUE self) {
    VALUE stopped_class = rb_const_get(scheduler_class, rb_intern("Stopped"));
    rb_rescue2(turn_once, self, end_turn, self, stopped_class, (VALUE)0);
    raise_error(structure_of(self));
}

static VALUE run(VALUE self) {
    struct scheduler *scheduler = scheduler_here(self);
    while (has_work(scheduler)) {
        turn_outermost(self);
        /* A task may have closed it, or forked. */
        if (scheduler->is_closed) break;
        scheduler = scheduler_of(self);
    }
    return Qnil;
}

/* One turn, for a program with a loop of its own. Returns whether there is work left. */
static VALUE run_once(VALUE self) {
    struct scheduler *scheduler = scheduler_here(self);
    if (has_work(scheduler)) turn_outermost(self);
    return RBOOL(has_work(scheduler));
}

static VALUE release_scheduler(VALUE self) {
    struct scheduler *scheduler = structure_of(self);
    if (scheduler->is_closed) return Qnil;
    check_thread(scheduler);
    forget_waiters(scheduler);
    release(scheduler);
    scheduler->is_closed = true;
    return Qnil;
}

static VALUE is_closed(VALUE self) {
    return RBOOL(structure_of(self)->is_closed);
}

/* Returns the fibers that wait with a time limit, and when that ends, in seconds of the monotonic clock. */
static VALUE waiting(VALUE self) {
    struct scheduler *scheduler = structure_of(self);
    VALUE found = rb_hash_new();
    if (scheduler->is_closed) return found;
    for (struct link *link = scheduler->waiters.next; link != &scheduler->waiters; link = link->next) {
        struct waiter *waiter = LIST_ELEMENT(link, struct waiter, all);
        if (waiter->deadline != INT64_MAX) rb_hash_aset(found, waiter->fiber, DBL2NUM((double)waiter->deadline / 1e9));
    }
    return found;
}

/* Returns all fibers that wait, except those that run the loop themselves: they notice its end. */
static VALUE suspended(VALUE self) {
    struct scheduler *scheduler = structure_of(self);
    VALUE found = rb_ary_new();
    if (scheduler->is_closed) return found;
    check_thread(scheduler);
    for (struct link *link = scheduler->waiters.next; link != &scheduler->waiters; link = link->next) {
        struct waiter *waiter = LIST_ELEMENT(link, struct waiter, all);
        if (!waiter->is_nested) rb_ary_push(found, waiter->fiber);
    }
    return found;
}

static VALUE start(VALUE self, VALUE fiber) {
    run_task(scheduler_here(self), fiber, 0, NULL);
    return fiber;
}

/*
 * Raises in a fiber that waits: the arguments after the fiber are those of `raise`. A task whose generator runs
 * the loop now gets the exception through the generator. Returns false, and does nothing, for a task whose
 * generator waits below that of another task.
 */
static VALUE raise_in(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 2, UNLIMITED_ARGUMENTS);
    struct scheduler *scheduler = scheduler_here(self);
    const struct resumption *top = scheduler->running;
    /* The block of a timer lets the exception through. */
    if (top && NIL_P(top->fiber)) top = top->below;
    for (const struct resumption *task = top; task; task = task->below) {
        if (task->fiber != argv[0]) continue;
        if (task != top) return Qfalse;
        rb_exc_raise(rb_make_exception(argc - 1, argv + 1));
    }
    run_task(scheduler, argv[0], argc - 1, argv + 1);
    return Qtrue;
}

static VALUE io_wait(VALUE self, VALUE io, VALUE events, VALUE timeout) {
    struct scheduler *scheduler = scheduler_here(self);
    int wanted = NUM2INT(events);
    if (!(wanted & (RUBY_IO_READABLE | RUBY_IO_WRITABLE | RUBY_IO_PRIORITY)))
        rb_raise(rb_eArgError, "the wait is for nothing: expected IO::READABLE, IO::WRITABLE or IO::PRIORITY");
    /* The poller has no urgent data. */
    if (!(wanted & (RUBY_IO_READABLE | RUBY_IO_WRITABLE)))
        return rb_funcall(self, rb_intern("wait_for_priority"), 2, io, timeout);
    int ready = descriptors_wait(scheduler, io, wanted, minder_time(timeout));
    return ready ? INT2FIX(ready) : Qfalse;
}

/* Forgets a descriptor that is about to be closed, and wakes the fibers that wait for it. */
static VALUE forget(VALUE self, VALUE fd) {
    descriptors_close(scheduler_of(self), NUM2INT(fd));
    return Qnil;
}

static void end_block(struct waiter *waiter) {
    st_data_t fiber = waiter->fiber;
    if (waiter->outer)
        st_insert(waiter->scheduler->blocked, fiber, (st_data_t)waiter->outer);
    else
        st_delete(waiter->scheduler->blocked, &fiber, NULL);
}

/* Returns the waiter of a fiber for an object. A sleep has none: the object is that of the caller. */
static struct waiter *find_blocked(struct waiter *top, VALUE blocker) {
    for (struct waiter *waiter = top; waiter; waiter = waiter->outer)
        if (waiter->object == blocker) return waiter;
    return top;
}

/* Suspends the fiber until it is unblocked. Returns false after the time-out. */
static bool block_fiber(struct scheduler *scheduler, VALUE blocker, int64_t timeout) {
    struct waiter waiter;
    waiter_init(&waiter, scheduler, blocker);
    st_data_t fiber = waiter.fiber, early;
    if (st_delete(scheduler->unblocked_early, &fiber, &early) && (VALUE)early == blocker) return true;
    st_data_t outer;
    if (st_lookup(scheduler->blocked, waiter.fiber, &outer)) waiter.outer = (struct waiter *)outer;
    st_insert(scheduler->blocked, waiter.fiber, (st_data_t)&waiter);
    waiter.end = end_block;
    scheduler_suspend(&waiter, timeout);
    return !waiter.has_expired;
}

static VALUE block(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 1, 2);
    return RBOOL(block_fiber(scheduler_here(self), argv[0], minder_time(argc > 1 ? argv[1] : Qnil)));
}

/* Hook of sleep, with the arguments of it. */
static VALUE kernel_sleep(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 0, 1);
    VALUE duration = argc > 0 ? argv[0] : Qnil;
    int64_t time = minder_time(duration);
    /* As without a scheduler. */
    if (time == 0 && NUM2DBL(duration) < 0) rb_raise(rb_eArgError, "time interval must not be negative");
    block_fiber(scheduler_here(self), ID2SYM(rb_intern("sleep")), time);
    return Qtrue;
}

static int is_dead(st_data_t fiber, st_data_t value, st_data_t argument) {
    return RTEST(rb_fiber_alive_p((VALUE)fiber)) ? ST_CONTINUE : ST_DELETE;
}

/* Called by any thread, with the lock of the interpreter. */
static VALUE unblock(VALUE self, VALUE blocker, VALUE fiber) {
    /* No fiber of a closed scheduler continues. */
    if (structure_of(self)->is_closed) return Qfalse;
    struct scheduler *scheduler = scheduler_of(self);
    st_data_t waiter;
    if (st_lookup(scheduler->blocked, fiber, &waiter)) {
        scheduler_wake(find_blocked((struct waiter *)waiter, blocker));
    } else if (RTEST(rb_fiber_alive_p(fiber))) {
        if (scheduler->unblocked_early->num_entries >= EARLY_MAX) st_foreach(scheduler->unblocked_early, is_dead, 0);
        st_insert(scheduler->unblocked_early, fiber, blocker);
    }
    if (scheduler->is_waiting) minder_check(minder_poller_notify(scheduler->poller));
    return Qtrue;
}

/* Lets the other fibers that are ready run first. */
static VALUE yield_turn(VALUE self) {
    struct scheduler *scheduler = scheduler_here(self);
    struct waiter waiter;
    waiter_init(&waiter, scheduler, Qnil);
    scheduler_wake(&waiter);
    scheduler_suspend(&waiter, MINDER_FOREVER);
    return Qnil;
}

static void end_process_wait(struct waiter *waiter) {
    st_data_t pid = (st_data_t)waiter->pid, found;
    if (!st_lookup(waiter->scheduler->processes, pid, &found) || (struct waiter *)found != waiter) return;
    st_delete(waiter->scheduler->processes, &pid, NULL);
    minder_poller_delete_process(waiter->scheduler->poller, waiter->pid);
}

/*
 * Suspends the fiber until a process has exited. Returns false if it is not known (any more), or cannot be
 * watched here, or another fiber waits for it.
 */
static VALUE wait_for_exit(VALUE self, VALUE pid) {
    struct scheduler *scheduler = scheduler_here(self);
    struct waiter waiter;
    waiter_init(&waiter, scheduler, Qnil);
    waiter.pid = NUM2UINT(pid);
    if (st_lookup(scheduler->processes, waiter.pid, NULL)) return Qfalse;
    if (minder_poller_add_process(scheduler->poller, waiter.pid, PROCESS_TOKEN + waiter.pid) < 0) return Qfalse;
    st_insert(scheduler->processes, waiter.pid, (st_data_t)&waiter);
    waiter.end = end_process_wait;
    scheduler_suspend(&waiter, MINDER_FOREVER);
    return Qtrue;
}

/* ---- Timers that call a block ---- */

static void timer_mark(void *data) {
    struct block_timer *timer = data;
    rb_gc_mark(timer->scheduler);
    rb_gc_mark(timer->block);
}

static const rb_data_type_t timer_type = {
    .wrap_struct_name = "Minder::Timer",
    .function = { .dmark = timer_mark, .dfree = RUBY_TYPED_DEFAULT_FREE },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

/* A timer in the heap is marked by its scheduler, so that it is never freed there. */
static VALUE after(VALUE self, VALUE seconds) {
    struct scheduler *scheduler = scheduler_of(self);
    rb_need_block();
    int64_t delay = minder_time(seconds);
    if (delay < 0) rb_raise(rb_eArgError, "the time of a timer is too long, or nil");
    struct block_timer *timer;
    VALUE object = TypedData_Make_Struct(timer_class, struct block_timer, &timer_type, timer);
    timer->scheduler = self;
    timer->block = rb_block_proc();
    timer->timer.object = (uintptr_t)object;
    timers_start(&scheduler->timers, &timer->timer, deadline_after(delay));
    /* It may be another thread. */
    if (scheduler->is_waiting) minder_check(minder_poller_notify(scheduler->poller));
    return object;
}

static VALUE timer_cancel(VALUE self) {
    struct block_timer *timer = rb_check_typeddata(self, &timer_type);
    bool was_set = timer_is_set(&timer->timer);
    if (was_set) timers_cancel(&structure_of(timer->scheduler)->timers, &timer->timer);
    timer->block = Qnil;
    return RBOOL(was_set);
}

static VALUE timer_is_pending(VALUE self) {
    struct block_timer *timer = rb_check_typeddata(self, &timer_type);
    return RBOOL(timer_is_set(&timer->timer));
}

void Init_minder_scheduler(void) {
    scheduler_class = rb_define_class_under(minder_module, "Scheduler", rb_cObject);
    timer_class = rb_define_class_under(minder_module, "Timer", rb_cObject);
    rb_undef_alloc_func(timer_class);
    rb_define_alloc_func(scheduler_class, allocate);
    rb_define_singleton_method(scheduler_class, "backend?", has_backend, 1);
    rb_define_private_method(scheduler_class, "open_backend", open_backend, 1);
    rb_define_private_method(scheduler_class, "release", release_scheduler, 0);
    rb_define_private_method(scheduler_class, "suspended", suspended, 0);
    rb_define_private_method(scheduler_class, "start", start, 1);
    rb_define_private_method(scheduler_class, "forget", forget, 1);
    rb_define_private_method(scheduler_class, "wait_for_exit", wait_for_exit, 1);
    rb_define_private_method(scheduler_class, "raise_in", raise_in, -1);
    rb_define_method(scheduler_class, "backend", backend_name, 0);
    rb_define_method(scheduler_class, "run", run, 0);
    rb_define_method(scheduler_class, "run_once", run_once, 0);
    rb_define_method(scheduler_class, "closed?", is_closed, 0);
    rb_define_method(scheduler_class, "waiting", waiting, 0);
    rb_define_method(scheduler_class, "after", after, 1);
    rb_define_method(scheduler_class, "io_wait", io_wait, 3);
    rb_define_method(scheduler_class, "block", block, -1);
    rb_define_method(scheduler_class, "kernel_sleep", kernel_sleep, -1);
    rb_define_method(scheduler_class, "unblock", unblock, 2);
    rb_define_method(scheduler_class, "yield", yield_turn, 0);
    rb_define_method(scheduler_class, "io_read", scheduler_io_read, -1);
    rb_define_method(scheduler_class, "io_write", scheduler_io_write, -1);
    rb_define_method(scheduler_class, "io_pread", scheduler_io_pread, -1);
    rb_define_method(scheduler_class, "io_pwrite", scheduler_io_pwrite, -1);
    rb_define_method(timer_class, "cancel", timer_cancel, 0);
    rb_define_method(timer_class, "pending?", timer_is_pending, 0);
}
