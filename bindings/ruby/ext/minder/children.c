/* Minder::Children: what lib/minder/children.rb and lib/minder/waiting.rb build on. */

#include "children.h"

#include <ruby/thread.h>
#include <stdlib.h>

/* How many times `route` takes events before other threads and fibers run again. */
#define TAKES_MAX 512

static void mark_children(void *pointer) {
    struct children *children = pointer;
    rb_gc_mark_movable(children->running);
    rb_gc_mark_movable(children->ready);
}

static void compact_children(void *pointer) {
    struct children *children = pointer;
    children->running = rb_gc_location(children->running);
    children->ready = rb_gc_location(children->ready);
}

static void free_children(void *pointer) {
    struct children *children = pointer;
    if (children->core) {
        orphans_free(children);
        core_release(children->core);
    }
    xfree(children);
}

static size_t size_of_children(const void *pointer) {
    const struct children *children = pointer;
    return sizeof *children + (children->core ? sizeof *children->core : 0);
}

static const rb_data_type_t children_type = {
    .wrap_struct_name = "Minder::Children",
    .function = { mark_children, free_children, size_of_children, compact_children, { 0 } },
    /* Nothing blocks: the thread of a set is asked to end, and not waited for. */
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE allocate_children(VALUE class) {
    struct children *children;
    VALUE self = TypedData_Make_Struct(class, struct children, &children_type, children);
    children->running = children->ready = Qnil;
    return self;
}

struct children *children_of(VALUE self) {
    struct children *children;
    TypedData_Get_Struct(self, struct children, &children_type, children);
    return children;
}

void children_raise_closed(const char *reason) {
    rb_raise(rb_const_get(minder_module, rb_intern("ClosedError")), "%s", reason);
}

struct children *children_usable(VALUE self) {
    struct children *children = children_of(self);
    if (!children->core) rb_raise(rb_eRuntimeError, "the set was not initialized");
    if (children->core->forks != minder_forks)
        children_raise_closed("the thread of the set is in the parent of this forked process; make a set here");
    if (!children->core->set || children->core->is_closing) children_raise_closed("the set was stopped");
    return children;
}

static VALUE children_open(VALUE self, VALUE options, VALUE guardian) {
    struct children *children = children_of(self);
    if (children->core) rb_raise(rb_eRuntimeError, "the set is open already");
    minder_set_options set = MINDER_INIT(minder_set_options);
    /* `settle` has to know of an exit whose output does not fit into memory. */
    set.eager_exit = 1;
    set.max_children = option_size(options, "max_children");
    set.max_buffered_bytes = option_size(options, "memory");
    set.max_child_bytes = option_size(options, "child_memory");
    set.max_input_bytes = option_size(options, "input_memory");
    set.coalesce_delay = option_time(options, "coalesce");
    set.leak_timeout = option_time(options, "leak_timeout");
    set.stop_poll_interval = option_time(options, "stop_poll");
    VALUE spill_dir, backend;
    set.spill_dir = option_text(options, "spill_dir", &spill_dir);
    set.backend = option_text(options, "backend", &backend);
    if (!NIL_P(guardian)) set.guardian = guardian_handle(guardian);
    children->is_stream = RTEST(option_value(options, "events"));
    children->running = rb_hash_new();
    children->ready = rb_hash_new();

    struct core *core = calloc(1, sizeof *core);
    if (!core) rb_memerror();
    core->references = 1;
    core->forks = minder_forks;
    core->memory_max = set.max_buffered_bytes ? set.max_buffered_bytes : 16u << 20;
    core->child_max = set.max_child_bytes ? set.max_child_bytes : 1u << 20;
    core->taken = minder_events_new();
    children->core = core;
    minder_check(minder_set_new(&set, &core->set));
    RB_GC_GUARD(spill_dir);
    RB_GC_GUARD(backend);
    RB_GC_GUARD(guardian);
    return self;
}

void children_list_ready(struct children *children, VALUE value, struct child *child) {
    if (child->is_claimed || child->is_listed || queue_oldest(child) == QUEUES) return;
    child->is_listed = true;
    rb_hash_aset(children->ready, ULL2NUM(child->id), value);
}

/*
 * Moves all events to the queues of their children. Returns the children that have new events, or
 * nil if there are none. Raises ClosedError if the set is stopped and has no events.
 */
static VALUE children_route(VALUE self) {
    struct children *children = children_usable(self);
    struct core *core = children->core;
    VALUE changed = Qnil;
    bool has_memory = true;
    for (int takes = 0; takes < TAKES_MAX && has_memory; takes++) {
        size_t count = 0;
        /* With no bytes allowed, the list gets one chunk of output alone, or events without bytes. */
        minder_check(minder_set_take(core->set, core->taken, 0, &count));
        const minder_event *event;
        bool has_any = false;
        while (has_memory && (event = minder_events_next(core->taken)) != NULL) {
            has_any = true;
            minder_child_id id = event->child;
            bool is_done = event->kind == MINDER_EVENT_DONE;
            VALUE value = rb_hash_lookup2(children->running, ULL2NUM(id), Qnil);
            struct child *child = NIL_P(value) ? orphans_find(children, id) : RTYPEDDATA_DATA(value);
            if (!child) continue;
            has_memory = queue_route(child, event);
            if (NIL_P(value)) continue;
            if (!child->is_changed) {
                child->is_changed = true;
                if (NIL_P(changed)) changed = rb_ary_new();
                rb_ary_push(changed, value);
            }
            children_list_ready(children, value, child);
            if (is_done) rb_hash_delete(children->running, ULL2NUM(id));
        }
        if (!has_any) break;
    }
    for (long index = 0; !NIL_P(changed) && index < RARRAY_LEN(changed); index++)
        ((struct child *)RTYPEDDATA_DATA(RARRAY_AREF(changed, index)))->is_changed = false;
    if (!has_memory) rb_memerror();
    if (NIL_P(changed)) minder_check(minder_set_wait(core->set, 0));
    return changed;
}

static int take_first(VALUE key, VALUE value, VALUE first) {
    *(VALUE *)first = value;
    return ST_STOP;
}

void children_leave_stream(struct children *children, struct child *child) {
    if (child->is_listed) rb_hash_delete(children->ready, ULL2NUM(child->id));
    child->is_listed = false;
    children->streaming--;
}

/*
 * Takes the oldest event of the child that is first. Returns what Minder::Event.new expects, with
 * an array for the status; nil if no event waits.
 */
static VALUE children_pop(VALUE self) {
    struct children *children = children_of(self);
    if (!children->core) return Qnil;
    VALUE value = Qnil;
    rb_hash_foreach(children->ready, take_first, (VALUE)&value);
    if (NIL_P(value)) return Qnil;
    struct child *child = rb_check_typeddata(value, &child_type);
    int queue = queue_oldest(child);
    const struct node *node = child->queues[queue].head;

    /* All that may raise comes first: the event then stays where it is. */
    VALUE result = event_values(value, node);
    bool is_output = node->kind == MINDER_EVENT_OUTPUT, is_end = node->kind == MINDER_EVENT_DONE;
    queue_drop(child, queue);
    if (is_end) {
        children_leave_stream(children, child);
        child->is_claimed = true;
    } else if (is_output || queue_oldest(child) == QUEUES) {
        /* The next event is that of another child: one that writes much does not delay the others. */
        rb_hash_delete(children->ready, ULL2NUM(child->id));
        child->is_listed = false;
        children_list_ready(children, value, child);
    }
    return result;
}

/* Returns how many children still have an end for the consumer of all events. */
static VALUE children_streaming(VALUE self) {
    return SIZET2NUM(children_of(self)->streaming);
}

/* Returns the children whose end was not routed. */
static VALUE children_running(VALUE self) {
    struct children *children = children_of(self);
    if (NIL_P(children->running)) return rb_ary_new();
    return rb_funcall(children->running, rb_intern("values"), 0);
}

static VALUE children_running_count(VALUE self) {
    struct children *children = children_of(self);
    return NIL_P(children->running) ? INT2FIX(0) : SIZET2NUM(RHASH_SIZE(children->running));
}

static VALUE children_is_stream(VALUE self) {
    return RBOOL(children_of(self)->is_stream);
}

/* Returns whether the set belongs to the parent of this forked process. */
static VALUE children_is_forked(VALUE self) {
    struct children *children = children_of(self);
    return RBOOL(children->core && children->core->forks != minder_forks);
}

/* Returns whether the set was stopped. */
static VALUE children_is_closed(VALUE self) {
    struct children *children = children_of(self);
    return RBOOL(!children->core || !children->core->set || children->core->is_closing);
}

/* Kills what is left at once, and ends the thread of the set. Without effect after the first time. */
static VALUE children_close(VALUE self) {
    struct children *children = children_of(self);
    struct core *core = children->core;
    if (!core || !core->set || core->is_closing) return Qnil;
    core->is_closing = true;
    if (core->forks != minder_forks) return Qnil;
    struct call call = { .operation = CALL_STOP, .set = core->set };
    /* An interrupt that comes before cannot leave the set half closed. */
    core->users++;
    while (!call.is_called) {
        rb_nogvl(core_run_call, &call, NULL, NULL, RB_NOGVL_INTR_FAIL);
        if (!call.is_called) core_run_call(&call);
    }
    core->users--;
    core_free_set(core);
    minder_check(call.status);
    return Qnil;
}

static VALUE raise_status(VALUE status) {
    minder_raise((minder_status)NUM2INT(status));
}

/*
 * Returns the first error since the last call that belongs to no other call, such as a file for
 * output that cannot be written; nil if there was none. The set continues after such an error.
 */
static VALUE children_take_error(VALUE self) {
    struct children *children = children_usable(self);
    minder_status status = minder_set_take_error(children->core->set);
    if (status >= 0) return Qnil;
    int state = 0;
    rb_protect(raise_status, INT2NUM(status), &state);
    VALUE error = rb_errinfo();
    rb_set_errinfo(Qnil);
    return error;
}

void Init_minder_children(void) {
    Init_minder_events();
    Init_minder_guardian();

    VALUE children_class = rb_define_class_under(minder_module, "Children", rb_cObject);
    rb_define_alloc_func(children_class, allocate_children);
    rb_undef_method(children_class, "initialize_copy");
    rb_define_private_method(children_class, "open", children_open, 2);
    rb_define_private_method(children_class, "start", children_start, 2);
    rb_define_private_method(children_class, "route", children_route, 0);
    rb_define_private_method(children_class, "pop", children_pop, 0);
    rb_define_private_method(children_class, "streaming", children_streaming, 0);
    rb_define_private_method(children_class, "stream?", children_is_stream, 0);
    rb_define_private_method(children_class, "running", children_running, 0);
    rb_define_private_method(children_class, "running_count", children_running_count, 0);
    rb_define_private_method(children_class, "forked?", children_is_forked, 0);
    rb_define_private_method(children_class, "close", children_close, 0);
    rb_define_method(children_class, "closed?", children_is_closed, 0);
    rb_define_method(children_class, "take_error", children_take_error, 0);

    Init_minder_child();
    Init_minder_event_poller();
}
