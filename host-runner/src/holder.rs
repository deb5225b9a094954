//! Who holds a data directory, and whether that process lives.
//!
//! The engine keeps the claims; only a host can tell whether the process behind one is alive. A
//! claim of this machine's present boot whose process is gone, or is another that has the number
//! now, is dead. Of any other machine or boot nothing can be told: an earlier boot of this machine
//! is dead too, since all its processes are.

use serde::{Deserialize, Serialize};
use std::fs;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// A process that holds a space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    /// Unique among all openers.
    pub(crate) id: String,
    pid: u32,
    /// Names the machine for good, and the namespace in which `pid` means anything.
    host: String,
    /// Names the machine's present boot.
    boot: String,
    /// When the process started, in clock ticks since boot.
    start: u64,
}

impl Holder {
    /// Returns a holder for one more space of this process.
    pub(crate) fn of_this_process() -> Self {
        // Counts the spaces of a process; it is a name, not a state.
        static SPACES: AtomicU32 = AtomicU32::new(0);
        let (pid, boot) = (process::id(), boot());
        let start = started(pid).unwrap_or(0);
        let short: String = boot.chars().filter(char::is_ascii_hexdigit).take(8).collect();
        // Without a boot id and start time, the time keeps a reused process number apart.
        let since = if start == 0 { crate::now() } else { start };
        let id = format!("{short}-{pid}-{since}-{}", SPACES.fetch_add(1, Ordering::Relaxed));
        Self { id, pid, host: machine(), boot, start }
    }

    /// Returns the holder that a `busy` refusal names, if it is one of this kind.
    pub(crate) fn in_refusal(message: &str) -> Option<Self> {
        serde_json::from_str(message).ok()
    }

    /// Returns whether the holder is known to be dead.
    pub(crate) fn is_dead(&self) -> bool {
        if self.host.is_empty() || self.boot.is_empty() || self.host != machine() {
            return false;
        }
        let boot = boot();
        if self.boot != boot {
            return !boot.is_empty();
        }
        self.pid != process::id() && self.start != 0 && started(self.pid) != Some(self.start)
    }
}

/// Returns the machine's id, else its name, and the process namespace: containers of one machine may
/// share a directory, but none sees the processes of another. Empty where the system tells nothing.
fn machine() -> String {
    let id = Some(line("/etc/machine-id")).filter(|id| !id.is_empty()).unwrap_or_else(|| line("/proc/sys/kernel/hostname"));
    match fs::read_link("/proc/self/ns/pid") {
        Ok(namespace) if !id.is_empty() => format!("{id} {}", namespace.display()),
        _ => String::new(),
    }
}

fn boot() -> String {
    line("/proc/sys/kernel/random/boot_id")
}

/// Returns a file's text without its end of line; empty if it cannot be read.
fn line(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// Returns when a process started, or nothing if there is none, or it has ended and waits to be reaped.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    // The start time is field 22; the state was field 3.
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_its_past_selves_are_dead() {
        let mut holder = Holder::of_this_process();
        assert!(!holder.is_dead());
        holder.pid = 1;
        assert!(holder.is_dead(), "process 1 started at another time");
        holder.host = "another machine".into();
        assert!(!holder.is_dead(), "nothing is known of other machines");
    }

    #[test]
    fn a_holder_of_an_earlier_boot_is_dead() {
        let holder = Holder { boot: "an earlier one".into(), ..Holder::of_this_process() };
        assert!(holder.is_dead());
    }

    #[test]
    fn two_spaces_of_a_process_have_different_ids() {
        assert_ne!(Holder::of_this_process().id, Holder::of_this_process().id);
    }

    #[test]
    fn a_killed_process_is_dead_before_its_parent_reaps_it() {
        let mut child = process::Command::new("sleep").arg("60").spawn().expect("sleep runs");
        let holder = Holder { pid: child.id(), start: started(child.id()).expect("it runs"), ..Holder::of_this_process() };
        assert!(!holder.is_dead());
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert!(holder.is_dead());
    }
}
