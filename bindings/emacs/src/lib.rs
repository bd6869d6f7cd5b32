//! The dynamic module of the Emacs package `minder`: children that never wait for Emacs.
//!
//! A `minder::BackgroundSet` reads all children on a separate thread. Another thread, in
//! `notifier.rs`, writes one byte to a pipe process of Emacs when there are events. The loop of
//! Emacs reads the byte, and Lisp takes the events. No other descriptor of ours is below those that
//! Emacs can watch.
//!
//! `host.rs` does not know Emacs, and `functions.rs` converts between the two. No lock is held while a
//! function of Emacs is called.
#![expect(unsafe_code, reason = "symbols that Emacs looks for")]

mod ffi;
mod env;
mod system;
mod notifier;
mod output;
mod host;
mod functions;

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use self::env::{Env, Failure};
use self::ffi::RawRuntime;

/// Emacs loads no module without this symbol.
#[unsafe(no_mangle)]
pub static plugin_is_GPL_compatible: c_int = 0;

/// `true` once this copy of the module has defined its functions.
static IS_LOADED: AtomicBool = AtomicBool::new(false);

/// The status of `emacs_module_init` for an Emacs that is older than 28.
const TOO_OLD: c_int = 1;

/// Defines the functions of the module.
///
/// # Safety
/// Emacs calls it, once for each `module-load`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn emacs_module_init(runtime: *mut RawRuntime) -> c_int {
    // SAFETY: Emacs has just passed the pointer.
    let done = unsafe { Env::initialize(runtime, define) };
    if done.is_some() { 0 } else { TOO_OLD }
}

/// Defines the functions, unless this module or another copy of it has done so in this Emacs.
fn define(env: Env<'_>) -> env::Result<()> {
    let feature = env.intern(c"minder-module")?;
    let provided = env.call(c"featurep", &[feature])?;
    if IS_LOADED.load(Ordering::Acquire) || env.is_set(provided)? {
        return Err(Failure::text(
            "cannot load the module: it is loaded already (a new version needs a new Emacs)",
        ));
    }
    for function in functions::ALL {
        env.define(function)?;
    }
    env.call(c"provide", &[feature])?;
    IS_LOADED.store(true, Ordering::Release);
    Ok(())
}
