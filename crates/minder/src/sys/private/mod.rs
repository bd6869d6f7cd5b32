//! Folders for their owner alone, where that takes more than a mode.

mod windows;

pub(crate) use self::windows::make_folder;
