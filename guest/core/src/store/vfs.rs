//! SQLite's file calls over the [`Disk`] port.
//!
//! Locks are not taken: the space lock keeps a second opener out, and `locking_mode = EXCLUSIVE`
//! keeps SQLite from wanting shared memory. Names become durable with the first sync of a file that
//! was created, as the Unix VFS does it. All unsafe code of the core is in this file.

use super::gathered::GatheredFile;
use crate::contract::{Failure, FailureCode, Result};
use crate::disk::{Disk, DiskError, DiskFile, OpenMode};
use rusqlite::ffi;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::size_of;
use std::ptr;
use std::rc::Rc;

/// Longest path that SQLite may form: the database's name with the suffix of a journal.
const MAX_PATH: c_int = 512;

/// Sector size told to SQLite: writes of a sector may tear within it, not beyond.
const SECTOR: c_int = 4096;

/// A registered VFS; dropping it unregisters. Connections must be closed before.
pub(super) struct Registration {
    name: CString,
    vfs: *mut ffi::sqlite3_vfs,
    disk: *mut Rc<dyn Disk>,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Registration").field(&self.name).finish()
    }
}

impl Registration {
    /// Registers `disk` under a name of its own.
    pub(super) fn new(disk: Rc<dyn Disk>) -> Result<Self> {
        let disk = Box::into_raw(Box::new(disk));
        // The address is unique while the registration lives, which is all that a name needs.
        let name = CString::new(format!("strata-{:x}", disk as usize)).expect("hex has no NUL");
        let vfs = Box::into_raw(Box::new(ffi::sqlite3_vfs {
            iVersion: 1,
            szOsFile: size_of::<OpenFile>() as c_int,
            mxPathname: MAX_PATH,
            pNext: ptr::null_mut(),
            zName: name.as_ptr(),
            pAppData: disk.cast(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: Some(current_time),
            xGetLastError: None,
            xCurrentTimeInt64: None,
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        }));
        let registration = Self { name, vfs, disk };
        // SAFETY: `vfs` and all it points to live until `drop` unregisters it.
        let status = unsafe { ffi::sqlite3_vfs_register(vfs, 0) };
        if status != ffi::SQLITE_OK {
            return Err(Failure::new(FailureCode::Io, format!("SQLite refused the VFS (code {status})")));
        }
        Ok(registration)
    }

    /// Returns the name to open connections with.
    pub(super) fn name(&self) -> &CStr {
        &self.name
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: both pointers come from `Box::into_raw` in `new` and are freed only here; the
        // store drops its connection first, so SQLite holds no file of this VFS any more.
        unsafe {
            ffi::sqlite3_vfs_unregister(self.vfs);
            drop(Box::from_raw(self.vfs));
            drop(Box::from_raw(self.disk));
        }
    }
}

/// What SQLite allocates for each open file: its header, then ours.
#[repr(C)]
struct OpenFile {
    base: ffi::sqlite3_file,
    state: *mut FileState,
}

struct FileState {
    file: GatheredFile,
    disk: Rc<dyn Disk>,
    path: String,
    /// The file was created here and its name is not durable yet.
    name_pending: bool,
    delete_on_close: bool,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(lock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

fn code(error: &DiskError, otherwise: c_int) -> c_int {
    match error {
        DiskError::Full => ffi::SQLITE_FULL,
        DiskError::ReadOnly => ffi::SQLITE_READONLY,
        DiskError::NotFound | DiskError::Exists | DiskError::Other(_) => otherwise,
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Returns the disk of a VFS.
///
/// # Safety
/// `vfs` must be one that `Registration::new` made and that is still registered.
unsafe fn disk_of<'a>(vfs: *mut ffi::sqlite3_vfs) -> &'a Rc<dyn Disk> {
    unsafe { &*(*vfs).pAppData.cast::<Rc<dyn Disk>>() }
}

/// Returns the state of an open file.
///
/// # Safety
/// `file` must have been opened by `open` and not closed.
unsafe fn state_of<'a>(file: *mut ffi::sqlite3_file) -> &'a mut FileState {
    unsafe { &mut *(*file.cast::<OpenFile>()).state }
}

unsafe fn text<'a>(name: *const c_char) -> Option<&'a str> {
    if name.is_null() {
        return None;
    }
    unsafe { CStr::from_ptr(name) }.to_str().ok()
}

unsafe extern "C" fn open(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, file: *mut ffi::sqlite3_file, flags: c_int, out_flags: *mut c_int) -> c_int {
    // SAFETY: SQLite passes a VFS of ours, room for an `OpenFile`, and a NUL-terminated name or
    // NULL. `pMethods` stays NULL on failure, so that SQLite does not call `close`.
    unsafe {
        (*file).pMethods = ptr::null();
        let disk = disk_of(vfs);
        // Temporary files have no name; `temp_store = MEMORY` means that none is ever asked for.
        let Some(path) = text(name) else { return ffi::SQLITE_CANTOPEN };
        let existed = match disk.exists(path) {
            Ok(existed) => existed,
            Err(error) => return code(&error, ffi::SQLITE_CANTOPEN),
        };
        let writable = flags & ffi::SQLITE_OPEN_READWRITE != 0;
        let create = flags & ffi::SQLITE_OPEN_CREATE != 0;
        let mode = match (writable, create) {
            (true, true) => OpenMode::Create,
            (true, false) => OpenMode::Write,
            (false, _) => OpenMode::Read,
        };
        match disk.open(path, mode) {
            Ok(opened) => {
                let state = FileState {
                    file: GatheredFile::new(opened),
                    disk: Rc::clone(disk),
                    path: path.to_owned(),
                    name_pending: !existed,
                    delete_on_close: flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0,
                };
                (*file.cast::<OpenFile>()).state = Box::into_raw(Box::new(state));
                (*file).pMethods = &raw const METHODS;
                if !out_flags.is_null() {
                    *out_flags = flags;
                }
                ffi::SQLITE_OK
            }
            Err(error) => code(&error, ffi::SQLITE_CANTOPEN),
        }
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: the state was boxed by `open`, and SQLite closes a file once.
    let state = unsafe { Box::from_raw((*file.cast::<OpenFile>()).state) };
    let FileState { mut file, disk, path, delete_on_close, .. } = *state;
    let written = file.flush();
    drop(file);
    if let Err(error) = written {
        return code(&error, ffi::SQLITE_IOERR_CLOSE);
    }
    if delete_on_close && disk.remove(&path).is_err() {
        return ffi::SQLITE_IOERR_DELETE;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, to: *mut c_void, count: c_int, offset: ffi::sqlite3_int64) -> c_int {
    // SAFETY: SQLite gives `count` writable bytes at `to`, and neither number is negative.
    let (state, buffer) = unsafe { (state_of(file), std::slice::from_raw_parts_mut(to.cast::<u8>(), count as usize)) };
    match state.file.read_at(buffer, offset as u64) {
        Ok(read) if read == buffer.len() => ffi::SQLITE_OK,
        Ok(read) => {
            // SQLite wants the rest zeroed.
            buffer[read..].fill(0);
            ffi::SQLITE_IOERR_SHORT_READ
        }
        Err(error) => code(&error, ffi::SQLITE_IOERR_READ),
    }
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, from: *const c_void, count: c_int, offset: ffi::sqlite3_int64) -> c_int {
    // SAFETY: SQLite gives `count` readable bytes at `from`, and neither number is negative.
    let (state, bytes) = unsafe { (state_of(file), std::slice::from_raw_parts(from.cast::<u8>(), count as usize)) };
    match state.file.write_at(bytes, offset as u64) {
        Ok(()) => ffi::SQLITE_OK,
        Err(error) => code(&error, ffi::SQLITE_IOERR_WRITE),
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, length: ffi::sqlite3_int64) -> c_int {
    // SAFETY: an open file of ours.
    match unsafe { state_of(file) }.file.set_len(length as u64) {
        Ok(()) => ffi::SQLITE_OK,
        Err(error) => code(&error, ffi::SQLITE_IOERR_TRUNCATE),
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: an open file of ours.
    let state = unsafe { state_of(file) };
    if let Err(error) = state.file.sync() {
        return code(&error, ffi::SQLITE_IOERR_FSYNC);
    }
    if state.name_pending {
        if let Err(error) = state.disk.sync_dir(parent(&state.path)) {
            return code(&error, ffi::SQLITE_IOERR_DIR_FSYNC);
        }
        state.name_pending = false;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: an open file of ours, and room for the answer.
    match unsafe { state_of(file) }.file.len() {
        Ok(length) => {
            unsafe { *size = length as ffi::sqlite3_int64 };
            ffi::SQLITE_OK
        }
        Err(error) => code(&error, ffi::SQLITE_IOERR_FSTAT),
    }
}

unsafe extern "C" fn lock(_file: *mut ffi::sqlite3_file, _level: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(_file: *mut ffi::sqlite3_file, held: *mut c_int) -> c_int {
    // SAFETY: SQLite gives room for the answer.
    unsafe { *held = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(_file: *mut ffi::sqlite3_file, _operation: c_int, _argument: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    SECTOR
}

unsafe extern "C" fn device_characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    // The Unix VFS assumes the same of ordinary disks.
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync_dir: c_int) -> c_int {
    // SAFETY: a VFS of ours and a NUL-terminated name.
    let (disk, path) = unsafe { (disk_of(vfs), text(name)) };
    let Some(path) = path else { return ffi::SQLITE_IOERR_DELETE };
    match disk.remove(path) {
        Ok(()) => {}
        Err(DiskError::NotFound) => return ffi::SQLITE_IOERR_DELETE_NOENT,
        Err(error) => return code(&error, ffi::SQLITE_IOERR_DELETE),
    }
    if sync_dir != 0 && disk.sync_dir(parent(path)).is_err() {
        return ffi::SQLITE_IOERR_DIR_FSYNC;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn access(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, _flags: c_int, answer: *mut c_int) -> c_int {
    // SAFETY: a VFS of ours, a NUL-terminated name, and room for the answer.
    let (disk, path) = unsafe { (disk_of(vfs), text(name)) };
    let exists = path.map_or(Ok(false), |path| disk.exists(path));
    match exists {
        Ok(exists) => {
            unsafe { *answer = c_int::from(exists) };
            ffi::SQLITE_OK
        }
        Err(error) => code(&error, ffi::SQLITE_IOERR_ACCESS),
    }
}

unsafe extern "C" fn full_pathname(_vfs: *mut ffi::sqlite3_vfs, name: *const c_char, room: c_int, out: *mut c_char) -> c_int {
    // SAFETY: SQLite gives `room` bytes at `out` and a NUL-terminated name.
    unsafe {
        let bytes = CStr::from_ptr(name).to_bytes_with_nul();
        if bytes.len() > room as usize {
            return ffi::SQLITE_CANTOPEN;
        }
        ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len());
    }
    ffi::SQLITE_OK
}

/// Gives SQLite no randomness: it seeds its generator from its own default VFS, and the engine
/// itself uses none.
unsafe extern "C" fn randomness(_vfs: *mut ffi::sqlite3_vfs, _count: c_int, _out: *mut c_char) -> c_int {
    0
}

unsafe extern "C" fn sleep(_vfs: *mut ffi::sqlite3_vfs, _microseconds: c_int) -> c_int {
    0
}

/// Gives SQLite a fixed time: the engine's times come with its events.
unsafe extern "C" fn current_time(_vfs: *mut ffi::sqlite3_vfs, out: *mut f64) -> c_int {
    // The Julian day of 1970-01-01T00:00:00Z.
    const EPOCH: f64 = 2_440_587.5;
    // SAFETY: SQLite gives room for the answer.
    unsafe { *out = EPOCH };
    ffi::SQLITE_OK
}
