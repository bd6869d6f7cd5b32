/*
 * Minder::Children::Pump: the descriptor of a set for one thread or scheduler, which other threads
 * can make readable. A consumer that waits for it can therefore be told of events that another one
 * routed.
 */

#include "children.h"

struct pump {
    minder_poller *poller;
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
    struct children *children = children_usable(children_value);
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

void Init_minder_pump(void) {
    VALUE children_class = rb_define_class_under(minder_module, "Children", rb_cObject);
    VALUE pump_class = rb_define_class_under(children_class, "Pump", rb_cObject);
    rb_define_alloc_func(pump_class, allocate_pump);
    rb_undef_method(pump_class, "initialize_copy");
    rb_define_method(pump_class, "initialize", pump_initialize, 1);
    rb_define_method(pump_class, "fd", pump_fd, 0);
    rb_define_method(pump_class, "notify", pump_notify, 0);
    rb_define_method(pump_class, "reset", pump_reset, 0);
    rb_define_method(pump_class, "close", pump_close, 0);
}
