//! A run whose record meets a full disk, a damaged file, or another run.
