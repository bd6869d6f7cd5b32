/* The start of a child, whose first events may come before it is known. */

#include "children.h"

#include <ruby/thread.h>
#include <stdlib.h>
#include <string.h>

void orphans_free(struct children *children) {
    while (children->orphans) {
        struct orphan *orphan = children->orphans;
        children->orphans = orphan->next;
        for (int queue = 0; queue < QUEUES; queue++) queue_clear(&orphan->child, queue);
        free(orphan);
    }
}

struct child *orphans_find(struct children *children, minder_child_id id) {
    for (struct orphan *orphan = children->orphans; orphan; orphan = orphan->next)
        if (orphan->child.id == id) return &orphan->child;
    if (children->starting == 0) return NULL;
    struct orphan *orphan = calloc(1, sizeof *orphan);
    if (!orphan) return NULL;
    orphan->child.core = children->core;
    orphan->child.id = id;
    orphan->next = children->orphans;
    children->orphans = orphan;
    return &orphan->child;
}

/* Moves what arrived for a child before it was registered to the child. */
static void adopt_orphan(struct children *children, struct child *child) {
    for (struct orphan **place = &children->orphans; *place; place = &(*place)->next) {
        struct orphan *orphan = *place;
        if (orphan->child.id != child->id) continue;
        *place = orphan->next;
        memcpy(child->queues, orphan->child.queues, sizeof child->queues);
        child->notices = orphan->child.notices;
        child->last_number = orphan->child.last_number;
        child->copied = orphan->child.copied;
        child->restarts = orphan->child.restarts;
        child->room = orphan->child.room;
        child->exit = orphan->child.exit;
        child->run_exit = orphan->child.run_exit;
        child->has_exited = orphan->child.has_exited;
        child->is_done = orphan->child.is_done;
        memcpy(child->is_ended, orphan->child.is_ended, sizeof child->is_ended);
        if (orphan->child.pid) child->pid = orphan->child.pid;
        free(orphan);
        break;
    }
    if (child->is_claimed) queue_clear(child, QUEUE_NOTICES);
    if (children->starting == 0) orphans_free(children);
}

struct start {
    VALUE self, value, options, holder;
};

/* Starts a child, and registers it. */
static VALUE start_child(VALUE pointer) {
    const struct start *start = (const struct start *)pointer;
    struct children *children = children_usable(start->self);
    struct child *child;
    TypedData_Get_Struct(start->value, struct child, &child_type, child);
    if (child->core) rb_raise(rb_eRuntimeError, "the child was started already");
    struct launch *launch = RTYPEDDATA_DATA(start->holder);
    launch_describe(launch, start->options);

    struct core *core = children->core;
    struct call call = { .operation = CALL_SPAWN, .command = launch->command, .options = &launch->options };
    while (!call.is_called) {
        children_usable(start->self);
        call.set = core->set;
        core->users++;
        children->starting++;
        rb_nogvl(core_run_call, &call, NULL, NULL, RB_NOGVL_INTR_FAIL);
        children->starting--;
        core->users--;
        /* A signal or Thread#raise may come before the start. It is handled now, and may raise. */
        if (!call.is_called) rb_thread_check_ints();
    }
    if (call.status != MINDER_OK) {
        core_free_set(core);
        minder_raise(call.status);
    }
    core->references++;
    child->core = core;
    RB_OBJ_WRITE(start->value, &child->owner, start->self);
    child->id = call.id;
    child->pid = call.pid;
    child->drops_oldest = launch->options.overflow == MINDER_OVERFLOW_DROP_OLDEST;
    child->has_restarts = launch->options.restart != MINDER_RESTART_NEVER;
    child->is_claimed = !children->is_stream;
    const VALUE pipe = INT2FIX(-1 - MINDER_PIPE);
    bool is_terminal = !NIL_P(option_value(start->options, "terminal"));
    VALUE input = option_value(start->options, "stdin");
    child->has_input = is_terminal ? NIL_P(input) : input == pipe;
    child->is_piped[0] = is_terminal || option_value(start->options, "stdout") == pipe;
    child->is_piped[1] = !is_terminal && option_value(start->options, "stderr") == pipe;
    adopt_orphan(children, child);
    if (!child->is_claimed) children->streaming++;
    if (!child->is_done) rb_hash_aset(children->running, ULL2NUM(child->id), start->value);
    children_list_ready(children, start->value, child);
    core_free_set(core);
    return Qtrue;
}

VALUE children_start(VALUE self, VALUE value, VALUE options) {
    VALUE holder = launch_new();
    struct start start = { self, value, options, holder };
    return rb_ensure(start_child, (VALUE)&start, launch_end, holder);
}
