//! A range of address space for cells, and what only `unsafe` code can do fast.
//!
//! The range is reserved once, so that a cell never moves. Its memory is committed from the start of the
//! range on, in whole steps. What is committed is a slice of cells: all other code of the crate reads and
//! writes it by index, with the checks of slices.
//!
//! Under Miri, and on systems without such calls, the range is one allocation.

#![expect(unsafe_code, reason = "reserved memory as a slice, bytes of cells, prefetching")]

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

/// A cell: two words. All bits of it are valid values.
pub(crate) type Cell = [u64; 2];

/// The bytes of a cell.
pub(crate) const CELL_BYTES: usize = size_of::<Cell>();

/// A reserved range of cells, the first of which are committed.
pub(crate) struct Space {
    base: NonNull<Cell>,
    reserved: usize,
    committed: usize,
}

// SAFETY: the range belongs to this value alone, like the memory of a `Vec<Cell>`.
unsafe impl Send for Space {}
// SAFETY: shared access only reads.
unsafe impl Sync for Space {}

impl Space {
    /// Reserves address space for this many cells, and commits none.
    pub(crate) fn reserve(cells: usize) -> io::Result<Self> {
        let bytes = cells.checked_mul(CELL_BYTES).filter(|bytes| isize::try_from(*bytes).is_ok());
        let base = os::reserve(bytes.ok_or(io::ErrorKind::OutOfMemory)?)?;
        Ok(Self { base: base.cast(), reserved: cells, committed: 0 })
    }

    /// Returns the number of cells that are committed.
    pub(crate) fn committed(&self) -> usize {
        self.committed
    }

    /// Commits the cells up to this index, which then read as zero.
    ///
    /// # Errors
    /// The range is full, or the system has no memory.
    pub(crate) fn commit(&mut self, cells: usize, huge: bool) -> io::Result<()> {
        if cells > self.reserved {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if cells > self.committed {
            let (at, bytes) = self.part(self.committed..cells);
            // SAFETY: the part is in the range, which `reserve` returned, and was not committed.
            unsafe { os::commit(at, bytes, huge) }?;
            self.committed = cells;
        }
        Ok(())
    }

    /// Gives the memory of these cells back to the system. They read as zero then.
    ///
    /// # Errors
    /// Those of the system; the cells may then have kept their contents.
    pub(crate) fn release(&mut self, cells: Range<usize>) -> io::Result<()> {
        assert!(cells.start <= cells.end && cells.end <= self.committed, "{cells:?}");
        let (at, bytes) = self.part(cells);
        // SAFETY: the part is committed, and the exclusive reference says that no slice of it exists.
        unsafe { os::release(at, bytes) }
    }

    /// Returns the committed cells.
    #[inline]
    pub(crate) fn cells(&self) -> &[Cell] {
        // SAFETY: the committed cells are initialised memory, zero at first, which lives as long as
        // `self`. They are written through an exclusive reference to `self` only.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.committed) }
    }

    /// Returns the committed cells.
    #[inline]
    pub(crate) fn cells_mut(&mut self) -> &mut [Cell] {
        // SAFETY: as in `cells`, and the reference to `self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.committed) }
    }

    /// Returns the address and the bytes of a part of the range.
    fn part(&self, cells: Range<usize>) -> (NonNull<u8>, usize) {
        // SAFETY: the index is in the reserved range.
        let at = unsafe { self.base.add(cells.start) };
        (at.cast(), (cells.end - cells.start) * CELL_BYTES)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: `reserve` returned this range, and no slice of it outlives `self`.
        unsafe { os::free(self.base.cast(), self.reserved * CELL_BYTES) };
    }
}

/// Returns the bytes of cells.
#[inline]
pub(crate) fn bytes(cells: &[Cell]) -> &[u8] {
    // SAFETY: the same memory, of the same size; bytes have no alignment, and all bits are valid.
    unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), size_of_val(cells)) }
}

