/*
 * Children, guardians and their events: what the files share.
 *
 * The events of all children arrive in one queue of the library. `children_route` moves them to the
 * queues of the children, where a consumer of one child and the consumer of all events find them. A
 * large chunk of output stays in memory of the library, as a list of events with one element. So it
 * counts in the limits of the set until it is consumed, and a child whose output nothing consumes
 * blocks alone. Small chunks are copied and joined instead, as far as limits of the same size
 * allow.
 *
 * Functions of these files run with the interpreter's lock, which guards all structures, except
 * where `core_call` calls the library. Between two calls of Ruby no other thread changes anything.
 */

#ifndef MINDER_CHILDREN_H
#define MINDER_CHILDREN_H

#include "shim.h"

/* Lists of events that are kept for later chunks. */
#define SPARE_MAX 16

/* Output of one stream, and all other events: the queues of a child. */
enum { QUEUE_STDOUT, QUEUE_STDERR, QUEUE_NOTICES, QUEUES };

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
    bool is_done, is_discarding, is_lost, is_listed, is_changed;
    bool drops_oldest, has_restarts, has_input, is_input_closed;
    bool is_piped[2], is_ended[2];
};

/* A child that `start` has not registered yet. */
struct orphan {
    struct orphan *next;
    struct child child;
};

/* Calls of the library that wait for the thread of the set. */
enum operation { CALL_SPAWN, CALL_KILL, CALL_RESTART, CALL_SUSPEND, CALL_RESUME, CALL_RESIZE, CALL_STOP };

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

/* A command and its options while they are described. The collector frees it if something raises. */
struct launch {
    minder_command *command;
    minder_spawn_options options;
    minder_termination kill;
    minder_signal_step steps[MINDER_SIGNALS_MAX];
};

/* The queues of a child: `event_queue.c`. */

/* Takes the first event of a queue, which is not empty, and frees it. */
void queue_drop(struct child *child, int queue);

/* Drops all events of a queue. */
void queue_clear(struct child *child, int queue);

/* Returns the queue with the oldest event; QUEUES if all are empty. */
int queue_oldest(const struct child *child);

/* Returns the stream with older output: that of QUEUE_STDOUT if there is none. */
int queue_older_output(const struct child *child);

/* Puts an event into the queue of its child, and notes what it says. Returns false if there is no memory. */
bool queue_route(struct child *child, const minder_event *event);

/*
 * Copies the output that the library holds, so that it does not count in the limits any more, if the
 * process has exited. The last bytes in its pipes fit then, and the end of the child comes. A
 * process that inherited the pipes may write on: it gets no more room than the limit of one child
 * and a full pipe.
 */
void queue_settle(struct child *child);

/* Events as values of Ruby: `event.c`. */

/* Returns what Minder::Event.new expects for an event of a child, with an array for the status. */
VALUE event_values(VALUE child, const struct node *node);

/* Returns what Minder::Status.new expects. */
VALUE event_exit_values(const minder_exit *exit);

/* Returns the name of a stream: :stdout for QUEUE_STDOUT, :stderr for QUEUE_STDERR. */
VALUE event_stream_symbol(int queue);

/* Returns the queue of a stream that is named. Raises ArgumentError for another name. */
int event_stream_queue(VALUE stream);

/* What a set and its children share: `core.c`. */

/* Forgets one reference, and frees the structure with the last one. */
void core_release(struct core *core);

/* Frees a set that is stopped and that no thread uses. */
void core_free_set(struct core *core);

/* Makes a `struct call`: a function for rb_nogvl(). */
void *core_run_call(void *call);

/*
 * Calls the library without the interpreter's lock. Raises only before the call: a signal or
 * Thread#raise that comes meanwhile is handled later, so that no child is lost.
 */
void core_call(struct core *core, struct call *call);

/* Options of a hash, nil for the default of each: `options.c`. */

VALUE option_value(VALUE options, const char *name);

/* Returns a positive number, or 0 for the default. */
size_t option_size(VALUE options, const char *name);

/* Returns nanoseconds. Zero means the default to the library, so no time is the shortest there is. */
int64_t option_time(VALUE options, const char *name);

int32_t option_int(VALUE options, const char *name);

/* Returns a string option, or NULL. The caller keeps `*value` on its stack, so that the bytes do not move. */
const char *option_text(VALUE options, const char *name, VALUE *value);

/* Minder::Guardian and Minder::Guarded: `guardian.c`. */

/* Returns the handle of a guardian that is open and belongs to this process. Raises otherwise. */
minder_guardian *guardian_handle(VALUE self);

/* The description of a command: `launch.c`. */

/* Returns an object that holds an empty `struct launch`. */
VALUE launch_new(void);

/* Describes a command by a hash of lib/minder/launch.rb. The start reports what a setter refuses. */
void launch_describe(struct launch *launch, VALUE options);

/* Frees the command of a holder, whose descriptors must not wait for the collector. Returns nil. */
VALUE launch_end(VALUE holder);

/* Fills a termination: a time in seconds, or an array of [number of a signal, pause in seconds]. */
void launch_termination(VALUE value, minder_termination *how, minder_signal_step *steps);

/* The start of a child: `start.c`. */

/* Starts a child by a hash of lib/minder/launch.rb, and registers it. */
VALUE children_start(VALUE self, VALUE value, VALUE options);

/* Returns the queue of a child that is being started, and makes it if it is missing. */
struct child *orphans_find(struct children *children, minder_child_id id);

void orphans_free(struct children *children);

/* Minder::Children: `children.c`. */

struct children *children_of(VALUE self);

/* Returns the structure of a set that is open and belongs to this process. Raises otherwise. */
struct children *children_usable(VALUE self);

NORETURN(void children_raise_closed(const char *reason));

/* Adds a child to those with events for the consumer of all events. */
void children_list_ready(struct children *children, VALUE value, struct child *child);

/* Ends the part of a child in the events of the set. */
void children_leave_stream(struct children *children, struct child *child);

/* Minder::Child: `child.c`. */

extern const rb_data_type_t child_type;

void Init_minder_events(void);
void Init_minder_guardian(void);
void Init_minder_child(void);
void Init_minder_event_poller(void);

#endif
