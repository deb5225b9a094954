//! Content-addressed files of offloaded text: `refs/<16 hex>.md`, readable as Markdown.
//!
//! ````text
//! # Tool Result: <tool>
//!
//! **Timestamp:** 2026-06-01T10:00:00.000Z
//! **Call ID:** call_1
//! **Bytes:** 1234
//! **SHA-256:** <64 hex>
//!
//! ---
//!
//! ```text
//! <the content, exactly>
//! ```
//! ````
//!
//! The fence is longer than any run of backticks in the content. Large contents that shrink are kept
//! as `refs/<16 hex>.md.gz`, which `zcat` reads; placeholders name the path without `.gz`.

use super::summary::command::one_line;
use crate::contract::Result;
use crate::disk::{Disk, OpenMode, read_all};
use crate::store::disk_failure;
use crate::{Failure, FailureCode};
use sha2::{Digest, Sha256};

/// The directory of refs.
pub const REFS_DIR: &str = "refs";
/// Characters of the path of a text: the directory, the name and `.md`.
pub const REF_PATH_CHARS: usize = REFS_DIR.len() + 1 + NAME_HEX + 3;
/// Hex digits of the SHA-256 in a file name: 64 bits, so that two of a million contents share a name
/// with a chance below one in ten million; the full digest in the header tells them apart.
const NAME_HEX: usize = 16;
/// Contents from this many bytes are tried to be compressed; smaller ones stay readable as they are.
const COMPRESS_FROM_BYTES: usize = 32 * 1024;
/// Compression pays when the file gets smaller than this share, in hundredths.
const COMPRESS_PAYS_PERCENT: usize = 60;
/// A compressed file may unpack to so many bytes at most: the largest result and its header.
const UNPACKED_MAX_BYTES: usize = 65 * 1024 * 1024;

/// What a file says about its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefHeader<'a> {
    /// `Tool Result`, `Tool Arguments`, `Reasoning` or `Message`.
    pub title: &'a str,
    /// The tool, if there is one.
    pub tool: &'a str,
    /// The call that brought the content first.
    pub call_id: &'a str,
    /// ISO 8601 time of that.
    pub timestamp: &'a str,
}

/// Returns the path of the file for `content`, relative to the data directory.
pub fn ref_path(content: &str) -> String {
    format!("{REFS_DIR}/{}.md", &sha256_hex(content)[..NAME_HEX])
}

/// Returns the SHA-256 of `content` in hex.
pub fn sha256_hex(content: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(content.as_bytes()) {
        hex.push(char::from_digit(u32::from(byte >> 4), 16).expect("four bits are a hex digit"));
        hex.push(char::from_digit(u32::from(byte & 15), 16).expect("four bits are a hex digit"));
    }
    hex
}

/// Returns the file's text for `content`.
pub fn encode(header: &RefHeader<'_>, content: &str) -> String {
    let fence = "`".repeat(longest_backticks(content).max(2) + 1);
    format!(
        "# {}: {}\n\n**Timestamp:** {}\n**Call ID:** {}\n**Bytes:** {}\n**SHA-256:** {}\n\n---\n\n{fence}text\n{content}\n{fence}\n",
        header.title,
        one_line(header.tool),
        header.timestamp,
        one_line(header.call_id),
        content.len(),
        sha256_hex(content),
    )
}

/// Returns the content of a file's text, or `None` if it is not what was written: the length and
/// the digest in the header must fit.
pub fn decode(file: &str) -> Option<&str> {
    let bytes: usize = field(file, "**Bytes:** ")?.parse().ok()?;
    let digest = field(file, "**SHA-256:** ")?;
    let body = &file[file.find("\n---\n\n")? + "\n---\n\n".len()..];
    let start = body.find('\n')? + 1;
    let content = body.get(start..start.checked_add(bytes)?)?;
    (sha256_hex(content) == digest).then_some(content)
}

/// Writes the file for `content` and makes its bytes durable. The name is durable after
/// [`sync_names`]. Returns the bytes that it takes on the disk.
pub fn write(disk: &dyn Disk, path: &str, header: &RefHeader<'_>, content: &str) -> Result<u64> {
    let text = encode(header, content);
    let packed = (content.len() >= COMPRESS_FROM_BYTES).then(|| gzip(text.as_bytes())).filter(|packed| packed.len() * 100 < text.len() * COMPRESS_PAYS_PERCENT);
    let (name, bytes) = match &packed {
        Some(packed) => (format!("{path}.gz"), packed.as_slice()),
        None => (path.to_owned(), text.as_bytes()),
    };
    let failed = |error| disk_failure(&name, error);
    let mut file = disk.open(&name, OpenMode::Create).map_err(failed)?;
    // What a crash left half written under this name is cut off first.
    file.set_len(0).map_err(failed)?;
    file.write_at(bytes, 0).map_err(failed)?;
    file.sync().map_err(failed)?;
    Ok(bytes.len() as u64)
}

