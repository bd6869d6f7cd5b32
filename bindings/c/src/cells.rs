//! minder_cells.h: JSON as cells, to be walked without a copy of each value.
//!
//! A message is parsed into one block of cells of 16 bytes. A minder_cell names a value among them: it needs
//! no free, and is valid as long as its minder_cells. Freeing these costs the same for one value and for a
//! million.
//!
//!     minder_cells *cells = NULL;
//!     if (minder_cells_parse(pool, bytes, len, &cells, NULL) != MINDER_OK) puts(minder_last_error());
//!     const minder_cell items = minder_cells_get(cells, minder_cells_root(cells), "items");
//!     for (size_t i = 0; i < minder_cells_len(cells, items); i++)
//!         use(minder_cells_index(cells, items, i));
//!     minder_cells_free(cells);
//!
//! What a value lacks is MINDER_NO_CELL, and so is everything in MINDER_NO_CELL: a chain of calls needs one
//! check at its end. Use a minder_cell with its own minder_cells: with others it names another value or none.
//!
//! The rules of minder.h hold. Several threads may read the same cells.
#![expect(unsafe_code, reason = "functions with C linkage")]

use std::ffi::{CStr, c_char};

use ::minder_cells::{Data, JsonError, JsonErrorKind, Region, RegionPool, View};

use crate::arg::{self, Opaque, bytes, free, handle, required, store};
use crate::status::{Failure, call, minder_status, value};

/// A value among cells.
pub type minder_cell = u64;

/// No value. No minder_cell of a value has this number.
pub const MINDER_NO_CELL: minder_cell = u64::MAX;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum minder_cell_type {
    /// There is no value: it is MINDER_NO_CELL.
    MINDER_CELL_NONE = 0,
    /// `null`.
    MINDER_CELL_NULL = 1,
    /// `true` or `false`: minder_cells_bool().
    MINDER_CELL_BOOL = 2,
    /// An integer of 64 bits: minder_cells_integer() and minder_cells_unsigned().
    MINDER_CELL_INTEGER = 3,
    /// Another number: minder_cells_number().
    MINDER_CELL_FLOAT = 4,
    /// A string, or the key of an object: minder_cells_text().
    MINDER_CELL_TEXT = 5,
    /// Several values: minder_cells_len() and minder_cells_index().
    MINDER_CELL_ARRAY = 6,
    /// Keys and values: minder_cells_get(), or minder_cells_len(), minder_cells_key() and
    /// minder_cells_value().
    MINDER_CELL_OBJECT = 7,
}

/// Keeps the memory of cells that were freed for the next message. Freed by minder_cells_pool_free().
#[derive(Debug)]
pub struct minder_cells_pool(());

/// The cells of one message. Freed by minder_cells_free().
#[derive(Debug)]
pub struct minder_cells(());

impl Opaque for minder_cells_pool {
    type Inner = RegionPool;
    const TAG: [u8; 8] = *b"mnd_cpl\0";
}

impl Opaque for minder_cells {
    type Inner = Region;
    const TAG: [u8; 8] = *b"mnd_cel\0";
}

impl From<JsonError> for Failure {
    fn from(error: JsonError) -> Self {
        let status = match error.kind() {
            JsonErrorKind::Memory => minder_status::MINDER_EXHAUSTED,
            _ => minder_status::MINDER_INVALID,
        };
        Self::new(status, error.to_string())
    }
}

/// Returns the number of a value that may be missing.
fn number_of(view: Option<View<'_>>) -> minder_cell {
    view.map_or(MINDER_NO_CELL, View::to_bits)
}

/// Stores a number, if the value has one of this type.
///
/// # Safety
/// `target` is NULL, or points to room for it.
unsafe fn store_number<T>(target: *mut T, number: Option<T>) -> Result<minder_status, Failure> {
    required!(target);
    let Some(number) = number else { return Ok(minder_status::MINDER_NONE) };
    store!(target, number);
    Ok(minder_status::MINDER_OK)
}

