/* A doubly linked list whose links lie in its elements. A link that is in no list points to itself. */

#ifndef MINDER_LIST_H
#define MINDER_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct link {
    struct link *previous, *next;
};

#define LIST_ELEMENT(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

static inline void list_init(struct link *link) {
    link->previous = link->next = link;
}

static inline bool list_is_empty(const struct link *list) {
    return list->next == list;
}

static inline void list_append(struct link *list, struct link *link) {
    link->previous = list->previous;
    link->next = list;
    list->previous->next = link;
    list->previous = link;
}

/* Takes a link out of its list, if it is in one. */
static inline void list_remove(struct link *link) {
    link->previous->next = link->next;
    link->next->previous = link->previous;
    list_init(link);
}

#endif
