//! Text for a console, where that is not simply bytes.

mod windows;

pub(crate) use self::windows::write;
