/* The description of a command and how it is started, by a hash of lib/minder/launch.rb. */

#include "children.h"

/* A time that no program lives to see the end of. */
#define HUNDRED_YEARS (MINDER_SECOND * 86400 * 365 * 100)

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

VALUE launch_new(void) {
    struct launch *launch;
    return TypedData_Make_Struct(rb_cObject, struct launch, &launch_type, launch);
}

VALUE launch_end(VALUE holder) {
    struct launch *launch = RTYPEDDATA_DATA(holder);
    minder_command_free(launch->command);
    launch->command = NULL;
    return Qnil;
}

static int64_t pause_time(VALUE seconds) {
    int64_t time = minder_time(seconds);
    return time == MINDER_FOREVER ? HUNDRED_YEARS : time;
}

void launch_termination(VALUE value, minder_termination *how, minder_signal_step *steps) {
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

void launch_describe(struct launch *launch, VALUE options) {
    VALUE words = option_value(options, "command");
    Check_Type(words, T_ARRAY);
    launch->command = minder_command_new(text(rb_ary_entry(words, 0)));
    for (long index = 1; index < RARRAY_LEN(words); index++)
        minder_command_arg(launch->command, text(rb_ary_entry(words, index)));
    if (RTEST(option_value(options, "unsetenv_others"))) minder_command_env_clear(launch->command);
    VALUE env = option_value(options, "env");
    for (long index = 0; !NIL_P(env) && index < RARRAY_LEN(env); index++) {
        VALUE pair = rb_ary_entry(env, index), name = rb_ary_entry(pair, 0), value = rb_ary_entry(pair, 1);
        const char *name_text = StringValueCStr(name);
        minder_command_env(launch->command, name_text, NIL_P(value) ? NULL : StringValueCStr(value));
        RB_GC_GUARD(name);
    }
    VALUE directory = option_value(options, "chdir");
    if (!NIL_P(directory)) minder_command_current_dir(launch->command, text(directory));
    describe_stream(launch->command, MINDER_STDIN, option_value(options, "stdin"));
    describe_stream(launch->command, MINDER_STDOUT, option_value(options, "stdout"));
    describe_stream(launch->command, MINDER_STDERR, option_value(options, "stderr"));
    VALUE terminal = option_value(options, "terminal");
    if (NIL_P(terminal))
        minder_command_group(launch->command, option_int(options, "group"));
    else
        minder_command_terminal(launch->command, (uint16_t)NUM2USHORT(rb_ary_entry(terminal, 0)),
                                (uint16_t)NUM2USHORT(rb_ary_entry(terminal, 1)));
    VALUE nice = option_value(options, "nice");
    if (!NIL_P(nice)) minder_command_nice(launch->command, NUM2INT(nice));

    minder_spawn_options *spawn = &launch->options;
    *spawn = (minder_spawn_options)MINDER_INIT(minder_spawn_options);
    spawn->overflow = option_int(options, "overflow");
    spawn->restart = option_int(options, "restart");
    spawn->timeout = option_time(options, "timeout");
    launch_termination(option_value(options, "kill"), &launch->kill, launch->steps);
    spawn->timeout_kill = &launch->kill;
    spawn->restart_delay = option_time(options, "restart_delay");
    spawn->restart_max_delay = option_time(options, "restart_max_delay");
    spawn->restart_stable_after = option_time(options, "restart_stable_after");
    spawn->restart_max_count = (uint32_t)option_size(options, "restart_max");
}
