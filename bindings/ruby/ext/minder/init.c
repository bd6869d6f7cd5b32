/* The entry of the extension. */

#include "shim.h"

VALUE minder_module;

RUBY_FUNC_EXPORTED void Init_minder_ext(void) {
    minder_status status = minder_check_version(MINDER_VERSION);
    if (status != MINDER_OK) rb_raise(rb_eLoadError, "%s", minder_last_error());
    minder_module = rb_define_module("Minder");
    Init_minder_process();
    Init_minder_errors();
    Init_minder_scheduler();
    Init_minder_children();
}
