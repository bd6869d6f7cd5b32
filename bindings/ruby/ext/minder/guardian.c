/* Minder::Guardian and Minder::Guarded: what lib/minder/guardian.rb builds on. */

#include "children.h"

#include <ruby/thread.h>

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
    if (!minder_is_exiting) minder_guardian_free(guardian->handle);
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
    if (!guardian->handle || guardian->forks != minder_forks) {
        if (!guardian->handle) children_raise_closed("the guardian is closed");
        children_raise_closed("the guardian belongs to the parent of this forked process; make one here");
    }
    return guardian;
}

minder_guardian *guardian_handle(VALUE self) {
    return guardian_of(self)->handle;
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
    start.options.tag = RTEST(option_value(options, "tag"));
    start.options.restart = RTEST(option_value(options, "restart"));
    start.options.inherit_stderr = RTEST(option_value(options, "inherit_stderr"));
    start.options.grace = option_time(options, "grace");
    start.options.start_timeout = option_time(options, "start_timeout");
    start.options.program = option_text(options, "program", &program);
    while (!start.is_called) {
        rb_nogvl(start_guardian, &start, NULL, NULL, RB_NOGVL_INTR_FAIL);
        if (!start.is_called) rb_thread_check_ints();
    }
    RB_GC_GUARD(program);
    minder_check(start.status);
    guardian->handle = start.handle;
    guardian->forks = minder_forks;
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

/* ---- Minder::Guarded ---- */

static void free_guarded(void *pointer) {
    if (!minder_is_exiting) minder_guarded_free(pointer);
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

void Init_minder_guardian(void) {
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
}
