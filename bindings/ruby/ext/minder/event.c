/* Events as values of Ruby: what lib/minder/event.rb and lib/minder/status.rb build on. */

#include "children.h"

static VALUE kind_symbols[MINDER_EVENT_DONE + 1], stream_symbols[2];

VALUE event_stream_symbol(int queue) {
    return stream_symbols[queue];
}

int event_stream_queue(VALUE stream) {
    if (stream == stream_symbols[QUEUE_STDOUT]) return QUEUE_STDOUT;
    if (stream == stream_symbols[QUEUE_STDERR]) return QUEUE_STDERR;
    rb_raise(rb_eArgError, "invalid stream %" PRIsVALUE ": expected :stdout or :stderr", rb_inspect(stream));
}

VALUE event_exit_values(const minder_exit *exit) {
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

static VALUE stream_of(const struct node *node) {
    return stream_symbols[node->stream == MINDER_STDERR];
}

VALUE event_values(VALUE child, const struct node *node) {
    VALUE values[10] = { kind_symbols[node->kind], child, Qnil, Qnil, Qnil, Qnil, Qnil, Qnil, Qnil, Qnil };
    switch (node->kind) {
    case MINDER_EVENT_OUTPUT:
        values[2] = stream_of(node);
        values[3] = rb_str_new((const char *)node->bytes, (long)node->len);
        break;
    case MINDER_EVENT_EOF: values[2] = stream_of(node); break;
    case MINDER_EVENT_STOPPED: values[9] = INT2NUM(node->signal); break;
    case MINDER_EVENT_EXITED:
    case MINDER_EVENT_DONE: values[4] = event_exit_values(&node->exit); break;
    case MINDER_EVENT_RESTARTING:
        values[4] = event_exit_values(&node->exit);
        values[6] = DBL2NUM((double)node->delay / 1e9);
        values[7] = ULL2NUM(node->restarts);
        break;
    case MINDER_EVENT_RESTARTED: values[8] = UINT2NUM(node->pid); break;
    case MINDER_EVENT_RESTART_FAILED: values[5] = rb_utf8_str_new_cstr(node->error ? node->error : ""); break;
    default: break;
    }
    return rb_ary_new_from_values(sizeof values / sizeof *values, values);
}

static VALUE symbol(const char *name) {
    return ID2SYM(rb_intern(name));
}

void Init_minder_events(void) {
    static const char *const kinds[] = { NULL, "output", "eof", "writable", "stopped", "exited", "restarting",
                                         "restarted", "restart_failed", "done" };
    for (int kind = 1; kind <= MINDER_EVENT_DONE; kind++) kind_symbols[kind] = symbol(kinds[kind]);
    stream_symbols[QUEUE_STDOUT] = symbol("stdout");
    stream_symbols[QUEUE_STDERR] = symbol("stderr");
}
