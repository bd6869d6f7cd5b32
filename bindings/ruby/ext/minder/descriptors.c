/*
 * Waits for descriptors.
 *
 * Nothing tells Ruby 3.1 that a descriptor is closed, and its number may belong to another file a moment
 * later. A wait therefore trusts a registration only if it was made for the same IO object, and only for
 * FRESH_TIME: then the waiter is checked, and registered once more. A descriptor that was closed while a
 * fiber waits for it becomes an error, and one that was replaced is waited for, CHECK_TIME later at most.
 */

#include "scheduler.h"

#include <errno.h>
#include <poll.h>
#include <ruby/io.h>

/* How long a wait trusts an earlier registration. Most waits end sooner, and then need no system call. */
#define FRESH_TIME (10 * MINDER_MILLISECOND)
/* How often a longer wait is checked. */
#define CHECK_TIME MINDER_SECOND

static struct descriptor *entry(struct scheduler *scheduler, size_t fd) {
    if (fd >= scheduler->descriptor_count) {
        size_t count = scheduler->descriptor_count ? scheduler->descriptor_count : 64;
        while (count <= fd) count *= 2;
        struct descriptor **grown =
            ruby_xrealloc2(scheduler->descriptors, count, sizeof *scheduler->descriptors);
        MEMZERO(grown + scheduler->descriptor_count, struct descriptor *, count - scheduler->descriptor_count);
        scheduler->descriptors = grown;
        scheduler->descriptor_count = count;
    }
    struct descriptor *found = scheduler->descriptors[fd];
    if (!found) {
        found = ZALLOC(struct descriptor);
        list_init(&found->waiters);
        scheduler->descriptors[fd] = found;
    }
    return found;
}

struct descriptor *descriptors_find(struct scheduler *scheduler, VALUE io, int *fd) {
    if (!RB_TYPE_P(io, T_FILE)) rb_raise(rb_eTypeError, "wrong argument type %s (expected IO)", rb_obj_classname(io));
    *fd = minder_descriptor(io);
    if (*fd < 0) rb_raise(rb_eIOError, "closed stream");
    struct descriptor *found = entry(scheduler, (size_t)*fd);
    if (found->io != io) {
        found->io = io;
        found->registered = 0;
        found->kind = FILE_UNKNOWN;
    }
    return found;
}

static uint32_t interest_of(const struct descriptor *descriptor) {
    int events = 0;
    for (const struct link *link = descriptor->waiters.next; link != &descriptor->waiters; link = link->next)
        events |= LIST_ELEMENT(link, struct waiter, queue)->events;
    return (events & RUBY_IO_READABLE ? MINDER_READABLE : 0u) | (events & RUBY_IO_WRITABLE ? MINDER_WRITABLE : 0u);
}

/* Makes the poller report what the waiters of a descriptor want. Returns its status. */
static minder_status arm(struct scheduler *scheduler, struct descriptor *descriptor, int fd) {
    uint32_t interest = interest_of(descriptor);
    if (interest == 0) return MINDER_OK;
    uint32_t once = scheduler->keeps_registrations ? 0 : MINDER_ONESHOT;
    minder_status status = minder_poller_arm(scheduler->poller, fd, interest | once, (uint64_t)fd);
    descriptor->registered = status == MINDER_OK ? interest : 0;
    return status;
}

/* Wakes every waiter of a descriptor with what it waits for, since no wait can tell. */
static void wake_all(struct scheduler *scheduler, struct descriptor *descriptor, bool is_closed) {
    while (!list_is_empty(&descriptor->waiters)) {
        struct waiter *waiter = LIST_ELEMENT(descriptor->waiters.next, struct waiter, queue);
        waiter->ready = waiter->events;
        waiter->is_closed = is_closed;
        scheduler_wake(waiter);
    }
}

/* Polls once, for a wait that must not suspend. */
static int poll_now(int fd, int events) {
    struct pollfd one = { .fd = fd };
    if (events & RUBY_IO_READABLE) one.events |= POLLIN;
    if (events & RUBY_IO_PRIORITY) one.events |= POLLPRI;
    if (events & RUBY_IO_WRITABLE) one.events |= POLLOUT;
    int count;
    while ((count = poll(&one, 1, 0)) < 0 && errno == EINTR) continue;
    if (count < 0) rb_sys_fail("poll");
    if (one.revents & POLLNVAL) rb_syserr_fail(EBADF, NULL);
    if (one.revents & (POLLERR | POLLHUP)) return events;
    return (one.revents & POLLIN ? RUBY_IO_READABLE : 0) | (one.revents & POLLPRI ? RUBY_IO_PRIORITY : 0)
        | (one.revents & POLLOUT ? RUBY_IO_WRITABLE : 0);
}

int descriptors_wait(struct scheduler *scheduler, VALUE io, int events, int64_t timeout) {
    int fd;
    struct descriptor *descriptor = descriptors_find(scheduler, io, &fd);
    if (timeout == 0) return poll_now(fd, events);
    struct waiter waiter;
    waiter_init(&waiter, scheduler, io);
    waiter.fd = fd;
    waiter.events = events;
    waiter.checked_at = scheduler->now;
    list_append(&descriptor->waiters, &waiter.queue);
    uint32_t wanted = interest_of(descriptor);
    if ((descriptor->registered & wanted) != wanted) {
        minder_status status = arm(scheduler, descriptor, fd);
        if (status < 0) {
            int number = minder_last_os_error();
            list_remove(&waiter.queue);
            /* epoll(7) refuses what is always ready. */
            if (number == EPERM) return events;
            if (number == EBADF) rb_syserr_fail(EBADF, NULL);
            minder_raise(status);
        }
    }
    list_append(&scheduler->fresh, &waiter.check);
    scheduler_suspend(&waiter, timeout);
    if (waiter.is_closed) rb_raise(rb_eIOError, "closed stream: it was closed while a fiber waited for it");
    return waiter.ready;
}

