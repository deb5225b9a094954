//! Adjacent writes as one: SQLite writes its log as a header of 24 bytes and a page, again and again.
//!
//! A call of the disk costs a host far more than the bytes that it moves, so writes are held until
//! something makes the order visible: a sync, a cut, a read of what is held, a write elsewhere. Until
//! its sync SQLite promises nothing about a write, and neither does the disk; so nothing is lost that
//! could be relied upon.

//!
//! Reads likewise: SQLite reads a large value page by page, and from the second page on what follows is read ahead.

use crate::disk::{DiskFile, DiskResult};

/// Bytes that are held at most: some dozens of pages, as many as an ordinary transaction writes.
const MAX_HELD: usize = 256 << 10;

/// Bytes that are read ahead: at first, so that a row of two pages costs little, and at most.
const MIN_AHEAD: usize = 16 << 10;
const MAX_AHEAD: usize = 256 << 10;

/// A file whose adjacent writes go to the disk together, and whose adjacent reads come together.
#[derive(Debug)]
pub(super) struct GatheredFile {
    file: Box<dyn DiskFile>,
    /// What is not on the disk yet; it stands at `start`. After a failed write it stays, and the
    /// next call tries again.
    held: Vec<u8>,
    start: u64,
    ahead: Ahead,
}

/// What was read and not asked for yet. A write or a cut forgets it.
#[derive(Debug, Default)]
struct Ahead {
    bytes: Vec<u8>,
    start: u64,
    /// Where the last read ended.
    next: u64,
    /// How much is read ahead the next time.
    size: usize,
}

impl Ahead {
    fn forget(&mut self) {
        self.bytes.clear();
        self.size = MIN_AHEAD;
    }

    /// Returns what stands at `offset`, if all that is wanted does.
    fn at(&self, offset: u64, wanted: usize) -> Option<&[u8]> {
        let from = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..from.checked_add(wanted)?)
    }

    /// Reads into `buffer`, and more where the last read ended at `offset`.
    fn read(&mut self, file: &mut dyn DiskFile, buffer: &mut [u8], offset: u64) -> DiskResult<usize> {
        let is_next = offset == std::mem::replace(&mut self.next, offset + buffer.len() as u64);
        if let Some(bytes) = self.at(offset, buffer.len()) {
            buffer.copy_from_slice(bytes);
            return Ok(buffer.len());
        }
        if !is_next || buffer.len() >= MIN_AHEAD {
            self.size = MIN_AHEAD;
            return file.read_at(buffer, offset);
        }
        self.bytes.resize(self.size.max(MIN_AHEAD), 0);
        let read = match file.read_at(&mut self.bytes, offset) {
            Ok(read) => read,
            Err(error) => {
                self.forget();
                return Err(error);
            }
        };
        self.bytes.truncate(read);
        self.start = offset;
        self.size = (self.size * 2).clamp(MIN_AHEAD, MAX_AHEAD);
        let count = read.min(buffer.len());
        buffer[..count].copy_from_slice(&self.bytes[..count]);
        Ok(count)
    }
}

impl GatheredFile {
    pub(super) fn new(file: Box<dyn DiskFile>) -> Self {
        Self { file, held: Vec::new(), start: 0, ahead: Ahead::default() }
    }

    /// Hands over what is held. A file that is dropped without it forgets that.
    pub(super) fn flush(&mut self) -> DiskResult<()> {
        if !self.held.is_empty() {
            self.ahead.forget();
            self.file.write_at(&self.held, self.start)?;
            self.held.clear();
        }
        Ok(())
    }

    fn end(&self) -> u64 {
        self.start + self.held.len() as u64
    }
}

