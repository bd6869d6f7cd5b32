/* What the extension knows of its process. */

#include "shim.h"

#include <pthread.h>

unsigned minder_forks;
bool minder_is_exiting;

static void count_fork(void) {
    minder_forks++;
}

static void note_exit(VALUE unused) {
    minder_is_exiting = true;
}

void Init_minder_process(void) {
    pthread_atfork(NULL, NULL, count_fork);
    rb_set_end_proc(note_exit, Qnil);
}
