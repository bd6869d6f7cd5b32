/* Minder::Child: what lib/minder/child.rb builds on. */

#include "children.h"

#include <errno.h>

static void mark_child(void *pointer) {
    rb_gc_mark_movable(((struct child *)pointer)->owner);
}

static void compact_child(void *pointer) {
    struct child *child = pointer;
    child->owner = rb_gc_location(child->owner);
}

static void free_child(void *pointer) {
    struct child *child = pointer;
    if (child->core) {
        for (int queue = 0; queue < QUEUES; queue++) queue_clear(child, queue);
        core_release(child->core);
    }
    xfree(child);
}

static size_t size_of_child(const void *pointer) {
    const struct child *child = pointer;
    return sizeof *child + child->copied + child->notices * sizeof(struct node);
}

const rb_data_type_t child_type = {
    .wrap_struct_name = "Minder::Child",
    .function = { mark_child, free_child, size_of_child, compact_child, { 0 } },
    /* The owner is its one reference, and is written with a barrier. */
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE allocate_child(VALUE class) {
    struct child *child;
    VALUE self = TypedData_Make_Struct(class, struct child, &child_type, child);
    child->owner = Qnil;
    return self;
}

static struct child *child_of(VALUE self) {
    struct child *child;
    TypedData_Get_Struct(self, struct child, &child_type, child);
    if (!child->core) rb_raise(rb_eRuntimeError, "the child was not started");
    return child;
}

/* Returns the number that names the child in its set. */
static VALUE child_id(VALUE self) {
    return ULL2NUM(child_of(self)->id);
}

/*
 * Returns the pid: after a restart that of the new process, nil if the child ended before it could
 * be asked for. Once the child is done, the pid may belong to another process.
 */
static VALUE child_pid(VALUE self) {
    uint32_t pid = child_of(self)->pid;
    return pid == 0 ? Qnil : UINT2NUM(pid);
}

/* Returns how many times the child was started again. */
static VALUE child_restarts(VALUE self) {
    return ULL2NUM(child_of(self)->restarts);
}

static VALUE child_is_done(VALUE self) {
    return RBOOL(child_of(self)->is_done);
}

static VALUE child_exit(VALUE self) {
    struct child *child = child_of(self);
    return child->is_done ? event_exit_values(&child->exit) : Qnil;
}

/* Keeps the events of the child for its own consumers. */
static VALUE child_claim(VALUE self) {
    struct child *child = child_of(self);
    if (child->is_claimed) return Qnil;
    child->is_claimed = true;
    queue_clear(child, QUEUE_NOTICES);
    children_leave_stream(children_of(child->owner), child);
    return Qnil;
}

static VALUE child_is_piped(VALUE self, VALUE stream) {
    return RBOOL(child_of(self)->is_piped[event_stream_queue(stream)]);
}

/* Returns whether no more output of a stream will be routed. */
static VALUE child_is_ended(VALUE self, VALUE stream) {
    const struct child *child = child_of(self);
    int queue = event_stream_queue(stream);
    bool is_closed = child->is_ended[queue] && !child->has_restarts;
    return RBOOL(child->is_done || !child->is_piped[queue] || is_closed);
}

/* Returns whether output of a stream waits. */
static VALUE child_has_output(VALUE self, VALUE stream) {
    return RBOOL(child_of(self)->queues[event_stream_queue(stream)].head != NULL);
}

/* Returns the stream whose output is older, or nil if none waits. */
static VALUE child_older_stream(VALUE self) {
    const struct child *child = child_of(self);
    int queue = queue_older_output(child);
    return child->queues[queue].head ? event_stream_symbol(queue) : Qnil;
}

/* Takes the oldest chunk of a stream; nil if none waits. */
static VALUE child_take(VALUE self, VALUE stream) {
    struct child *child = child_of(self);
    int queue = event_stream_queue(stream);
    const struct node *node = child->queues[queue].head;
    if (!node) return Qnil;
    VALUE string = rb_str_new((const char *)node->bytes, (long)node->len);
    queue_drop(child, queue);
    return string;
}

/* Appends all output of a stream that waits to a binary string. Returns how many bytes. */
static VALUE child_drain(VALUE self, VALUE stream, VALUE string) {
    struct child *child = child_of(self);
    int queue = event_stream_queue(stream);
    size_t count = 0;
    Check_Type(string, T_STRING);
    const struct node *node;
    while ((node = child->queues[queue].head) != NULL) {
        rb_str_cat(string, (const char *)node->bytes, (long)node->len);
        count += node->len;
        queue_drop(child, queue);
    }
    return SIZET2NUM(count);
}

/* Makes room for the last output of a process that has exited. */
static VALUE child_settle(VALUE self) {
    queue_settle(child_of(self));
    return Qnil;
}

/* Drops the output of the child from now on: the set is being stopped. */
static VALUE child_discard(VALUE self) {
    struct child *child = child_of(self);
    child->is_discarding = true;
    for (int queue = QUEUE_STDOUT; queue <= QUEUE_STDERR; queue++) {
        child->is_lost |= child->queues[queue].head != NULL;
        queue_clear(child, queue);
    }
    return Qnil;
}

static VALUE child_is_lost(VALUE self) {
    return RBOOL(child_of(self)->is_lost);
}

/* Returns a number that changes when there is room again for +push+. */
static VALUE child_room(VALUE self) {
    return ULL2NUM(child_of(self)->room);
}

/* Raises why the input of a child takes no bytes. */
NORETURN(static void raise_input(struct child *child, minder_status status));
static void raise_input(struct child *child, minder_status status) {
    if (!child->has_input)
        rb_raise(rb_eIOError, "not opened for writing: the input of the child is not a pipe");
    if (child->is_input_closed) rb_raise(rb_eIOError, "closed stream: the input of the child was closed");
    bool is_broken = status == MINDER_FAILED && minder_last_os_error() == 0;
    VALUE message = rb_utf8_str_new_cstr(status == MINDER_OK ? "the child is done" : minder_last_error());
    if (is_broken) minder_check(minder_set_wait(child->core->set, 0));
    if (!is_broken && status != MINDER_UNKNOWN && status != MINDER_OK) minder_raise(status);
    rb_exc_raise(rb_syserr_new_str(EPIPE, message));
}

/* Queues the bytes of a string from an offset on for the input. Returns how many there was room for. */
static VALUE child_push(VALUE self, VALUE string, VALUE offset) {
    struct child *child = child_of(self);
    Check_Type(string, T_STRING);
    long start = NUM2LONG(offset), len = RSTRING_LEN(string) - start;
    if (start < 0 || len < 0) rb_raise(rb_eArgError, "the offset %ld is outside of the string", start);
    children_usable(child->owner);
    if (!child->has_input || child->is_input_closed || child->is_done) raise_input(child, MINDER_OK);
    size_t written = 0;
    const uint8_t *bytes = (const uint8_t *)RSTRING_PTR(string) + start;
    minder_status status = minder_set_write(child->core->set, child->id, bytes, (size_t)len, &written);
    if (status != MINDER_OK) raise_input(child, status);
    return SIZET2NUM(written);
}

/*
 * Closes the input of the child after the bytes that were written to it: the child reads its end.
 * Returns nil. Without effect if the child has no input, or it is closed, or the child is done.
 */
static VALUE child_close_stdin(VALUE self) {
    struct child *child = child_of(self);
    if (!child->has_input || child->is_input_closed || child->is_done) return Qnil;
    children_usable(child->owner);
    minder_status status = minder_set_close_stdin(child->core->set, child->id);
    if (status != MINDER_UNKNOWN) minder_check(status);
    child->is_input_closed = true;
    return Qnil;
}

/* Makes a call about a child that runs. Returns false if it is done. */
static VALUE call_child(VALUE self, struct call *call) {
    struct child *child = child_of(self);
    if (child->is_done) return Qfalse;
    struct children *children = children_usable(child->owner);
    struct core *core = children->core;
    call->id = child->id;
    core_call(core, call);
    core_free_set(core);
    if (call->status == MINDER_UNKNOWN) return Qfalse;
    minder_check(call->status);
    return Qtrue;
}

static VALUE child_signal(VALUE self, VALUE how, enum operation operation) {
    minder_termination termination;
    minder_signal_step steps[MINDER_SIGNALS_MAX];
    launch_termination(how, &termination, steps);
    struct call call = { .operation = operation, .how = &termination };
    return call_child(self, &call);
}

static VALUE child_kill(VALUE self, VALUE how) {
    return child_signal(self, how, CALL_KILL);
}

static VALUE child_restart(VALUE self, VALUE how) {
    return child_signal(self, how, CALL_RESTART);
}

/*
 * Suspends the child with everything that it started. Its time-out does not run meanwhile. Returns
 * false if it is done.
 */
static VALUE child_suspend(VALUE self) {
    struct call call = { .operation = CALL_SUSPEND };
    return call_child(self, &call);
}

/* Resumes a child that is suspended. Returns false if it is done. */
static VALUE child_resume(VALUE self) {
    struct call call = { .operation = CALL_RESUME };
    return call_child(self, &call);
}

/*
 * Sets the size of the terminal of a child that was started with +terminal+. The child gets
 * SIGWINCH. Returns false if it is done. Raises ArgumentError if it has no terminal.
 */
static VALUE child_resize(VALUE self, VALUE rows, VALUE columns) {
    struct call call = { .operation = CALL_RESIZE, .rows = NUM2USHORT(rows), .columns = NUM2USHORT(columns) };
    return call_child(self, &call);
}

void Init_minder_child(void) {
    VALUE child_class = rb_define_class_under(minder_module, "Child", rb_cObject);
    rb_define_alloc_func(child_class, allocate_child);
    rb_undef_method(child_class, "initialize_copy");
    rb_define_method(child_class, "id", child_id, 0);
    rb_define_method(child_class, "pid", child_pid, 0);
    rb_define_method(child_class, "restarts", child_restarts, 0);
    rb_define_method(child_class, "close_stdin", child_close_stdin, 0);
    rb_define_method(child_class, "suspend", child_suspend, 0);
    rb_define_method(child_class, "resume", child_resume, 0);
    rb_define_method(child_class, "resize", child_resize, 2);
    rb_define_private_method(child_class, "native_kill", child_kill, 1);
    rb_define_private_method(child_class, "native_restart", child_restart, 1);
    rb_define_private_method(child_class, "done?", child_is_done, 0);
    rb_define_private_method(child_class, "exit_values", child_exit, 0);
    rb_define_private_method(child_class, "native_claim", child_claim, 0);
    rb_define_private_method(child_class, "piped?", child_is_piped, 1);
    rb_define_private_method(child_class, "ended?", child_is_ended, 1);
    rb_define_private_method(child_class, "output?", child_has_output, 1);
    rb_define_private_method(child_class, "older_stream", child_older_stream, 0);
    rb_define_private_method(child_class, "take", child_take, 1);
    rb_define_private_method(child_class, "drain", child_drain, 2);
    rb_define_private_method(child_class, "settle", child_settle, 0);
    rb_define_private_method(child_class, "discard", child_discard, 0);
    rb_define_private_method(child_class, "lost?", child_is_lost, 0);
    rb_define_private_method(child_class, "room", child_room, 0);
    rb_define_private_method(child_class, "push", child_push, 2);
}
