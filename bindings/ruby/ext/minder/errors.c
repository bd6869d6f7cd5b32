/* Errors of the library as exceptions of Ruby, and conversions that the other files share. */

#include "shim.h"

#include <math.h>
#include <ruby/io.h>

static VALUE error_class, exhausted_class, limit_class, closed_class, panic_class;

void minder_raise(minder_status status) {
    VALUE message = rb_utf8_str_new_cstr(minder_last_error());
    int number = minder_last_os_error();
    switch (status) {
    case MINDER_INVALID: rb_exc_raise(rb_exc_new_str(rb_eArgError, message));
    case MINDER_UNSUPPORTED: rb_exc_raise(rb_exc_new_str(rb_eNotImpError, message));
    case MINDER_EXHAUSTED: rb_exc_raise(rb_exc_new_str(exhausted_class, message));
    case MINDER_LIMIT: rb_exc_raise(rb_exc_new_str(limit_class, message));
    case MINDER_FORKED:
    case MINDER_UNKNOWN: rb_exc_raise(rb_exc_new_str(closed_class, message));
    case MINDER_PANIC: rb_exc_raise(rb_exc_new_str(panic_class, message));
    case MINDER_NOT_FOUND: if (number == 0) number = ENOENT; break;
    case MINDER_PERMISSION_DENIED: if (number == 0) number = EACCES; break;
    case MINDER_TOO_LONG: if (number == 0) number = E2BIG; break;
    default: break;
    }
    if (number != 0) rb_exc_raise(rb_syserr_new_str(number, message));
    rb_exc_raise(rb_exc_new_str(error_class, message));
}

int64_t minder_time(VALUE seconds) {
    if (NIL_P(seconds)) return MINDER_FOREVER;
    double nanoseconds = ceil(NUM2DBL(seconds) * 1e9);
    if (isnan(nanoseconds)) rb_raise(rb_eArgError, "a time is not a number");
    if (nanoseconds <= 0) return 0;
    const double longest = 100.0 * 365 * 86400 * 1e9;
    return nanoseconds < longest ? (int64_t)nanoseconds : MINDER_FOREVER;
}

int minder_descriptor(VALUE io) {
#ifdef HAVE_RB_IO_CLOSED_P
    return RTEST(rb_io_closed_p(io)) ? -1 : rb_io_descriptor(io);
#else
    /* Before Ruby 3.3 nothing but the structure tells without raising. */
    rb_io_t *file = RB_TYPE_P(io, T_FILE) ? RFILE(io)->fptr : NULL;
    return file ? file->fd : -1;
#endif
}

void Init_minder_errors(void) {
    /* Document-class: Minder::Error: what the library reports and Errno has no name for. */
    error_class = rb_define_class_under(minder_module, "Error", rb_eStandardError);
    exhausted_class = rb_define_class_under(minder_module, "ExhaustedError", error_class);
    limit_class = rb_define_class_under(minder_module, "LimitError", error_class);
    closed_class = rb_define_class_under(minder_module, "ClosedError", error_class);
    panic_class = rb_define_class_under(minder_module, "PanicError", error_class);
}