/// Returns the bytes of cells.
#[inline]
pub(crate) fn bytes_mut(cells: &mut [Cell]) -> &mut [u8] {
    // SAFETY: as in `bytes`; whatever is written is a valid word, and the reference is exclusive.
    unsafe { std::slice::from_raw_parts_mut(cells.as_mut_ptr().cast(), size_of_val(cells)) }
}

/// Returns cells as words.
#[inline]
pub(crate) fn words(cells: &[Cell]) -> &[u64] {
    cells.as_flattened()
}

/// Tells the processor that a cell will be read soon. Other processors than x86-64 ignore it.
#[inline]
pub(crate) fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(item) = items.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and a prefetch has no effect on the contents of memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (items, index);
}

/// Returns the number of ones, by the best instructions of this processor.
pub(crate) fn count_ones(words: &[u64]) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        #[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
        fn by_v3(words: &[u64]) -> u64 {
            ones(words)
        }
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
        {
            // SAFETY: the processor has the instructions.
            return unsafe { by_v3(words) };
        }
    }
    ones(words)
}

#[inline(always)]
fn ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Memory of Unix.
#[cfg(all(unix, not(miri)))]
mod os {
    use std::io;
    use std::ptr::{NonNull, null_mut};

    #[cfg(target_os = "linux")]
    use rustix::mm::{Advice, madvise};
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