/// Creates a pool. Never returns NULL. It keeps the memory of at most 16 messages, together 64 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn minder_cells_pool_new() -> *mut minder_cells_pool {
    value(std::ptr::null_mut(), || Ok(arg::new_handle(RegionPool::new())))
}

/// Frees a pool. Cells that were made with it stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_pool_free(pool: *mut minder_cells_pool) {
    free!(pool);
}

/// Parses JSON (RFC 8259) of any depth, and stores its cells, which do not refer to `bytes`.
///
/// Returns MINDER_INVALID if it is not JSON, and MINDER_EXHAUSTED if there is no memory. `offset`, which may
/// be NULL, is then the byte at which that was found; minder_last_error() says the same. An integer that does
/// not fit into 64 bits becomes a float.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_parse(
    pool: *const minder_cells_pool,
    bytes: *const u8,
    len: usize,
    cells: *mut *mut minder_cells,
    offset: *mut usize,
) -> minder_status {
    call(|| {
        required!(cells);
        store!(cells, std::ptr::null_mut());
        store!(offset, 0);
        let parsed = handle!(pool).parse_json(bytes!(bytes, len));
        if let Err(error) = &parsed {
            store!(offset, error.offset());
        }
        store!(cells, arg::new_handle(parsed?));
        Ok(minder_status::MINDER_OK)
    })
}

/// Frees the cells of a message, all at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_free(cells: *mut minder_cells) {
    free!(cells);
}

/// Returns the whole message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_root(cells: *const minder_cells) -> minder_cell {
    value(MINDER_NO_CELL, || Ok(handle!(cells).view().to_bits()))
}

/// Returns how many bytes the cells have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_bytes(cells: *const minder_cells) -> usize {
    value(0, || Ok(handle!(cells).bytes()))
}

/// Returns the type of a value, one of minder_cell_type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_type(cells: *const minder_cells, cell: minder_cell) -> i32 {
    use minder_cell_type::*;
    let kind = value(MINDER_CELL_NONE, || {
        Ok(match handle!(cells).view_of_bits(cell).map(View::data) {
            Some(Data::Null) => MINDER_CELL_NULL,
            Some(Data::Bool(_)) => MINDER_CELL_BOOL,
            Some(Data::Int(_) | Data::UInt(_)) => MINDER_CELL_INTEGER,
            Some(Data::Float(_)) => MINDER_CELL_FLOAT,
            Some(Data::Str(_) | Data::Symbol(_)) => MINDER_CELL_TEXT,
            Some(Data::Vector(_)) => MINDER_CELL_ARRAY,
            Some(Data::Map(_)) => MINDER_CELL_OBJECT,
            // JSON has no other value.
            _ => MINDER_CELL_NONE,
        })
    });
    kind as i32
}

/// Returns whether a value is `true`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_bool(cells: *const minder_cells, cell: minder_cell) -> bool {
    value(false, || Ok(handle!(cells).view_of_bits(cell).and_then(View::as_bool) == Some(true)))
}

/// Stores an integer. Returns MINDER_NONE, and stores nothing, for other values and if it does not fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_integer(
    cells: *const minder_cells,
    cell: minder_cell,
    number: *mut i64,
) -> minder_status {
    call(|| {
        let found = handle!(cells).view_of_bits(cell).and_then(View::as_i64);
        // SAFETY: the caller passes NULL or room for the number.
        unsafe { store_number(number, found) }
    })
}

/// Stores an integer that is not negative. Returns MINDER_NONE, and stores nothing, for other values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_unsigned(
    cells: *const minder_cells,
    cell: minder_cell,
    number: *mut u64,
) -> minder_status {
    call(|| {
        let found = match handle!(cells).view_of_bits(cell).map(View::data) {
            Some(Data::Int(number)) => u64::try_from(number).ok(),
            Some(Data::UInt(number)) => Some(number),
            _ => None,
        };
        // SAFETY: the caller passes NULL or room for the number.
        unsafe { store_number(number, found) }
    })
}

