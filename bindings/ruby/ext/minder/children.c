/*
 * Children: what lib/minder/children.rb needs of a set, its events and a guardian.
 *
 * The events of all children arrive in one queue of the library. `route` moves them to the queues
 * of the children, where a consumer of one child and the consumer of all events find them. A large
 * chunk of output stays in memory of the library, as a list of events with one element. So it
 * counts in the limits of the set until it is consumed, and a child whose output nothing consumes
 * blocks alone. Small chunks are copied and joined instead, as far as limits of the same size
 * allow.
 *
 * Functions here run with the interpreter's lock, which guards all structures, except where
 * `without_lock` calls the library. Between two calls of Ruby no other thread changes anything.
 */

#include "shim.h"

#include <errno.h>
#include <pthread.h>
#include <ruby/thread.h>
#include <stdlib.h>
#include <string.h>

/* A chunk below this size is copied: to hold it in the library would take more memory than its bytes. */
#define HOLD_MIN 4096
/* The most bytes of a copied chunk that others are joined to. */
#define JOINED_MAX (64u << 10)
/* The most bytes in a pipe, unless the machine was configured otherwise. */
#define PIPE_MAX (1u << 20)
/* Lists of events that are kept for later chunks. */
#define SPARE_MAX 16
/* The most events of a child, except output, that wait for the consumer of all events. */
#define NOTICES_MAX 512
/* How many times `route` takes events before other threads and fibers run again. */
#define TAKES_MAX 512
/* A time that no program lives to see the end of. */
#define HUNDRED_YEARS (MINDER_SECOND * 86400 * 365 * 100)

/* Output of one stream, and all other events: the queues of a child. */
enum { QUEUE_STDOUT, QUEUE_STDERR, QUEUE_NOTICES, QUEUES };

static VALUE kind_symbols[MINDER_EVENT_DONE + 1], stream_symbols[2];

/* How many times this process is a forked copy of another. A forked copy frees nothing of the library. */
static unsigned forks;

static void count_fork(void) {
    forks++;
}

/*
 * The interpreter is ending. Nothing of the library is freed then: to free the last handle of a
 * guardian would release the children, and the end of the process frees the rest.
 */
static bool is_exiting;

static void note_exit(VALUE unused) {
    is_exiting = true;
}

/* An event in the queue of a child. */
struct node {
    struct node *next;
    /* The place among all events of the child. */
    uint64_t number;
    int32_t kind;
    /* The list that holds the bytes, or NULL if they are in `copy`. */
    minder_events *list;
    uint8_t *copy;
    const uint8_t *bytes;
    size_t len, capacity;
    int32_t stream;
    int32_t signal;
    uint32_t pid;
    int64_t delay;
    uint64_t restarts;
    char *error;
    minder_exit exit;
};

/* What a set and its children share. It lives as long as one of them. */
struct core {
    size_t references;
    unsigned forks;
    minder_set *set;
    /* How many threads use the set without the interpreter's lock. */
    size_t users;
    bool is_closing;
    /* The limits of copied output, and how much there is. */
    size_t memory_max, child_max, copied;
    /* Events that were taken, except those in queues. */
    minder_events *taken;
    minder_events *spare[SPARE_MAX];
    size_t spare_count;
};

/* Minder::Children. */
struct children {
    struct core *core;
    /* The children whose end was not routed, by their ids. */
    VALUE running;
    /* The children with events for the consumer of all events, by their ids, in order. */
    VALUE ready;
    /* Events that came before `start` knew their child: queues by id. */
    struct orphan *orphans;
    size_t starting;
    /* How many children still have an end for the consumer of all events. */
    size_t streaming;
    bool is_stream;
};

struct queue {
    struct node *head, *tail;
};

/* Minder::Child. */
struct child {
    struct core *core;
    VALUE owner;
    minder_child_id id;
    uint32_t pid;
    struct queue queues[QUEUES];
    size_t notices;
    uint64_t last_number;
    size_t copied;
    uint64_t dropped, restarts, room;
    /* How it ended, and how its last run exited. */
    minder_exit exit, run_exit;
    /* Its events are for its own consumers only. */
    bool is_claimed;
    /* The process has exited, and its output may not have been routed whole. */
    bool has_exited;
    bool is_done, is_discarding, is_lost, is_listed, is_news;
    bool drops_oldest, has_restarts, has_input, is_input_closed;
    bool is_piped[2], is_ended[2];
};

/* A child that `start` has not registered yet. */
struct orphan {
    struct orphan *next;
    struct child child;
};

/*
 * Nodes and queues.
 */

static void free_list(struct core *core, minder_events *list) {
    if (core->forks != forks) return;
    /* Frees the event that the list holds. */
    minder_events_next(list);
    if (core->spare_count < SPARE_MAX)
        core->spare[core->spare_count++] = list;
    else
        minder_events_free(list);
}

static minder_events *new_list(struct core *core) {
    return core->spare_count > 0 ? core->spare[--core->spare_count] : minder_events_new();
}

static void free_node(struct core *core, struct child *child, struct node *node) {
    if (node->list) free_list(core, node->list);
    if (node->copy) {
        core->copied -= node->len;
        child->copied -= node->len;
        free(node->copy);
    }
    free(node->error);
    free(node);
}

static struct node *pop(struct child *child, int queue) {
    struct queue *nodes = &child->queues[queue];
    struct node *node = nodes->head;
    nodes->head = node->next;
    if (!nodes->head) nodes->tail = NULL;
    if (queue == QUEUE_NOTICES) child->notices--;
    return node;
}

static void clear(struct child *child, int queue) {
    while (child->queues[queue].head) free_node(child->core, child, pop(child, queue));
}

/* Returns the queue with the oldest event; QUEUES if all are empty. */
static int oldest(const struct child *child) {
    int found = QUEUES;
    for (int queue = 0; queue < QUEUES; queue++) {
        const struct node *node = child->queues[queue].head;
        if (node && (found == QUEUES || node->number < child->queues[found].head->number)) found = queue;
    }
    return found;
}

