//! The environment of Emacs during one call: values of Lisp, and functions that are checked.
//!
//! After each function of Emacs the pending exit is asked for. An exit that is pending (an error, a quit, a
//! throw) becomes [`Failure::Pending`], and no other function of Emacs is called before the return.
#![expect(unsafe_code, reason = "functions of Emacs, through emacs-module.h")]

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;

use crate::ffi::{self, RawEnv, RawRuntime, RawValue};
use crate::system::Channel;

/// Why a call fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Emacs has the reason.
    Pending,
    /// The text of a `minder-error`.
    Text(String),
}

impl Failure {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

impl From<minder::Error> for Failure {
    fn from(error: minder::Error) -> Self {
        Self::Text(error.to_string())
    }
}

/// The result of a call.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// A value of Lisp, for the time of one call.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Value<'e>(RawValue, PhantomData<&'e ()>);

/// A function of the module: its name, the numbers of its arguments, its documentation and its body.
pub(crate) struct Function {
    pub(crate) name: &'static CStr,
    pub(crate) arguments: (isize, isize),
    pub(crate) doc: &'static CStr,
    pub(crate) body: for<'e> fn(Env<'e>, &[Value<'e>]) -> Result<Value<'e>>,
}

/// The environment of one call.
#[derive(Clone, Copy)]
pub(crate) struct Env<'e> {
    pointer: *mut RawEnv,
    raw: &'e RawEnv,
}

/// Calls a function of the environment, and returns what it returns if no exit is pending.
macro_rules! checked {
    ($env:expr, $name:ident $(, $arg:expr)*) => {{
        // SAFETY: the environment is that of this call, no exit is pending, the values are of this call,
        // and pointers of arguments point to what lives until the function returns.
        let result = unsafe { ($env.raw.$name)($env.pointer $(, $arg)*) };
        $env.check()?;
        result
    }};
}

impl<'e> Env<'e> {
    /// Calls `body` with the environment of an initialization. Returns `None` if Emacs is too old.
    ///
    /// # Safety
    /// Emacs has just passed `runtime` to `emacs_module_init`.
    pub(crate) unsafe fn initialize(
        runtime: *mut RawRuntime,
        body: impl FnOnce(Env<'_>) -> Result<()>,
    ) -> Option<()> {
        // SAFETY: see above.
        let pointer = unsafe { ffi::environment(runtime) }?;
        // SAFETY: it is large enough, and valid for the time of the call.
        let env = Env { pointer, raw: unsafe { &*pointer } };
        let done = caught(|| body(env));
        env.report(done);
        Some(())
    }

    fn check(self) -> Result<()> {
        // SAFETY: the environment is that of this call. This function may be called with a pending exit.
        let exit = unsafe { (self.raw.non_local_exit_check)(self.pointer) };
        if exit == 0 { Ok(()) } else { Err(Failure::Pending) }
    }

    /// Forgets the pending exit.
    pub(crate) fn clear(self) {
        // SAFETY: the environment is that of this call. This function may be called with a pending exit.
        unsafe { (self.raw.non_local_exit_clear)(self.pointer) };
    }

    /// Makes a failure the pending exit. Returns the value of a success.
    fn report<T>(self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => return Some(value),
            Err(Failure::Pending) => (),
            // If this fails, the reason of that is pending.
            Err(Failure::Text(text)) => drop(self.signal(&text)),
        }
        None
    }

    /// Makes `(minder-error TEXT)` the pending exit.
    fn signal(self, text: &str) -> Result<()> {
        let symbol = self.intern(c"minder-error")?;
        let text = self.string(text.as_bytes())?;
        let data = self.call(c"list", &[text])?;
        checked!(self, non_local_exit_signal, symbol.0, data.0);
        Ok(())
    }

    pub(crate) fn intern(self, name: &CStr) -> Result<Value<'e>> {
        Ok(self.value(checked!(self, intern, name.as_ptr())))
    }