/// Makes the directory of refs, durably.
pub fn make_dir(disk: &dyn Disk) -> Result<()> {
    if !disk.exists(REFS_DIR).map_err(|error| disk_failure(REFS_DIR, error))? {
        disk.create_dir(REFS_DIR).map_err(|error| disk_failure(REFS_DIR, error))?;
        disk.sync_dir("").map_err(|error| disk_failure(REFS_DIR, error))?;
    }
    Ok(())
}

/// Makes the names of written refs durable.
pub fn sync_names(disk: &dyn Disk) -> Result<()> {
    disk.sync_dir(REFS_DIR).map_err(|error| disk_failure(REFS_DIR, error))
}

/// Returns the content behind `path`, exactly as it was offloaded.
pub fn read(disk: &dyn Disk, path: &str) -> Result<String> {
    let (name, packed) = if disk.exists(path).map_err(|error| disk_failure(path, error))? { (path.to_owned(), false) } else { (format!("{path}.gz"), true) };
    let bytes = read_all(disk, &name).map_err(|error| disk_failure(&name, error))?;
    let damaged = || Failure::new(FailureCode::Corrupt, format!("{name} is not what was written; restore it from a backup"));
    let bytes = if packed { gunzip(&bytes).ok_or_else(damaged)? } else { bytes };
    let text = String::from_utf8(bytes).map_err(|_| damaged())?;
    decode(&text).map(str::to_owned).ok_or_else(damaged)
}

/// Removes the file behind `path`; a file that is gone already is fine.
pub fn remove(disk: &dyn Disk, path: &str) -> Result<()> {
    for name in [path.to_owned(), format!("{path}.gz")] {
        if disk.exists(&name).map_err(|error| disk_failure(&name, error))? {
            disk.remove(&name).map_err(|error| disk_failure(&name, error))?;
        }
    }
    Ok(())
}

fn field<'a>(file: &'a str, name: &str) -> Option<&'a str> {
    // The header ends at the rule; a content cannot pose as one.
    let header = &file[..file.find("\n---\n\n")?];
    header.lines().find_map(|line| line.strip_prefix(name))
}

fn longest_backticks(content: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for byte in content.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Compression effort: 1 of 9, for most of the gain at a tenth of the time.
const DEFLATE_LEVEL: u8 = 1;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    packed.extend(miniz_oxide::deflate::compress_to_vec(bytes, DEFLATE_LEVEL));
    packed.extend(crc32(bytes).to_le_bytes());
    packed.extend((bytes.len() as u32).to_le_bytes());
    packed
}

fn gunzip(packed: &[u8]) -> Option<Vec<u8>> {
    let body = packed.get(10..packed.len().checked_sub(8)?)?;
    miniz_oxide::inflate::decompress_to_vec_with_limit(body, UNPACKED_MAX_BYTES).ok()
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc = CRC_TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ (crc >> 8);
    }
    !crc
}

static CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = at as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { 0xEDB8_8320 ^ (crc >> 1) } else { crc >> 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::StdDisk;

    const HEADER: RefHeader<'_> = RefHeader { title: "Tool Result", tool: "bash", call_id: "c1", timestamp: "2026-06-01T10:00:00.000Z" };

    #[test]
    fn any_content_comes_back_exactly() {
        let long = "line with `ticks` and ``` fences\n".repeat(4_000);
        for content in ["", "x", "\n", "no newline at the end", "````\n---\n\n**Bytes:** 3\n````", "\u{0}\r\n\t中文 🦀", long.as_str()] {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let disk = StdDisk::new(dir.path());
            make_dir(&disk).expect("a directory");
            let path = ref_path(content);
            write(&disk, &path, &HEADER, content).expect("written");
            sync_names(&disk).expect("synced");
            assert_eq!(read(&disk, &path).expect("read"), content);
            remove(&disk, &path).expect("removed");
            assert!(read(&disk, &path).is_err());
        }
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let text = encode(&HEADER, "the content");
        assert_eq!(decode(&text), Some("the content"));
        assert_eq!(decode(&text.replace("the content", "the Content")), None);
        assert_eq!(decode("# Tool Result: x"), None);
    }

    #[test]
    fn gzip_is_the_common_format() {
        // CRC-32 of "123456789" is the check value of the standard.
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        let bytes = "abc ".repeat(1_000);
        assert_eq!(gunzip(&gzip(bytes.as_bytes())).as_deref(), Some(bytes.as_bytes()));
    }
}