/* Returns the stream with older output: that of QUEUE_STDOUT if there is none. */
static int older_output(const struct child *child) {
    const struct node *first = child->queues[QUEUE_STDOUT].head, *second = child->queues[QUEUE_STDERR].head;
    return second && (!first || second->number < first->number) ? QUEUE_STDERR : QUEUE_STDOUT;
}

/* Appends a node. Returns NULL if there is no memory. */
static struct node *push(struct child *child, int queue, int32_t kind) {
    struct node *node = calloc(1, sizeof *node);
    if (!node) return NULL;
    node->kind = kind;
    node->number = ++child->last_number;
    struct queue *nodes = &child->queues[queue];
    if (nodes->tail)
        nodes->tail->next = node;
    else
        nodes->head = node;
    nodes->tail = node;
    if (queue == QUEUE_NOTICES && ++child->notices > NOTICES_MAX)
        free_node(child->core, child, pop(child, queue));
    return node;
}

static void release_core(struct core *core) {
    if (--core->references > 0 || is_exiting) return;
    if (core->forks == forks) {
        minder_events_free(core->taken);
        while (core->spare_count > 0) minder_events_free(core->spare[--core->spare_count]);
    }
    minder_set_free(core->set);
    free(core);
}

/*
 * Routing.
 */

/* Copies output to the end of a queue, and joins it with the last event of the child if that is there. */
static bool copy_output(struct child *child, int queue, const minder_event *event) {
    struct core *core = child->core;
    struct node *node = child->queues[queue].tail;
    bool is_joined = node && node->copy && node->number == child->last_number &&
                     node->len + event->len <= JOINED_MAX;
    if (!is_joined) {
        uint8_t *copy = malloc(event->len);
        node = copy ? push(child, queue, event->kind) : NULL;
        if (!node) {
            free(copy);
            return false;
        }
        node->copy = copy;
        node->capacity = event->len;
        node->stream = event->stream;
    } else if (node->len + event->len > node->capacity) {
        size_t needed = node->len + event->len, doubled = 2 * node->capacity;
        size_t capacity = needed > doubled ? needed : doubled;
        uint8_t *copy = realloc(node->copy, capacity);
        if (!copy) return false;
        node->copy = copy;
        node->capacity = capacity;
    }
    memcpy(node->copy + node->len, event->bytes, event->len);
    node->bytes = node->copy;
    node->len += event->len;
    child->copied += event->len;
    core->copied += event->len;
    return true;
}

/* Drops the oldest copied output as far as the limits demand. The newest stays. */
static void drop_oldest(struct child *child) {
    const struct core *core = child->core;
    while (child->copied > core->child_max ||
           (core->copied > core->memory_max && child->copied > JOINED_MAX)) {
        int queue = older_output(child);
        const struct node *node = child->queues[queue].head;
        if (!node || (!node->next && !child->queues[!queue].head)) return;
        child->dropped += node->len;
        free_node(child->core, child, pop(child, queue));
    }
}

/* Puts output into the queue of its child. Returns false if there is no memory. */
static bool route_output(struct child *child, const minder_event *event) {
    struct core *core = child->core;
    if (child->is_discarding) {
        child->is_lost = true;
        return true;
    }
    if (event->len == 0) return true;
    int queue = event->stream == MINDER_STDERR ? QUEUE_STDERR : QUEUE_STDOUT;
    if (child->drops_oldest) {
        bool is_copied = copy_output(child, queue, event);
        drop_oldest(child);
        return is_copied;
    }
    bool has_room = child->copied + event->len <= core->child_max &&
                    core->copied + event->len <= core->memory_max;
    bool is_alone = minder_events_count(core->taken) == 0;
    if ((event->len < HOLD_MIN && has_room) || !is_alone) return copy_output(child, queue, event);
    struct node *node = push(child, queue, event->kind);
    if (!node) return false;
    node->list = core->taken;
    node->bytes = event->bytes;
    node->len = event->len;
    node->stream = event->stream;
    core->taken = new_list(core);
    return true;
}

/* Appends an event other than output for the consumer of all events. Returns false if there is no memory. */
static bool notify(struct child *child, const minder_event *event, int32_t kind, const minder_exit *exit) {
    if (child->is_claimed) return true;
    struct node *node = push(child, QUEUE_NOTICES, kind);
    if (!node) return false;
    node->stream = event->stream;
    node->signal = event->signal;
    node->pid = event->pid;
    node->delay = event->delay;
    node->restarts = event->restarts;
    if (exit) node->exit = *exit;
    if (event->error) node->error = strdup(event->error);
    return true;
}

/* Ends a run. Its exit, which came before its last output, is reported after that. */
static bool end_run(struct child *child, const minder_event *event) {
    bool has_exited = child->has_exited;
    child->has_exited = false;
    return !has_exited || notify(child, event, MINDER_EVENT_EXITED, &child->run_exit);
}

/* Puts an event into the queue of its child, and notes what it says. Returns false if there is no memory. */
static bool route_event(struct child *child, const minder_event *event) {
    const minder_exit *exit = event->exit;
    switch (event->kind) {
    case MINDER_EVENT_OUTPUT: return route_output(child, event);
    case MINDER_EVENT_EOF: child->is_ended[event->stream == MINDER_STDERR] = true; break;
    case MINDER_EVENT_WRITABLE: child->room++; break;
    case MINDER_EVENT_RESTARTED:
        child->pid = event->pid;
        child->is_input_closed = false;
        child->is_ended[0] = child->is_ended[1] = false;
        child->room++;
        break;
    case MINDER_EVENT_EXITED:
        child->has_exited = true;
        child->run_exit = *exit;
        return true;
    case MINDER_EVENT_RESTARTING:
        child->restarts = event->restarts;
        if (!end_run(child, event)) return false;
        break;
    case MINDER_EVENT_DONE:
        child->is_done = true;
        child->exit = *exit;
        child->exit.dropped += child->dropped;
        exit = &child->exit;
        if (!end_run(child, event)) return false;
        break;
    case MINDER_EVENT_STOPPED:
    case MINDER_EVENT_RESTART_FAILED: break;
    default: return true; /* a later version may add kinds */
    }
    return notify(child, event, event->kind, exit);
}