impl DiskFile for GatheredFile {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> DiskResult<usize> {
        if offset < self.end() && self.start < offset + buffer.len() as u64 {
            self.flush()?;
        }
        let read = self.ahead.read(self.file.as_mut(), buffer, offset)?;
        if read == buffer.len() || self.held.is_empty() {
            return Ok(read);
        }
        // The end of the stored file is not the end: what is held stands behind a gap.
        self.flush()?;
        self.file.read_at(buffer, offset)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> DiskResult<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.ahead.forget();
        if self.held.is_empty() {
            self.start = offset;
        }
        // Where the new bytes begin in what is held, if they overlap it or continue it.
        let place = offset.checked_sub(self.start).and_then(|place| usize::try_from(place).ok()).filter(|place| *place <= self.held.len());
        match place {
            Some(place) if place + bytes.len() <= MAX_HELD => {
                let overlap = bytes.len().min(self.held.len() - place);
                self.held[place..place + overlap].copy_from_slice(&bytes[..overlap]);
                self.held.extend_from_slice(&bytes[overlap..]);
                Ok(())
            }
            _ => {
                self.flush()?;
                if bytes.len() > MAX_HELD {
                    return self.file.write_at(bytes, offset);
                }
                self.start = offset;
                self.held.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn set_len(&mut self, length: u64) -> DiskResult<()> {
        self.flush()?;
        self.ahead.forget();
        self.file.set_len(length)
    }

    fn len(&mut self) -> DiskResult<u64> {
        let stored = self.file.len()?;
        Ok(if self.held.is_empty() { stored } else { stored.max(self.end()) })
    }

    fn sync(&mut self) -> DiskResult<()> {
        self.flush()?;
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, OpenMode, SimDisk};
    use proptest::prelude::*;

    /// Counts the calls that reach the disk.
    #[derive(Debug)]
    struct Counted {
        file: Box<dyn DiskFile>,
        writes: std::rc::Rc<std::cell::Cell<u32>>,
    }

    impl DiskFile for Counted {
        fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> DiskResult<usize> {
            self.file.read_at(buffer, offset)
        }
        fn write_at(&mut self, bytes: &[u8], offset: u64) -> DiskResult<()> {
            self.writes.set(self.writes.get() + 1);
            self.file.write_at(bytes, offset)
        }
        fn set_len(&mut self, length: u64) -> DiskResult<()> {
            self.file.set_len(length)
        }
        fn len(&mut self) -> DiskResult<u64> {
            self.file.len()
        }
        fn sync(&mut self) -> DiskResult<()> {
            self.file.sync()
        }
    }

    fn file(disk: &SimDisk, name: &str) -> Box<dyn DiskFile> {
        disk.open(name, OpenMode::Create).expect("opened")
    }

    #[test]
    fn a_transaction_of_frames_is_one_write() {
        let writes = std::rc::Rc::default();
        let mut gathered = GatheredFile::new(Box::new(Counted { file: file(&SimDisk::new(), "log"), writes: std::rc::Rc::clone(&writes) }));
        let mut offset = 32;
        for _ in 0..20 {
            for size in [24, 4096] {
                gathered.write_at(&vec![7; size], offset).expect("held");
                offset += size as u64;
            }
        }
        assert_eq!((writes.get(), gathered.len()), (0, Ok(offset)));
        gathered.sync().expect("written");
        assert_eq!((writes.get(), gathered.len()), (1, Ok(offset)));
    }

    #[derive(Clone, Debug)]
    enum Call {
        Write(u64, usize, u8),
        Read(u64, usize),
        Cut(u64),
        Sync,
    }

    fn call() -> impl Strategy<Value = Call> {
        // Few places and two sizes around the bound, so that calls meet; reads also go on where one ended.
        let offset = (0u64..6).prop_map(|place| place * 1000);
        let size = prop_oneof![4 => 1usize..3000, 1 => MAX_HELD - 2..MAX_HELD + 3];
        prop_oneof![
            4 => (offset.clone(), size.clone(), any::<u8>()).prop_map(|(offset, size, byte)| Call::Write(offset, size, byte)),
            2 => (offset.clone(), size).prop_map(|(offset, size)| Call::Read(offset, size)),
            2 => offset.clone().prop_map(|offset| Call::Read(offset, 1000)),
            1 => offset.prop_map(Call::Cut),
            1 => Just(Call::Sync),
        ]
    }

    proptest! {
        #[test]
        fn a_gathered_file_is_a_file(calls in proptest::collection::vec(call(), 0..40)) {
            let disk = SimDisk::new();
            let mut plain = file(&disk, "plain");
            let mut gathered = GatheredFile::new(file(&disk, "gathered"));
            for call in calls {
                match call {
                    Call::Write(offset, size, byte) => {
                        let bytes = vec![byte; size];
                        prop_assert_eq!(plain.write_at(&bytes, offset), gathered.write_at(&bytes, offset));
                    }
                    Call::Read(offset, size) => {
                        let (mut one, mut two) = (vec![0; size], vec![0; size]);
                        prop_assert_eq!(plain.read_at(&mut one, offset), gathered.read_at(&mut two, offset));
                        prop_assert_eq!(one, two);
                    }
                    Call::Cut(length) => prop_assert_eq!(plain.set_len(length), gathered.set_len(length)),
                    Call::Sync => prop_assert_eq!(plain.sync(), gathered.sync()),
                }
                prop_assert_eq!(plain.len(), gathered.len());
            }
            gathered.flush().expect("written");
            drop(gathered);
            prop_assert_eq!(crate::disk::read_all(&disk, "plain"), crate::disk::read_all(&disk, "gathered"));
        }
    }
}