    pub(crate) fn nil(self) -> Result<Value<'e>> {
        self.intern(c"nil")
    }

    pub(crate) fn boolean(self, yes: bool) -> Result<Value<'e>> {
        self.intern(if yes { c"t" } else { c"nil" })
    }

    /// Calls a function of Lisp by its name.
    pub(crate) fn call(self, name: &CStr, args: &[Value<'e>]) -> Result<Value<'e>> {
        let function = self.intern(name)?;
        let mut raw: Vec<RawValue> = args.iter().map(|value| value.0).collect();
        Ok(self.value(checked!(self, funcall, function.0, raw.len() as isize, raw.as_mut_ptr())))
    }

    /// Defines a function for Lisp.
    pub(crate) fn define(self, function: &'static Function) -> Result<()> {
        let data = std::ptr::from_ref(function).cast_mut().cast::<c_void>();
        let (min, max) = function.arguments;
        let value = checked!(self, make_function, min, max, enter, function.doc.as_ptr(), data);
        let name = self.intern(function.name)?;
        self.call(c"defalias", &[name, self.value(value)])?;
        Ok(())
    }

    pub(crate) fn is_set(self, value: Value<'e>) -> Result<bool> {
        Ok(checked!(self, is_not_nil, value.0))
    }

    pub(crate) fn integer(self, number: i64) -> Result<Value<'e>> {
        Ok(self.value(checked!(self, make_integer, number)))
    }

    pub(crate) fn number(self, value: Value<'e>) -> Result<i64> {
        Ok(checked!(self, extract_integer, value.0))
    }

    /// Returns a number that is not negative and at most `max`.
    pub(crate) fn number_up_to(self, value: Value<'e>, max: u64) -> Result<u64> {
        let number = self.number(value)?;
        let number = u64::try_from(number).ok().filter(|number| *number <= max);
        number.ok_or_else(|| Failure::text(format!("invalid number: expected 0 to {max}")))
    }

    /// Returns a multibyte string of UTF-8.
    pub(crate) fn string(self, utf8: &[u8]) -> Result<Value<'e>> {
        Ok(self.value(checked!(self, make_string, utf8.as_ptr().cast(), utf8.len() as isize)))
    }

    /// Returns a unibyte string.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Result<Value<'e>> {
        Ok(self.value(checked!(self, make_unibyte_string, bytes.as_ptr().cast(), bytes.len() as isize)))
    }

    /// Returns the bytes of a string: those of a unibyte string as they are, others as UTF-8.
    pub(crate) fn copy(self, string: Value<'e>) -> Result<Vec<u8>> {
        let mut size: isize = 0;
        checked!(self, copy_string_contents, string.0, std::ptr::null_mut(), &raw mut size);
        let mut bytes = vec![0_u8; size.max(1) as usize];
        checked!(self, copy_string_contents, string.0, bytes.as_mut_ptr().cast(), &raw mut size);
        // The last one is the 0 that Emacs appends.
        bytes.truncate(size.max(1) as usize - 1);
        Ok(bytes)
    }

    /// Returns the strings of a vector.
    pub(crate) fn copy_all(self, vector: Value<'e>) -> Result<Vec<Vec<u8>>> {
        (0..self.length(vector)?).map(|index| self.copy(self.element(vector, index)?)).collect()
    }

    pub(crate) fn length(self, vector: Value<'e>) -> Result<usize> {
        Ok(checked!(self, vec_size, vector.0) as usize)
    }

    pub(crate) fn element(self, vector: Value<'e>, index: usize) -> Result<Value<'e>> {
        Ok(self.value(checked!(self, vec_get, vector.0, index as isize)))
    }

    pub(crate) fn set(self, vector: Value<'e>, index: usize, value: Value<'e>) -> Result<()> {
        checked!(self, vec_set, vector.0, index as isize, value.0);
        Ok(())
    }

    /// Returns the end of a pipe whose bytes Emacs reads as the output of a pipe process.
    pub(crate) fn open_channel(self, process: Value<'e>) -> Result<Channel> {
        let descriptor = checked!(self, open_channel, process.0);
        // SAFETY: Emacs has just made this copy for us.
        Ok(unsafe { Channel::adopt(descriptor) })
    }

    fn value(self, raw: RawValue) -> Value<'e> {
        Value(raw, PhantomData)
    }
}

/// Calls `body`, and returns a panic as a failure: none may cross into Emacs.
fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Err(Failure::text(format!("panic in the module: {}", text.unwrap_or("no message"))))
    })
}

/// The function that Emacs calls for each function of the module.
unsafe extern "C" fn enter(
    pointer: *mut RawEnv,
    count: isize,
    args: *mut RawValue,
    data: *mut c_void,
) -> RawValue {
    // SAFETY: `define` made it of a static function.
    let function = unsafe { &*data.cast::<Function>() };
    // SAFETY: Emacs' pointer is valid for the time of the call. `initialize` has checked the size.
    let env = Env { pointer, raw: unsafe { &*pointer } };
    let args: &[Value<'_>] = if count <= 0 {
        &[]
    } else {
        // SAFETY: Emacs passes this many, and `Value` has the layout of a raw value.
        unsafe { std::slice::from_raw_parts(args.cast::<Value<'_>>(), count as usize) }
    };
    let done = caught(|| (function.body)(env, args));
    env.report(done).map_or(std::ptr::null_mut(), |value| value.0)
}