/*
 * Minder::Children.
 */

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

static void free_orphans(struct children *children) {
    while (children->orphans) {
        struct orphan *orphan = children->orphans;
        children->orphans = orphan->next;
        for (int queue = 0; queue < QUEUES; queue++) clear(&orphan->child, queue);
        free(orphan);
    }
}

static void free_children(void *pointer) {
    struct children *children = pointer;
    if (children->core) {
        free_orphans(children);
        release_core(children->core);
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

static struct children *children_of(VALUE self) {
    struct children *children;
    TypedData_Get_Struct(self, struct children, &children_type, children);
    return children;
}

NORETURN(static void raise_closed(const char *reason));
static void raise_closed(const char *reason) {
    rb_raise(rb_const_get(minder_module, rb_intern("ClosedError")), "%s", reason);
}

/* Returns the structure of a set that is open and belongs to this process. Raises otherwise. */
static struct children *open_children(VALUE self) {
    struct children *children = children_of(self);
    if (!children->core) rb_raise(rb_eRuntimeError, "the set was not initialized");
    if (children->core->forks != forks)
        raise_closed("the thread of the set is in the parent of this forked process; make a set here");
    if (!children->core->set || children->core->is_closing) raise_closed("the set was stopped");
    return children;
}

/*
 * Minder::Child.
 */

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
        for (int queue = 0; queue < QUEUES; queue++) clear(child, queue);
        release_core(child->core);
    }
    xfree(child);
}

static size_t size_of_child(const void *pointer) {
    const struct child *child = pointer;
    return sizeof *child + child->copied + child->notices * sizeof(struct node);
}