/// Stores a number as a float; an integer beyond 2^53 is rounded. Returns MINDER_NONE, and stores nothing,
/// for other values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_number(
    cells: *const minder_cells,
    cell: minder_cell,
    number: *mut f64,
) -> minder_status {
    call(|| {
        let found = handle!(cells).view_of_bits(cell).and_then(View::as_f64);
        // SAFETY: the caller passes NULL or room for the number.
        unsafe { store_number(number, found) }
    })
}

/// Returns the text of a string or a key, and stores its number of bytes; NULL for other values. It is UTF-8,
/// may contain NUL, and no NUL follows. Valid as long as the cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_text(
    cells: *const minder_cells,
    cell: minder_cell,
    len: *mut usize,
) -> *const c_char {
    value(std::ptr::null(), || {
        store!(len, 0);
        let Some(text) = handle!(cells).view_of_bits(cell).and_then(View::as_str) else {
            return Ok(std::ptr::null());
        };
        store!(len, text.len());
        Ok(text.as_ptr().cast())
    })
}

/// Returns how many elements an array has, or how many entries an object; 0 for other values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_len(cells: *const minder_cells, cell: minder_cell) -> usize {
    value(0, || {
        let view = handle!(cells).view_of_bits(cell);
        Ok(view.map_or(0, |view| view.elements().len() + view.entries().len()))
    })
}

/// Returns an element of an array; MINDER_NO_CELL for other values and behind the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_index(
    cells: *const minder_cells,
    cell: minder_cell,
    index: usize,
) -> minder_cell {
    value(MINDER_NO_CELL, || {
        Ok(number_of(handle!(cells).view_of_bits(cell).and_then(|view| view.index(index))))
    })
}

/// Returns the value of a key in an object, the last one if it occurs several times; MINDER_NO_CELL if there
/// is none. It compares the keys one after the other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_get(
    cells: *const minder_cells,
    cell: minder_cell,
    key: *const c_char,
) -> minder_cell {
    value(MINDER_NO_CELL, || {
        required!(key);
        // SAFETY: the caller passes a string that ends with NUL.
        let key = unsafe { CStr::from_ptr(key) };
        // A key of a message is UTF-8.
        let found = key.to_str().ok().zip(handle!(cells).view_of_bits(cell));
        Ok(number_of(found.and_then(|(key, view)| view.get(key))))
    })
}

/// Returns the key of an entry of an object, in the order of the message; MINDER_NO_CELL behind the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_key(
    cells: *const minder_cells,
    cell: minder_cell,
    index: usize,
) -> minder_cell {
    value(MINDER_NO_CELL, || {
        let view = handle!(cells).view_of_bits(cell);
        Ok(number_of(view.and_then(|view| view.entries().nth(index)).map(|(key, _)| key)))
    })
}

/// Returns the value of an entry of an object, in the order of the message; MINDER_NO_CELL behind the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_value(
    cells: *const minder_cells,
    cell: minder_cell,
    index: usize,
) -> minder_cell {
    value(MINDER_NO_CELL, || {
        let view = handle!(cells).view_of_bits(cell);
        Ok(number_of(view.and_then(|view| view.entries().nth(index)).map(|(_, value)| value)))
    })
}

/// Writes a value as JSON, such as a part of an answer that the next request contains. Stores how many bytes
/// that takes. Writes nothing, and returns MINDER_LIMIT, if the buffer has less room; it may be NULL if
/// `capacity` is 0. MINDER_NONE for MINDER_NO_CELL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_cells_print(
    cells: *const minder_cells,
    cell: minder_cell,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> minder_status {
    call(|| {
        store!(needed, 0);
        let Some(view) = handle!(cells).view_of_bits(cell) else { return Ok(minder_status::MINDER_NONE) };
        let text = view.to_json();
        store!(needed, text.len());
        // SAFETY: the caller's buffer has `capacity` bytes; it is not ours.
        unsafe { arg::copy_out(text.as_bytes(), buffer.cast(), capacity, "value") }?;
        Ok(minder_status::MINDER_OK)
    })
}
