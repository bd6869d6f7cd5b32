/* Options of a hash. nil is the default of each. */

#include "children.h"

VALUE option_value(VALUE options, const char *name) {
    return rb_hash_lookup2(options, ID2SYM(rb_intern(name)), Qnil);
}

size_t option_size(VALUE options, const char *name) {
    VALUE value = option_value(options, name);
    if (NIL_P(value)) return 0;
    long long size = NUM2LL(value);
    if (size <= 0) rb_raise(rb_eArgError, "%s is %lld: expected a positive number", name, size);
    return (size_t)size;
}

int64_t option_time(VALUE options, const char *name) {
    VALUE value = option_value(options, name);
    if (NIL_P(value)) return 0;
    int64_t time = minder_time(value);
    return time == 0 ? 1 : time;
}

int32_t option_int(VALUE options, const char *name) {
    VALUE value = option_value(options, name);
    return NIL_P(value) ? 0 : NUM2INT(value);
}

const char *option_text(VALUE options, const char *name, VALUE *value) {
    *value = option_value(options, name);
    return NIL_P(*value) ? NULL : StringValueCStr(*value);
}
