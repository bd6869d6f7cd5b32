/* The queues of a child: how events get there, and how much memory they take. */

#include "children.h"

#include <stdlib.h>
#include <string.h>

/* A chunk below this size is copied: to hold it in the library would take more memory than its bytes. */
#define HOLD_MIN 4096
/* The most bytes of a copied chunk that others are joined to. */
#define JOINED_MAX (64u << 10)
/* The most bytes in a pipe, unless the machine was configured otherwise. */
#define PIPE_MAX (1u << 20)
/* The most events of a child, except output, that wait for the consumer of all events. */
#define NOTICES_MAX 512

static void free_list(struct core *core, minder_events *list) {
    if (core->forks != minder_forks) return;
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

void queue_drop(struct child *child, int queue) {
    free_node(child->core, child, pop(child, queue));
}

void queue_clear(struct child *child, int queue) {
    while (child->queues[queue].head) queue_drop(child, queue);
}

int queue_oldest(const struct child *child) {
    int found = QUEUES;
    for (int queue = 0; queue < QUEUES; queue++) {
        const struct node *node = child->queues[queue].head;
        if (node && (found == QUEUES || node->number < child->queues[found].head->number)) found = queue;
    }
    return found;
}

int queue_older_output(const struct child *child) {
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
        queue_drop(child, queue);
    return node;
}

/* ---- Routing ---- */

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
        int queue = queue_older_output(child);
        const struct node *node = child->queues[queue].head;
        if (!node || (!node->next && !child->queues[!queue].head)) return;
        child->dropped += node->len;
        queue_drop(child, queue);
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

bool queue_route(struct child *child, const minder_event *event) {
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

void queue_settle(struct child *child) {
    const size_t max = 2 * child->core->child_max + PIPE_MAX;
    for (int queue = QUEUE_STDOUT; child->has_exited && queue <= QUEUE_STDERR; queue++) {
        for (struct node *node = child->queues[queue].head; node; node = node->next) {
            if (!node->list) continue;
            uint8_t *copy = child->copied + node->len <= max ? malloc(node->len) : NULL;
            if (!copy) return;
            memcpy(copy, node->bytes, node->len);
            free_list(child->core, node->list);
            node->list = NULL;
            node->bytes = node->copy = copy;
            node->capacity = node->len;
            child->copied += node->len;
            child->core->copied += node->len;
        }
    }
}
