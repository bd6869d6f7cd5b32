/* What a set and its children share: its end, and the calls of the library that wait. */

#include "children.h"

#include <ruby/thread.h>
#include <stdlib.h>

void core_release(struct core *core) {
    if (--core->references > 0 || minder_is_exiting) return;
    if (core->forks == minder_forks) {
        minder_events_free(core->taken);
        while (core->spare_count > 0) minder_events_free(core->spare[--core->spare_count]);
    }
    minder_set_free(core->set);
    free(core);
}

void *core_run_call(void *pointer) {
    struct call *call = pointer;
    call->is_called = true;
    switch (call->operation) {
    case CALL_SPAWN:
        call->status = minder_set_spawn(call->set, call->command, call->options, &call->id);
        /* It fails if the end of the child was taken meanwhile: then there is no pid any more. */
        if (call->status == MINDER_OK && minder_set_pid(call->set, call->id, &call->pid) != MINDER_OK)
            call->pid = 0;
        break;
    case CALL_KILL: call->status = minder_set_kill(call->set, call->id, call->how); break;
    case CALL_RESTART: call->status = minder_set_restart(call->set, call->id, call->how); break;
    case CALL_SUSPEND: call->status = minder_set_suspend(call->set, call->id); break;
    case CALL_RESUME: call->status = minder_set_resume(call->set, call->id); break;
    case CALL_RESIZE: call->status = minder_set_resize(call->set, call->id, call->rows, call->columns); break;
    case CALL_STOP: call->status = minder_set_stop(call->set, call->grace); break;
    }
    return NULL;
}

void core_call(struct core *core, struct call *call) {
    call->set = core->set;
    for (;;) {
        core->users++;
        rb_nogvl(core_run_call, call, NULL, NULL, RB_NOGVL_INTR_FAIL);
        core->users--;
        if (call->is_called) break;
        rb_thread_check_ints();
        if (!core->set) children_raise_closed("the set was stopped");
    }
}

void core_free_set(struct core *core) {
    if (!core->is_closing || core->users > 0 || !core->set) return;
    minder_set *set = core->set;
    core->set = NULL;
    minder_set_free(set);
}