    pub(super) fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
        let flags = MapFlags::PRIVATE;
        // What is not used yet does not count against the limit of overcommitment (mmap(2)).
        #[cfg(target_os = "linux")]
        let flags = flags | MapFlags::NORESERVE;
        // SAFETY: the system chooses the address, so that no other mapping is replaced.
        let at = unsafe { mmap_anonymous(null_mut(), bytes.max(1), ProtFlags::empty(), flags) }?;
        NonNull::new(at.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// # Safety
    /// The part belongs to a reserved range.
    pub(super) unsafe fn commit(at: NonNull<u8>, bytes: usize, huge: bool) -> io::Result<()> {
        // SAFETY: the part belongs to the caller.
        unsafe { mprotect(at.as_ptr().cast(), bytes, MprotectFlags::READ | MprotectFlags::WRITE) }?;
        #[cfg(target_os = "linux")]
        if huge {
            // SAFETY: advice about the size of pages does not change the contents. It may be refused.
            let _ = unsafe { madvise(at.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = huge;
        Ok(())
    }

    /// # Safety
    /// The part is committed, and there is no reference to it.
    pub(super) unsafe fn release(at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        // SAFETY: private anonymous memory reads as zero afterwards (madvise(2), MADV_DONTNEED).
        unsafe { madvise(at.as_ptr().cast(), bytes, Advice::LinuxDontNeed) }?;
        #[cfg(not(target_os = "linux"))]
        {
            let flags = MapFlags::PRIVATE | MapFlags::FIXED;
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: the new mapping replaces memory of the caller alone, and reads as zero.
            if unsafe { mmap_anonymous(at.as_ptr().cast(), bytes, access, flags) }.is_err() {
                // The old mapping may be gone: the slice of committed cells would have some without memory.
                std::process::abort();
            }
        }
        Ok(())
    }

    /// # Safety
    /// `reserve` returned this range, and there is no reference to it.
    pub(super) unsafe fn free(at: NonNull<u8>, bytes: usize) {
        // SAFETY: as said above. It cannot fail for such a range.
        let _ = unsafe { munmap(at.as_ptr().cast(), bytes.max(1)) };
    }
}

/// Memory of Windows.
#[cfg(all(windows, not(miri)))]
mod os {
    use std::io;
    use std::ptr::{NonNull, null};

    use windows_sys::Win32::System::Memory::{
        MEM_COMMIT, MEM_DECOMMIT, MEM_RELEASE, MEM_RESERVE, PAGE_NOACCESS, PAGE_READWRITE, VirtualAlloc,
        VirtualFree,
    };

    pub(super) fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
        // SAFETY: the system chooses the address.
        let at = unsafe { VirtualAlloc(null(), bytes.max(1), MEM_RESERVE, PAGE_NOACCESS) };
        NonNull::new(at.cast()).ok_or_else(io::Error::last_os_error)
    }

    /// # Safety
    /// The part belongs to a reserved range.
    pub(super) unsafe fn commit(at: NonNull<u8>, bytes: usize, _huge: bool) -> io::Result<()> {
        // SAFETY: the part belongs to the caller.
        let committed = unsafe { VirtualAlloc(at.as_ptr().cast(), bytes, MEM_COMMIT, PAGE_READWRITE) };
        if committed.is_null() { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// # Safety
    /// The part is committed, and there is no reference to it.
    pub(super) unsafe fn release(at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        // SAFETY: as said above.
        if unsafe { VirtualFree(at.as_ptr().cast(), bytes, MEM_DECOMMIT) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the part is in a reserved range. It reads as zero (learn.microsoft.com, `VirtualAlloc`).
        if unsafe { commit(at, bytes, false) }.is_err() {
            // The slice of committed cells would have some without memory, and nothing can take them out.
            std::process::abort();
        }
        Ok(())
    }

    /// # Safety
    /// `reserve` returned this range, and there is no reference to it.
    pub(super) unsafe fn free(at: NonNull<u8>, _bytes: usize) {
        // SAFETY: as said above; a size of 0 means the whole reservation.
        unsafe { VirtualFree(at.as_ptr().cast(), 0, MEM_RELEASE) };
    }
}

/// One allocation, for Miri.
#[cfg(any(miri, not(any(unix, windows))))]
mod os {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::io;
    use std::ptr::NonNull;

    fn layout(bytes: usize) -> io::Result<Layout> {
        let layout = Layout::from_size_align(bytes.max(super::CELL_BYTES), super::CELL_BYTES);
        layout.map_err(|_| io::ErrorKind::OutOfMemory.into())
    }

    pub(super) fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
        // SAFETY: the size is not zero.
        let at = unsafe { alloc_zeroed(layout(bytes)?) };
        NonNull::new(at).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// # Safety
    /// The part belongs to a reserved range.
    #[expect(clippy::unnecessary_wraps, reason = "the form of the other systems")]
    pub(super) unsafe fn commit(_at: NonNull<u8>, _bytes: usize, _huge: bool) -> io::Result<()> {
        Ok(())
    }

    /// # Safety
    /// The part is committed, and there is no reference to it.
    #[expect(clippy::unnecessary_wraps, reason = "the form of the other systems")]
    pub(super) unsafe fn release(at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        // SAFETY: the part belongs to the caller, and zero is a valid cell.
        unsafe { at.write_bytes(0, bytes) };
        Ok(())
    }

    /// # Safety
    /// `reserve` returned this range, and there is no reference to it.
    pub(super) unsafe fn free(at: NonNull<u8>, bytes: usize) {
        if let Ok(layout) = layout(bytes) {
            // SAFETY: `reserve` allocated it with this layout.
            unsafe { dealloc(at.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_cells_are_zero_and_released_ones_again() {
        let mut space = Space::reserve(1 << 16).expect("reserve cells");
        assert_eq!(space.cells().len(), 0);
        space.commit(1 << 13, false).expect("commit cells");
        assert!(space.cells().iter().all(|cell| *cell == [0, 0]));
        space.cells_mut().fill([1, 2]);
        space.release(1 << 12..1 << 13).expect("release cells");
        assert_eq!(space.cells()[(1 << 12) - 1..=1 << 12], [[1, 2], [0, 0]]);
        space.commit(1 << 16, true).expect("commit the rest");
        assert_eq!(space.cells().len(), 1 << 16);
        assert!(space.commit((1 << 16) + 1, false).is_err());
    }

    #[test]
    fn bytes_are_those_of_the_words() {
        let mut cells = [[0, 0]; 2];
        bytes_mut(&mut cells)[8..13].copy_from_slice(b"hello");
        assert_eq!(&bytes(&cells)[8..13], b"hello");
        assert_eq!(words(&cells).len(), 4);
        assert_eq!(count_ones(&[u64::MAX, 1, 0]), 65);
        prefetch(&cells, 0);
        prefetch(&cells, 9);
    }
}