static const rb_data_type_t child_type = {
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

/*
 * Calls of the library that wait for the thread of the set.
 */

enum operation { SPAWN, KILL, RESTART, SUSPEND, RESUME, RESIZE, STOP };

struct call {
    enum operation operation;
    const minder_set *set;
    const minder_command *command;
    const minder_spawn_options *options;
    minder_child_id id;
    const minder_termination *how;
    uint16_t rows, columns;
    int64_t grace;
    uint32_t pid;
    minder_status status;
    bool is_called;
};

static void *call_library(void *pointer) {
    struct call *call = pointer;
    call->is_called = true;
    switch (call->operation) {
    case SPAWN:
        call->status = minder_set_spawn(call->set, call->command, call->options, &call->id);
        /* It fails if the end of the child was taken meanwhile: then there is no pid any more. */
        if (call->status == MINDER_OK && minder_set_pid(call->set, call->id, &call->pid) != MINDER_OK)
            call->pid = 0;
        break;
    case KILL: call->status = minder_set_kill(call->set, call->id, call->how); break;
    case RESTART: call->status = minder_set_restart(call->set, call->id, call->how); break;
    case SUSPEND: call->status = minder_set_suspend(call->set, call->id); break;
    case RESUME: call->status = minder_set_resume(call->set, call->id); break;
    case RESIZE: call->status = minder_set_resize(call->set, call->id, call->rows, call->columns); break;
    case STOP: call->status = minder_set_stop(call->set, call->grace); break;
    }
    return NULL;
}

/*
 * Calls the library without the interpreter's lock. Raises only before the call: a signal or
 * Thread#raise that comes meanwhile is handled later, so that no child is lost.
 */
static void without_lock(struct core *core, struct call *call) {
    call->set = core->set;
    for (;;) {
        core->users++;
        rb_nogvl(call_library, call, NULL, NULL, RB_NOGVL_INTR_FAIL);
        core->users--;
        if (call->is_called) break;
        rb_thread_check_ints();
        if (!core->set) raise_closed("the set was stopped");
    }
}

/* Frees a set that is stopped and that no thread uses. */
static void free_set(struct core *core) {
    if (!core->is_closing || core->users > 0 || !core->set) return;
    minder_set *set = core->set;
    core->set = NULL;
    minder_set_free(set);
}

/*
 * Options. nil is the default of each.
 */

static VALUE option(VALUE options, const char *name) {
    return rb_hash_lookup2(options, ID2SYM(rb_intern(name)), Qnil);
}

static size_t size_option(VALUE options, const char *name) {
    VALUE value = option(options, name);
    if (NIL_P(value)) return 0;
    long long size = NUM2LL(value);
    if (size <= 0) rb_raise(rb_eArgError, "%s is %lld: expected a positive number", name, size);
    return (size_t)size;
}

/* Zero means the default to the library, so no time is the shortest there is. */
static int64_t time_option(VALUE options, const char *name) {
    VALUE value = option(options, name);
    if (NIL_P(value)) return 0;
    int64_t time = minder_time(value);
    return time == 0 ? 1 : time;
}

static int32_t int_option(VALUE options, const char *name) {
    VALUE value = option(options, name);
    return NIL_P(value) ? 0 : NUM2INT(value);
}

/* Returns a string option, or NULL. The caller keeps `*value` on its stack, so that the bytes do not move. */
static const char *text_option(VALUE options, const char *name, VALUE *value) {
    *value = option(options, name);
    return NIL_P(*value) ? NULL : StringValueCStr(*value);
}

/*
 * Minder::Guardian.
 */

struct guardian {
    minder_guardian *handle;
    unsigned forks;
};

static void *free_handle(void *pointer) {
    minder_guardian **handle = pointer;
    minder_guardian_free(*handle);
    *handle = NULL;
    return NULL;
}

static void free_guardian(void *pointer) {
    struct guardian *guardian = pointer;
    if (!is_exiting) minder_guardian_free(guardian->handle);
    xfree(guardian);
}

static size_t size_of_guardian(const void *pointer) {
    return sizeof(struct guardian);
}

static const rb_data_type_t guardian_type = {
    .wrap_struct_name = "Minder::Guardian",
    /* To free the last handle waits for the exit of the program: that is not for the collector's sweep. */
    .function = { NULL, free_guardian, size_of_guardian, NULL, { 0 } },
};

static VALUE allocate_guardian(VALUE class) {
    struct guardian *guardian;
    return TypedData_Make_Struct(class, struct guardian, &guardian_type, guardian);
}

static struct guardian *guardian_of(VALUE self) {
    struct guardian *guardian;
    TypedData_Get_Struct(self, struct guardian, &guardian_type, guardian);
    if (!guardian->handle || guardian->forks != forks) {
        if (!guardian->handle) raise_closed("the guardian is closed");
        raise_closed("the guardian belongs to the parent of this forked process; make one here");
    }
    return guardian;
}

struct guardian_start {
    minder_guardian_options options;
    minder_guardian *handle;
    minder_status status;
    bool is_called;
};

static void *start_guardian(void *pointer) {
    struct guardian_start *start = pointer;
    start->is_called = true;
    start->status = minder_guardian_new(&start->options, &start->handle);
    return NULL;
}

/* Starts the program, and waits until it is ready. */
static VALUE guardian_open(VALUE self, VALUE options) {
    struct guardian *guardian;
    TypedData_Get_Struct(self, struct guardian, &guardian_type, guardian);
    if (guardian->handle) rb_raise(rb_eRuntimeError, "the guardian is open already");
    VALUE program;
    struct guardian_start start = { .options = MINDER_INIT(minder_guardian_options) };
    start.options.tag = RTEST(option(options, "tag"));
    start.options.restart = RTEST(option(options, "restart"));
    start.options.inherit_stderr = RTEST(option(options, "inherit_stderr"));
    start.options.grace = time_option(options, "grace");
    start.options.start_timeout = time_option(options, "start_timeout");
    start.options.program = text_option(options, "program", &program);
    while (!start.is_called) {
        rb_nogvl(start_guardian, &start, NULL, NULL, RB_NOGVL_INTR_FAIL);
        if (!start.is_called) rb_thread_check_ints();
    }
    RB_GC_GUARD(program);
    minder_check(start.status);
    guardian->handle = start.handle;
    guardian->forks = forks;
    return self;
}

/*
 * Returns the pid of the program.
 *
 * Raises ClosedError after +close+ and in a forked process.
 */
static VALUE guardian_pid(VALUE self) {
    return UINT2NUM(minder_guardian_pid(guardian_of(self)->handle));
}

/*
 * Releases the program. Sets that have it keep it; with the last of them it exits, and children
 * that still run are not guarded any more. The collector does the same. Returns nil.
 */
static VALUE guardian_close(VALUE self) {
    struct guardian *guardian;
    TypedData_Get_Struct(self, struct guardian, &guardian_type, guardian);
    minder_guardian *handle = guardian->handle;
    guardian->handle = NULL;
    if (handle) rb_nogvl(free_handle, &handle, NULL, NULL, RB_NOGVL_INTR_FAIL);
    /* It does nothing if an interrupt waits. */
    minder_guardian_free(handle);
    return Qnil;
}

/*
 * Minder::Guarded.
 */

static void free_guarded(void *pointer) {
    if (!is_exiting) minder_guarded_free(pointer);
}

static size_t size_of_guarded(const void *pointer) {
    return sizeof(void *);
}

static const rb_data_type_t guarded_type = {
    .wrap_struct_name = "Minder::Guarded",
    /* It may have the last handle of the guardian. */
    .function = { NULL, free_guarded, size_of_guarded, NULL, { 0 } },
};

/*
 * Puts a child of this process that was started by other code on the list, such as by fork. Returns
 * a Guarded, to be kept until the child has exited.
 *
 * The child is killed with its process group if it leads one at the time of this call. It is not
 * guarded before the call has returned. If this process may be killed in between, let the child
 * first read a byte from a pipe, which this process writes after the call.
 *
 * Raises ClosedError for a pid that is not that of a child or was waited for, after +close+, and in
 * a forked process.
 */
static VALUE guardian_guard(VALUE self, VALUE pid) {
    VALUE class = rb_const_get(minder_module, rb_intern("Guarded"));
    VALUE guarded = TypedData_Wrap_Struct(class, &guarded_type, NULL);
    minder_guarded *handle = NULL;
    /* It never blocks. */
    minder_check(minder_guardian_guard(guardian_of(self)->handle, NUM2UINT(pid), &handle));
    RTYPEDDATA_DATA(guarded) = handle;
    return guarded;
}

/*
 * Removes the process from the list. To be called before the process is waited for: afterwards its
 * pid may be that of another one. The collector does the same. Returns nil.
 */
static VALUE guarded_release(VALUE self) {
    minder_guarded *handle = rb_check_typeddata(self, &guarded_type);
    RTYPEDDATA_DATA(self) = NULL;
    if (handle) minder_guarded_free(handle);
    return Qnil;
}

static VALUE children_open(VALUE self, VALUE options, VALUE guardian) {
    struct children *children = children_of(self);
    if (children->core) rb_raise(rb_eRuntimeError, "the set is open already");
    minder_set_options set = MINDER_INIT(minder_set_options);
    /* `settle` has to know of an exit whose output does not fit into memory. */
    set.eager_exit = 1;
    set.max_children = size_option(options, "max_children");
    set.max_buffered_bytes = size_option(options, "memory");
    set.max_child_bytes = size_option(options, "child_memory");
    set.max_input_bytes = size_option(options, "input_memory");
    set.coalesce_delay = time_option(options, "coalesce");
    set.leak_timeout = time_option(options, "leak_timeout");
    set.stop_poll_interval = time_option(options, "stop_poll");
    VALUE spill_dir, backend;
    set.spill_dir = text_option(options, "spill_dir", &spill_dir);
    set.backend = text_option(options, "backend", &backend);
    if (!NIL_P(guardian)) set.guardian = guardian_of(guardian)->handle;
    children->is_stream = RTEST(option(options, "events"));
    children->running = rb_hash_new();
    children->ready = rb_hash_new();

    struct core *core = calloc(1, sizeof *core);
    if (!core) rb_memerror();
    core->references = 1;
    core->forks = forks;
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

/* A command and its options while they are described. The collector frees it if something raises. */
struct launch {
    minder_command *command;
    minder_spawn_options options;
    minder_termination kill;
    minder_signal_step steps[MINDER_SIGNALS_MAX];
};

static void free_launch(void *pointer) {
    struct launch *launch = pointer;
    minder_command_free(launch->command);
    xfree(launch);
}

static const rb_data_type_t launch_type = {
    .wrap_struct_name = "Minder command",
    .function = { NULL, free_launch, NULL, NULL, { 0 } },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static int64_t pause_time(VALUE seconds) {
    int64_t time = minder_time(seconds);
    return time == MINDER_FOREVER ? HUNDRED_YEARS : time;
}

/* Fills a termination: a time in seconds, or an array of [number of a signal, pause in seconds]. */
static void fill_termination(VALUE value, minder_termination *how, minder_signal_step *steps) {
    *how = (minder_termination)MINDER_INIT(minder_termination);
    if (!RB_TYPE_P(value, T_ARRAY)) {
        how->grace = NIL_P(value) ? 0 : pause_time(value);
        return;
    }
    long count = RARRAY_LEN(value);
    if (count > MINDER_SIGNALS_MAX)
        rb_raise(rb_eArgError, "%ld signals: expected at most %d", count, MINDER_SIGNALS_MAX);
    for (long index = 0; index < count; index++) {
        VALUE step = rb_ary_entry(value, index);
        Check_Type(step, T_ARRAY);
        steps[index].signal = NUM2INT(rb_ary_entry(step, 0));
        steps[index].reserved = 0;
        steps[index].pause = pause_time(rb_ary_entry(step, 1));
    }
    how->steps = steps;
    how->step_count = (uint32_t)count;
}

/* Returns the bytes of a string, which may move at the next allocation. */
static const char *text(VALUE string) {
    return StringValueCStr(string);
}

static void describe_stream(minder_command *command, int32_t stream, VALUE value) {
    if (NIL_P(value)) return;
    int number = NUM2INT(value);
    if (number >= 0)
        minder_command_stdio_fd(command, stream, number);
    else
        minder_command_stdio(command, stream, -number - 1);
}

/* Describes a command by a hash of lib/minder/children.rb. The start reports what a setter refuses. */
static void describe(struct launch *launch, VALUE options) {
    VALUE words = option(options, "command");
    Check_Type(words, T_ARRAY);
    launch->command = minder_command_new(text(rb_ary_entry(words, 0)));
    for (long index = 1; index < RARRAY_LEN(words); index++)
        minder_command_arg(launch->command, text(rb_ary_entry(words, index)));
    if (RTEST(option(options, "unsetenv_others"))) minder_command_env_clear(launch->command);
    VALUE env = option(options, "env");
    for (long index = 0; !NIL_P(env) && index < RARRAY_LEN(env); index++) {
        VALUE pair = rb_ary_entry(env, index), name = rb_ary_entry(pair, 0), value = rb_ary_entry(pair, 1);
        const char *name_text = StringValueCStr(name);
        minder_command_env(launch->command, name_text, NIL_P(value) ? NULL : StringValueCStr(value));
        RB_GC_GUARD(name);
    }
    VALUE directory = option(options, "chdir");
    if (!NIL_P(directory)) minder_command_current_dir(launch->command, text(directory));
    describe_stream(launch->command, MINDER_STDIN, option(options, "stdin"));
    describe_stream(launch->command, MINDER_STDOUT, option(options, "stdout"));
    describe_stream(launch->command, MINDER_STDERR, option(options, "stderr"));
    VALUE terminal = option(options, "terminal");
    if (NIL_P(terminal))
        minder_command_group(launch->command, int_option(options, "group"));
    else
        minder_command_terminal(launch->command, (uint16_t)NUM2USHORT(rb_ary_entry(terminal, 0)),
                                (uint16_t)NUM2USHORT(rb_ary_entry(terminal, 1)));
    VALUE nice = option(options, "nice");
    if (!NIL_P(nice)) minder_command_nice(launch->command, NUM2INT(nice));

    minder_spawn_options *spawn = &launch->options;
    *spawn = (minder_spawn_options)MINDER_INIT(minder_spawn_options);
    spawn->overflow = int_option(options, "overflow");
    spawn->restart = int_option(options, "restart");
    spawn->timeout = time_option(options, "timeout");
    fill_termination(option(options, "kill"), &launch->kill, launch->steps);
    spawn->timeout_kill = &launch->kill;
    spawn->restart_delay = time_option(options, "restart_delay");
    spawn->restart_max_delay = time_option(options, "restart_max_delay");
    spawn->restart_stable_after = time_option(options, "restart_stable_after");
    spawn->restart_max_count = (uint32_t)size_option(options, "restart_max");
}

/* Returns the queue of a child that is being started, and makes it if it is missing. */
static struct child *find_orphan(struct children *children, minder_child_id id) {
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
    if (child->is_claimed) clear(child, QUEUE_NOTICES);
    if (children->starting == 0) free_orphans(children);
}

/* Adds a child to those with events for the consumer of all events. */
static void list_ready(struct children *children, VALUE value, struct child *child) {
    if (child->is_claimed || child->is_listed || oldest(child) == QUEUES) return;
    child->is_listed = true;
    rb_hash_aset(children->ready, ULL2NUM(child->id), value);
}

struct start {
    VALUE self, value, options, holder;
};

/* Starts a child, and registers it. */
static VALUE start_child(VALUE pointer) {
    const struct start *start = (const struct start *)pointer;
    struct children *children = open_children(start->self);
    struct child *child;
    TypedData_Get_Struct(start->value, struct child, &child_type, child);
    if (child->core) rb_raise(rb_eRuntimeError, "the child was started already");
    struct launch *launch = RTYPEDDATA_DATA(start->holder);
    describe(launch, start->options);

    struct core *core = children->core;
    struct call call = { .operation = SPAWN, .command = launch->command, .options = &launch->options };
    while (!call.is_called) {
        open_children(start->self);
        call.set = core->set;
        core->users++;
        children->starting++;
        rb_nogvl(call_library, &call, NULL, NULL, RB_NOGVL_INTR_FAIL);
        children->starting--;
        core->users--;
        /* A signal or Thread#raise may come before the start. It is handled now, and may raise. */
        if (!call.is_called) rb_thread_check_ints();
    }
    if (call.status != MINDER_OK) {
        free_set(core);
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
    bool is_terminal = !NIL_P(option(start->options, "terminal"));
    VALUE input = option(start->options, "stdin");
    child->has_input = is_terminal ? NIL_P(input) : input == pipe;
    child->is_piped[0] = is_terminal || option(start->options, "stdout") == pipe;
    child->is_piped[1] = !is_terminal && option(start->options, "stderr") == pipe;
    adopt_orphan(children, child);
    if (!child->is_claimed) children->streaming++;
    if (!child->is_done) rb_hash_aset(children->running, ULL2NUM(child->id), start->value);
    list_ready(children, start->value, child);
    free_set(core);
    return Qtrue;
}

/* Frees the command, whose descriptors must not wait for the collector. */
static VALUE end_start(VALUE holder) {
    struct launch *launch = RTYPEDDATA_DATA(holder);
    minder_command_free(launch->command);
    launch->command = NULL;
    return Qnil;
}

static VALUE children_start(VALUE self, VALUE value, VALUE options) {
    struct launch *launch;
    VALUE holder = TypedData_Make_Struct(rb_cObject, struct launch, &launch_type, launch);
    struct start start = { self, value, options, holder };
    return rb_ensure(start_child, (VALUE)&start, end_start, holder);
}

/*
 * Moves all events to the queues of their children. Returns the children that have news, or nil if
 * there are none. Raises ClosedError if the set is stopped and has no events.
 */
static VALUE children_route(VALUE self) {
    struct children *children = open_children(self);
    struct core *core = children->core;
    VALUE news = Qnil;
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
            struct child *child = NIL_P(value) ? find_orphan(children, id) : RTYPEDDATA_DATA(value);
            if (!child) continue;
            has_memory = route_event(child, event);
            if (NIL_P(value)) continue;
            if (!child->is_news) {
                child->is_news = true;
                if (NIL_P(news)) news = rb_ary_new();
                rb_ary_push(news, value);
            }
            list_ready(children, value, child);
            if (is_done) rb_hash_delete(children->running, ULL2NUM(id));
        }
        if (!has_any) break;
    }
    for (long index = 0; !NIL_P(news) && index < RARRAY_LEN(news); index++)
        ((struct child *)RTYPEDDATA_DATA(RARRAY_AREF(news, index)))->is_news = false;
    if (!has_memory) rb_memerror();
    if (NIL_P(news)) minder_check(minder_set_wait(core->set, 0));
    return news;
}

static VALUE exit_to_array(const minder_exit *exit) {
    VALUE values[] = {
        exit->kind == MINDER_EXIT_CODE ? INT2NUM(exit->code) : Qnil,
        exit->kind == MINDER_EXIT_SIGNAL ? INT2NUM(exit->signal) : Qnil,
        RBOOL(exit->core_dumped),
        RBOOL(exit->timed_out),
        RBOOL(exit->killed),
        RBOOL(exit->leaked),
        RBOOL(exit->left_running),
        exit->has_usage ? DBL2NUM((double)exit->user / 1e9) : Qnil,
        exit->has_usage ? DBL2NUM((double)exit->system / 1e9) : Qnil,
        DBL2NUM((double)exit->suspended / 1e9),
        exit->has_usage ? ULL2NUM(exit->max_rss) : Qnil,
        ULL2NUM(exit->dropped),
    };
    return rb_ary_new_from_values(sizeof values / sizeof *values, values);
}

static int take_first(VALUE key, VALUE value, VALUE first) {
    *(VALUE *)first = value;
    return ST_STOP;
}

/* Ends the part of a child in the events of the set. */
static void leave_stream(struct children *children, struct child *child) {
    if (child->is_listed) rb_hash_delete(children->ready, ULL2NUM(child->id));
    child->is_listed = false;
    children->streaming--;
}

static VALUE stream_symbol(const struct node *node) {
    return stream_symbols[node->stream == MINDER_STDERR];
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
    int queue = oldest(child);
    const struct node *node = child->queues[queue].head;

    /* All that may raise comes first: the event then stays where it is. */
    VALUE values[10] = { kind_symbols[node->kind], value, Qnil, Qnil, Qnil, Qnil, Qnil, Qnil, Qnil, Qnil };
    switch (node->kind) {
    case MINDER_EVENT_OUTPUT:
        values[2] = stream_symbol(node);
        values[3] = rb_str_new((const char *)node->bytes, (long)node->len);
        break;
    case MINDER_EVENT_EOF: values[2] = stream_symbol(node); break;
    case MINDER_EVENT_STOPPED: values[9] = INT2NUM(node->signal); break;
    case MINDER_EVENT_EXITED:
    case MINDER_EVENT_DONE: values[4] = exit_to_array(&node->exit); break;
    case MINDER_EVENT_RESTARTING:
        values[4] = exit_to_array(&node->exit);
        values[6] = DBL2NUM((double)node->delay / 1e9);
        values[7] = ULL2NUM(node->restarts);
        break;
    case MINDER_EVENT_RESTARTED: values[8] = UINT2NUM(node->pid); break;
    case MINDER_EVENT_RESTART_FAILED: values[5] = rb_utf8_str_new_cstr(node->error ? node->error : ""); break;
    default: break;
    }
    VALUE result = rb_ary_new_from_values(sizeof values / sizeof *values, values);
    bool is_output = node->kind == MINDER_EVENT_OUTPUT, is_end = node->kind == MINDER_EVENT_DONE;
    free_node(child->core, child, pop(child, queue));
    if (is_end) {
        leave_stream(children, child);
        child->is_claimed = true;
    } else if (is_output || oldest(child) == QUEUES) {
        /* The next event is that of another child: one that writes much does not delay the others. */
        rb_hash_delete(children->ready, ULL2NUM(child->id));
        child->is_listed = false;
        list_ready(children, value, child);
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
    return RBOOL(children->core && children->core->forks != forks);
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
    if (core->forks != forks) return Qnil;
    struct call call = { .operation = STOP, .set = core->set };
    /* An interrupt that comes before cannot leave the set half closed. */
    core->users++;
    while (!call.is_called) {
        rb_nogvl(call_library, &call, NULL, NULL, RB_NOGVL_INTR_FAIL);
        if (!call.is_called) call_library(&call);
    }
    core->users--;
    free_set(core);
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
    struct children *children = open_children(self);
    minder_status status = minder_set_take_error(children->core->set);
    if (status >= 0) return Qnil;
    int state = 0;
    rb_protect(raise_status, INT2NUM(status), &state);
    VALUE error = rb_errinfo();
    rb_set_errinfo(Qnil);
    return error;
}

/*
 * Minder::Child: the methods that lib/minder/children.rb builds on.
 */

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
    return child->is_done ? exit_to_array(&child->exit) : Qnil;
}

/* Keeps the events of the child for its own consumers. */
static VALUE child_claim(VALUE self) {
    struct child *child = child_of(self);
    if (child->is_claimed) return Qnil;
    child->is_claimed = true;
    clear(child, QUEUE_NOTICES);
    leave_stream(children_of(child->owner), child);
    return Qnil;
}

static int stream_queue(VALUE stream) {
    if (stream == stream_symbols[0]) return QUEUE_STDOUT;
    if (stream == stream_symbols[1]) return QUEUE_STDERR;
    rb_raise(rb_eArgError, "invalid stream %" PRIsVALUE ": expected :stdout or :stderr", rb_inspect(stream));
}

static VALUE child_is_piped(VALUE self, VALUE stream) {
    return RBOOL(child_of(self)->is_piped[stream_queue(stream)]);
}

/* Returns whether no more output of a stream will be routed. */
static VALUE child_is_ended(VALUE self, VALUE stream) {
    const struct child *child = child_of(self);
    int queue = stream_queue(stream);
    bool is_closed = child->is_ended[queue] && !child->has_restarts;
    return RBOOL(child->is_done || !child->is_piped[queue] || is_closed);
}

/* Returns whether output of a stream waits. */
static VALUE child_has_output(VALUE self, VALUE stream) {
    return RBOOL(child_of(self)->queues[stream_queue(stream)].head != NULL);
}

/* Returns the stream whose output is older, or nil if none waits. */
static VALUE child_older_stream(VALUE self) {
    const struct child *child = child_of(self);
    int queue = older_output(child);
    return child->queues[queue].head ? stream_symbols[queue] : Qnil;
}

/* Takes the oldest chunk of a stream; nil if none waits. */
static VALUE child_take(VALUE self, VALUE stream) {
    struct child *child = child_of(self);
    int queue = stream_queue(stream);
    const struct node *node = child->queues[queue].head;
    if (!node) return Qnil;
    VALUE string = rb_str_new((const char *)node->bytes, (long)node->len);
    free_node(child->core, child, pop(child, queue));
    return string;
}

/* Appends all output of a stream that waits to a binary string. Returns how many bytes. */
static VALUE child_drain(VALUE self, VALUE stream, VALUE string) {
    struct child *child = child_of(self);
    int queue = stream_queue(stream);
    size_t count = 0;
    Check_Type(string, T_STRING);
    const struct node *node;
    while ((node = child->queues[queue].head) != NULL) {
        rb_str_cat(string, (const char *)node->bytes, (long)node->len);
        count += node->len;
        free_node(child->core, child, pop(child, queue));
    }
    return SIZET2NUM(count);
}

/*
 * Copies the output that the library holds, so that it does not count in the limits any more, if the
 * process has exited. The last bytes in its pipes fit then, and the end of the child comes. A
 * process that inherited the pipes may write on: it gets no more room than the limit of one child
 * and a full pipe.
 */
static VALUE child_settle(VALUE self) {
    struct child *child = child_of(self);
    const size_t max = 2 * child->core->child_max + PIPE_MAX;
    for (int queue = QUEUE_STDOUT; child->has_exited && queue <= QUEUE_STDERR; queue++) {
        for (struct node *node = child->queues[queue].head; node; node = node->next) {
            if (!node->list) continue;
            uint8_t *copy = child->copied + node->len <= max ? malloc(node->len) : NULL;
            if (!copy) return Qnil;
            memcpy(copy, node->bytes, node->len);
            free_list(child->core, node->list);
            node->list = NULL;
            node->bytes = node->copy = copy;
            node->capacity = node->len;
            child->copied += node->len;
            child->core->copied += node->len;
        }
    }
    return Qnil;
}

/* Drops the output of the child from now on: the set is being stopped. */
static VALUE child_discard(VALUE self) {
    struct child *child = child_of(self);
    child->is_discarding = true;
    for (int queue = QUEUE_STDOUT; queue <= QUEUE_STDERR; queue++) {
        child->is_lost |= child->queues[queue].head != NULL;
        clear(child, queue);
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
    open_children(child->owner);
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
    open_children(child->owner);
    minder_status status = minder_set_close_stdin(child->core->set, child->id);
    if (status != MINDER_UNKNOWN) minder_check(status);
    child->is_input_closed = true;
    return Qnil;
}

/* Makes a call about a child that runs. Returns false if it is done. */
static VALUE call_child(VALUE self, struct call *call) {
    struct child *child = child_of(self);
    if (child->is_done) return Qfalse;
    struct children *children = open_children(child->owner);
    struct core *core = children->core;
    call->id = child->id;
    without_lock(core, call);
    free_set(core);
    if (call->status == MINDER_UNKNOWN) return Qfalse;
    minder_check(call->status);
    return Qtrue;
}

static VALUE child_signal(VALUE self, VALUE how, enum operation operation) {
    minder_termination termination;
    minder_signal_step steps[MINDER_SIGNALS_MAX];
    fill_termination(how, &termination, steps);
    struct call call = { .operation = operation, .how = &termination };
    return call_child(self, &call);
}

static VALUE child_kill(VALUE self, VALUE how) {
    return child_signal(self, how, KILL);
}

static VALUE child_restart(VALUE self, VALUE how) {
    return child_signal(self, how, RESTART);
}

/*
 * Suspends the child with everything that it started. Its time-out does not run meanwhile. Returns
 * false if it is done.
 */
static VALUE child_suspend(VALUE self) {
    struct call call = { .operation = SUSPEND };
    return call_child(self, &call);
}

/* Resumes a child that is suspended. Returns false if it is done. */
static VALUE child_resume(VALUE self) {
    struct call call = { .operation = RESUME };
    return call_child(self, &call);
}

/*
 * Sets the size of the terminal of a child that was started with +terminal+. The child gets
 * SIGWINCH. Returns false if it is done. Raises ArgumentError if it has no terminal.
 */
static VALUE child_resize(VALUE self, VALUE rows, VALUE columns) {
    struct call call = { .operation = RESIZE, .rows = NUM2USHORT(rows), .columns = NUM2USHORT(columns) };
    return call_child(self, &call);
}

/*
 * Minder::Children::Pump: the descriptor of a set for one thread or scheduler, which other threads
 * can make readable. A consumer that waits for it can therefore be told of events that another one
 * routed.
 */

struct pump {
    minder_poller *poller;
    unsigned forks;
};

static void free_pump(void *pointer) {
    struct pump *pump = pointer;
    minder_poller_free(pump->poller);
    xfree(pump);
}

static const rb_data_type_t pump_type = {
    .wrap_struct_name = "Minder::Children::Pump",
    .function = { NULL, free_pump, NULL, NULL, { 0 } },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE allocate_pump(VALUE class) {
    struct pump *pump;
    return TypedData_Make_Struct(class, struct pump, &pump_type, pump);
}

static struct pump *pump_of(VALUE self) {
    struct pump *pump;
    TypedData_Get_Struct(self, struct pump, &pump_type, pump);
    return pump;
}

static VALUE pump_initialize(VALUE self, VALUE children_value) {
    struct pump *pump = pump_of(self);
    struct children *children = open_children(children_value);
    if (pump->poller) rb_raise(rb_eRuntimeError, "the pump is open already");
#if defined(__linux__)
    const char *backend = "epoll";
#elif defined(__APPLE__) || defined(__FreeBSD__) || defined(__NetBSD__) || defined(__OpenBSD__)
    const char *backend = "kqueue";
#else
    const char *backend = NULL;
#endif
    minder_check(minder_poller_new(backend, &pump->poller));
    minder_check(minder_poller_add(pump->poller, minder_set_fd(children->core->set), MINDER_READABLE, 0));
    return self;
}

static VALUE pump_fd(VALUE self) {
    return INT2NUM(minder_poller_fd(pump_of(self)->poller));
}

static VALUE pump_notify(VALUE self) {
    struct pump *pump = pump_of(self);
    if (pump->poller) minder_poller_notify(pump->poller);
    return Qnil;
}

/* Takes a notification. */
static VALUE pump_reset(VALUE self) {
    struct pump *pump = pump_of(self);
    minder_ready ready[2];
    size_t count;
    if (pump->poller) minder_poller_wait(pump->poller, 0, ready, 2, &count);
    return Qnil;
}

static VALUE pump_close(VALUE self) {
    struct pump *pump = pump_of(self);
    minder_poller_free(pump->poller);
    pump->poller = NULL;
    return Qnil;
}

static VALUE symbol(const char *name) {
    return ID2SYM(rb_intern(name));
}

void Init_minder_children(void) {
    pthread_atfork(NULL, NULL, count_fork);
    rb_set_end_proc(note_exit, Qnil);
    static const char *const kinds[] = { NULL, "output", "eof", "writable", "stopped", "exited", "restarting",
                                         "restarted", "restart_failed", "done" };
    for (int kind = 1; kind <= MINDER_EVENT_DONE; kind++) kind_symbols[kind] = symbol(kinds[kind]);
    stream_symbols[0] = symbol("stdout");
    stream_symbols[1] = symbol("stderr");

    VALUE guardian_class = rb_define_class_under(minder_module, "Guardian", rb_cObject);
    rb_define_alloc_func(guardian_class, allocate_guardian);
    rb_undef_method(guardian_class, "initialize_copy");
    rb_define_private_method(guardian_class, "open", guardian_open, 1);
    rb_define_method(guardian_class, "pid", guardian_pid, 0);
    rb_define_method(guardian_class, "guard", guardian_guard, 1);
    rb_define_method(guardian_class, "close", guardian_close, 0);

    VALUE guarded_class = rb_define_class_under(minder_module, "Guarded", rb_cObject);
    rb_undef_alloc_func(guarded_class);
    rb_define_method(guarded_class, "release", guarded_release, 0);

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

    VALUE pump_class = rb_define_class_under(children_class, "Pump", rb_cObject);
    rb_define_alloc_func(pump_class, allocate_pump);
    rb_undef_method(pump_class, "initialize_copy");
    rb_define_method(pump_class, "initialize", pump_initialize, 1);
    rb_define_method(pump_class, "fd", pump_fd, 0);
    rb_define_method(pump_class, "notify", pump_notify, 0);
    rb_define_method(pump_class, "reset", pump_reset, 0);
    rb_define_method(pump_class, "close", pump_close, 0);
}