void descriptors_report(struct scheduler *scheduler, uint64_t fd, uint32_t flags) {
    if (fd >= scheduler->descriptor_count) return;
    struct descriptor *descriptor = scheduler->descriptors[fd];
    if (!descriptor) return;
    int ready = (flags & MINDER_READABLE ? RUBY_IO_READABLE : 0) | (flags & MINDER_WRITABLE ? RUBY_IO_WRITABLE : 0);
    if (flags & MINDER_CLOSED) ready = RUBY_IO_READABLE | RUBY_IO_WRITABLE;
    bool is_wanted = false;
    for (struct link *link = descriptor->waiters.next, *next; link != &descriptor->waiters; link = next) {
        next = link->next;
        struct waiter *waiter = LIST_ELEMENT(link, struct waiter, queue);
        if (!(waiter->events & ready)) continue;
        waiter->ready = waiter->events & ready;
        scheduler_wake(waiter);
        is_wanted = true;
    }
    if (!scheduler->keeps_registrations) {
        descriptor->registered = 0;
        if (!list_is_empty(&descriptor->waiters) && arm(scheduler, descriptor, (int)fd) < 0)
            wake_all(scheduler, descriptor, false);
        return;
    }
    /* A registration stays while each report finds a fiber that waits for it. */
    if (is_wanted) return;
    if (interest_of(descriptor) != 0 && arm(scheduler, descriptor, (int)fd) == MINDER_OK) return;
    descriptor->registered = 0;
    if (minder_poller_delete(scheduler->poller, (int)fd) < 0) {
        /* The number is closed, or belongs to another file, and a duplicate of the descriptor in a forked
         * process keeps the registration alive. Only a new poller ends its reports. If no descriptor is free
         * for one, the next report tries again. */
        (void)scheduler_renew(scheduler);
    }
}

/* Checks that a waiter waits for the file that it began to wait for, and registers it once more. */
static void check(struct scheduler *scheduler, struct waiter *waiter) {
    struct descriptor *descriptor = scheduler->descriptors[waiter->fd];
    if (minder_descriptor(waiter->object) != waiter->fd) {
        waiter->is_closed = true;
        scheduler_wake(waiter);
        return;
    }
    if (descriptor->io != waiter->object) {
        descriptor->io = waiter->object;
        descriptor->kind = FILE_UNKNOWN;
    }
    if (arm(scheduler, descriptor, waiter->fd) < 0) wake_all(scheduler, descriptor, false);
}

int64_t descriptors_check(struct scheduler *scheduler) {
    struct link *lists[] = { &scheduler->fresh, &scheduler->checked };
    const int64_t times[] = { FRESH_TIME, CHECK_TIME };
    int64_t next = INT64_MAX;
    for (int which = 0; which < 2; which++) {
        while (!list_is_empty(lists[which])) {
            struct waiter *waiter = LIST_ELEMENT(lists[which]->next, struct waiter, check);
            int64_t due = waiter->checked_at + times[which];
            if (due > scheduler->now) {
                if (due < next) next = due;
                break;
            }
            list_remove(&waiter->check);
            waiter->checked_at = scheduler->now;
            list_append(&scheduler->checked, &waiter->check);
            check(scheduler, waiter);
        }
    }
    return next;
}

void descriptors_renew(struct scheduler *scheduler) {
    for (size_t fd = 0; fd < scheduler->descriptor_count; fd++) {
        struct descriptor *descriptor = scheduler->descriptors[fd];
        if (!descriptor) continue;
        descriptor->registered = 0;
        if (arm(scheduler, descriptor, (int)fd) < 0) wake_all(scheduler, descriptor, false);
    }
}

void descriptors_close(struct scheduler *scheduler, int fd) {
    if (fd < 0 || (size_t)fd >= scheduler->descriptor_count || !scheduler->descriptors[fd]) return;
    struct descriptor *descriptor = scheduler->descriptors[fd];
    if (descriptor->registered) minder_poller_delete(scheduler->poller, fd);
    descriptor->registered = 0;
    descriptor->io = 0;
    wake_all(scheduler, descriptor, true);
}

void descriptors_free(struct scheduler *scheduler) {
    for (size_t fd = 0; fd < scheduler->descriptor_count; fd++) ruby_xfree(scheduler->descriptors[fd]);
    ruby_xfree(scheduler->descriptors);
    scheduler->descriptors = NULL;
    scheduler->descriptor_count = 0;
}

size_t descriptors_size(const struct scheduler *scheduler) {
    size_t used = 0;
    for (size_t fd = 0; fd < scheduler->descriptor_count; fd++) used += scheduler->descriptors[fd] != NULL;
    return scheduler->descriptor_count * sizeof(void *) + used * sizeof(struct descriptor);
}
