//! Compiled components in the user's cache directory, so that a second start need not compile.
//!
//! The cache is an economy and never a condition: whatever goes wrong with it, the component is
//! compiled. What is loaded from it is run as native code, so a directory that others can write is
//! not used.

use anyhow::Result;
use sha2::{Digest, Sha256};
use std::env;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Compiled components that are kept; older ones are removed.
const MAX_KEPT: usize = 4;

/// Returns the component, compiled by this process or by an earlier one.
pub(super) fn load(engine: &Engine, bytes: &[u8]) -> Result<Component> {
    let Some(directory) = directory() else { return Ok(Component::new(engine, bytes)?) };
    let path = directory.join(name(engine, bytes));
    if path.is_file() {
        // SAFETY: the directory belongs to this user and nobody else can write it, the file was put
        // there whole by `keep`, and its name has the hash of the source and of the engine's settings.
        if let Ok(component) = unsafe { Component::deserialize_file(engine, &path) } {
            return Ok(component);
        }
    }
    let component = Component::new(engine, bytes)?;
    // A full or read-only disk costs the next start a second, nothing else.
    let _kept = keep(&directory, &path, &component);
    Ok(component)
}

/// Returns the name of the compiled form: the source's hash and the engine's settings.
fn name(engine: &Engine, bytes: &[u8]) -> String {
    let mut settings = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut settings);
    let source = Sha256::digest(bytes);
    let source = source[..16].iter().fold(String::new(), |name, byte| name + &format!("{byte:02x}"));
    format!("{source}-{:016x}.cwasm", settings.finish())
}

/// Returns the cache directory if there is one that only this user can write.
fn directory() -> Option<PathBuf> {
    let base = match env::var_os("STRATA_CACHE_DIR") {
        Some(own) if own.is_empty() => return None,
        Some(own) => PathBuf::from(own),
        None => env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| PathBuf::from(home).join(".cache")))?
            .join("strata"),
    };
    make_private(&base).ok()?;
    is_private(&base).then_some(base)
}

#[cfg(unix)]
fn make_private(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[cfg(not(unix))]
fn make_private(directory: &Path) -> std::io::Result<()> {
    fs::create_dir_all(directory)
}

/// Returns whether nobody but the owner can write the directory, and this process owns it.
#[cfg(unix)]
fn is_private(directory: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(found) = fs::symlink_metadata(directory) else { return false };
    // A file that this process makes has its owner; std tells no uid otherwise.
    let probe = directory.join(format!(".probe-{}", process::id()));
    let owner = File::create(&probe).and_then(|file| file.metadata()).map(|made| made.uid());
    let removed = fs::remove_file(&probe);
    found.is_dir() && found.mode() & 0o022 == 0 && removed.is_ok() && owner.is_ok_and(|owner| owner == found.uid())
}

#[cfg(not(unix))]
fn is_private(directory: &Path) -> bool {
    directory.is_dir()
}

/// Puts the compiled form into the cache in one step, then removes the oldest others.
fn keep(directory: &Path, path: &Path, component: &Component) -> Result<()> {
    let fresh = path.with_extension(format!("{}.new", process::id()));
    let mut file = File::create(&fresh)?;
    let written = component.serialize().map_err(anyhow::Error::from).and_then(|bytes| Ok(file.write_all(&bytes).and_then(|()| file.sync_all())?));
    if let Err(error) = written.and_then(|()| Ok(fs::rename(&fresh, path)?)) {
        fs::remove_file(&fresh)?;
        return Err(error);
    }
    let mut others = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "cwasm") && entry.path() != path {
            others.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    others.sort();
    for (_, old) in others.iter().rev().skip(MAX_KEPT - 1) {
        fs::remove_file(old)?;
    }
    Ok(())
}
