/*
 * Minder::Children::EventPoller: the descriptor of a set for one thread or scheduler, which other
 * threads can make readable. Its consumer can therefore be notified of events that another one
 * routed.
 */

#include "children.h"

struct event_poller {
    minder_poller *poller;
};

static void free_event_poller(void *pointer) {
    struct event_poller *it = pointer;
    minder_poller_free(it->poller);
    xfree(it);
}

static const rb_data_type_t event_poller_type = {
    .wrap_struct_name = "Minder::Children::EventPoller",
    .function = { NULL, free_event_poller, NULL, NULL, { 0 } },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE allocate_event_poller(VALUE class) {
    struct event_poller *it;
    return TypedData_Make_Struct(class, struct event_poller, &event_poller_type, it);
}

static struct event_poller *event_poller_of(VALUE self) {
    struct event_poller *it;
    TypedData_Get_Struct(self, struct event_poller, &event_poller_type, it);
    return it;
}

static VALUE event_poller_initialize(VALUE self, VALUE children_value) {
    struct event_poller *it = event_poller_of(self);
    struct children *children = children_usable(children_value);
    if (it->poller) rb_raise(rb_eRuntimeError, "the poller is open already");
#if defined(__linux__)
    const char *backend = "epoll";
#elif defined(__APPLE__) || defined(__FreeBSD__) || defined(__NetBSD__) || defined(__OpenBSD__)
    const char *backend = "kqueue";
#else
    const char *backend = NULL;
#endif
    minder_check(minder_poller_new(backend, &it->poller));
    minder_check(minder_poller_add(it->poller, minder_set_fd(children->core->set), MINDER_READABLE, 0));
    return self;
}

static VALUE event_poller_fd(VALUE self) {
    return INT2NUM(minder_poller_fd(event_poller_of(self)->poller));
}

static VALUE event_poller_notify(VALUE self) {
    struct event_poller *it = event_poller_of(self);
    if (it->poller) minder_poller_notify(it->poller);
    return Qnil;
}

/* Takes a notification. */
static VALUE event_poller_reset(VALUE self) {
    struct event_poller *it = event_poller_of(self);
    minder_ready ready[2];
    size_t count;
    if (it->poller) minder_poller_wait(it->poller, 0, ready, 2, &count);
    return Qnil;
}

static VALUE event_poller_close(VALUE self) {
    struct event_poller *it = event_poller_of(self);
    minder_poller_free(it->poller);
    it->poller = NULL;
    return Qnil;
}

void Init_minder_event_poller(void) {
    VALUE children_class = rb_define_class_under(minder_module, "Children", rb_cObject);
    VALUE event_poller_class = rb_define_class_under(children_class, "EventPoller", rb_cObject);
    rb_define_alloc_func(event_poller_class, allocate_event_poller);
    rb_undef_method(event_poller_class, "initialize_copy");
    rb_define_method(event_poller_class, "initialize", event_poller_initialize, 1);
    rb_define_method(event_poller_class, "fd", event_poller_fd, 0);
    rb_define_method(event_poller_class, "notify", event_poller_notify, 0);
    rb_define_method(event_poller_class, "reset", event_poller_reset, 0);
    rb_define_method(event_poller_class, "close", event_poller_close, 0);
}
