//! One opener at a time, by files that every host understands.
//!
//! Each opener puts its claim into `lock/` and then looks for others: of two that come together at
//! least one sees the other, so never do both go on. A claim is whole or absent (it is renamed into
//! place), so one that cannot be read is the ruin of a power cut and nobody's. Whether the process
//! behind a claim lives, only a host can tell; it says so in `evict`.

use crate::contract::{Failure, FailureCode, Instant, Result};
use crate::disk::{self, Disk, DiskError, OpenMode};
use crate::settings::Settings;
use crate::store::disk_failure;
use serde_json::{Value, json};
use std::rc::Rc;

/// Where the claims lie.
pub(crate) const DIRECTORY: &str = "lock";

/// A holder without an id is presumed dead after so long without a `work.tick`, in milliseconds.
const SILENCE_MS: u64 = 60_000;

/// How often such a holder renews its claim, in milliseconds: three chances within the silence.
const BEAT_MS: u64 = 20_000;

/// Longest id of a holder, in bytes: it names a file.
const MAX_ID: usize = 128;

/// The claim of this opener; held until `release`.
#[derive(Debug)]
pub struct SpaceLock {
    disk: Rc<dyn Disk>,
    id: String,
    holder: Value,
    /// When the next beat is due; `None` for a holder that its host can judge.
    next_beat: Option<Instant>,
}

impl SpaceLock {
    /// Claims the directory. Fails with `busy` and the JSON of the holder that is in.
    pub fn claim(disk: Rc<dyn Disk>, settings: &Settings, at: Instant) -> Result<Self> {
        let named = settings.holder.as_ref().and_then(|holder| holder.get("id")).and_then(Value::as_str);
        let id = match named {
            Some(id) => checked(id)?.to_owned(),
            None => format!("since-{at}"),
        };
        let holder = settings.holder.clone().unwrap_or_else(|| json!({}));
        let lock = Self { disk, id, holder, next_beat: named.is_none().then_some(at + BEAT_MS) };
        lock.disk.create_dir(DIRECTORY).map_err(|error| disk_failure(DIRECTORY, error))?;
        if named.is_none() && lock.disk.exists(&lock.path()).map_err(|error| disk_failure(DIRECTORY, error))? {
            return Err(Failure::new(FailureCode::Busy, json!({"since": at}).to_string()));
        }
        lock.write(at)?;
        match lock.other_holder(&settings.evict, at) {
            Ok(None) => Ok(lock),
            Ok(Some(other)) => {
                lock.release()?;
                Err(Failure::new(FailureCode::Busy, other.to_string()))
            }
            Err(failure) => {
                lock.release()?;
                Err(failure)
            }
        }
    }

    /// Renews the claim if it is due; returns when to call next.
    pub fn beat(&mut self, now: Instant) -> Result<Option<Instant>> {
        if let Some(due) = self.next_beat
            && now >= due
        {
            self.write(now)?;
            self.next_beat = Some(now + BEAT_MS);
        }
        Ok(self.next_beat)
    }

    /// Gives the directory up.
    pub fn release(self) -> Result<()> {
        match self.disk.remove(&self.path()) {
            Ok(()) | Err(DiskError::NotFound) => Ok(()),
            Err(error) => Err(disk_failure(DIRECTORY, error)),
        }
    }

    fn path(&self) -> String {
        format!("{DIRECTORY}/{}.json", self.id)
    }

    fn write(&self, beat: Instant) -> Result<()> {
        let claim = json!({"holder": self.holder, "id": self.id, "beat": beat}).to_string();
        let fresh = format!("{DIRECTORY}/{}.new", self.id);
        let written = (|| {
            let mut file = self.disk.open(&fresh, OpenMode::Create)?;
            file.set_len(0)?;
            file.write_at(claim.as_bytes(), 0)?;
            drop(file);
            self.disk.rename(&fresh, &self.path())
        })();
        written.map_err(|error| disk_failure(DIRECTORY, error))
    }

    /// Returns the claim of a holder that may be alive; removes those that are not.
    fn other_holder(&self, evict: &[String], at: Instant) -> Result<Option<Value>> {
        for name in self.disk.list(DIRECTORY).map_err(|error| disk_failure(DIRECTORY, error))? {
            let Some(id) = name.strip_suffix(".json") else { continue };
            if id == self.id {
                continue;
            }
            let path = format!("{DIRECTORY}/{name}");
            let claim = match disk::read_all(self.disk.as_ref(), &path) {
                Ok(bytes) => serde_json::from_slice::<Value>(&bytes).ok(),
                // It was released while we looked.
                Err(DiskError::NotFound) => continue,
                Err(error) => return Err(disk_failure(&path, error)),
            };
            if let Some(claim) = claim.filter(|claim| !evict.iter().any(|dead| dead == id) && !silent(claim, at)) {
                let holder = claim.get("holder").cloned().unwrap_or(Value::Null);
                return Ok(Some(if holder.get("id").is_some() { holder } else { claim }));
            }
            match self.disk.remove(&path) {
                Ok(()) | Err(DiskError::NotFound) => {}
                Err(error) => return Err(disk_failure(&path, error)),
            }
        }
        Ok(None)
    }
}

/// Returns whether a holder without an id has been silent for too long.
fn silent(claim: &Value, at: Instant) -> bool {
    let anonymous = claim.get("holder").is_none_or(|holder| holder.get("id").is_none());
    let beat = claim.get("beat").and_then(Value::as_u64).unwrap_or(0);
    anonymous && beat.saturating_add(SILENCE_MS) < at
}

fn checked(id: &str) -> Result<&str> {
    let good = !id.is_empty() && id.len() <= MAX_ID && !id.starts_with('.') && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if good { Ok(id) } else { Err(Failure::invalid(format!("holder.id must be 1 to {MAX_ID} letters, digits, `.`, `_` or `-`, and not begin with `.`"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimDisk;

    fn settings(json: Value) -> Settings {
        Settings::parse(&json.to_string()).expect("settings of the test parse")
    }

    fn named(id: &str) -> Settings {
        settings(json!({"holder": {"id": id, "pid": 7}}))
    }

    #[test]
    fn a_second_opener_is_told_who_is_in() {
        let disk: Rc<dyn Disk> = Rc::new(SimDisk::new());
        let first = SpaceLock::claim(disk.clone(), &named("a"), 0).expect("free");
        let refused = SpaceLock::claim(disk.clone(), &named("b"), 1).expect_err("taken");
        assert_eq!(refused.code, FailureCode::Busy);
        assert_eq!(refused.message, r#"{"id":"a","pid":7}"#);
        first.release().expect("released");
        SpaceLock::claim(disk, &named("b"), 2).expect("free again");
    }

    #[test]
    fn a_holder_that_its_host_calls_dead_is_evicted() {
        let disk: Rc<dyn Disk> = Rc::new(SimDisk::new());
        let _killed = SpaceLock::claim(disk.clone(), &named("a"), 0).expect("free");
        SpaceLock::claim(disk, &settings(json!({"holder": {"id": "b"}, "evict": ["a"]})), 1).expect("evicted");
    }

    #[test]
    fn the_same_holder_comes_back_after_a_trap() {
        let disk: Rc<dyn Disk> = Rc::new(SimDisk::new());
        let _trapped = SpaceLock::claim(disk.clone(), &named("a"), 0).expect("free");
        SpaceLock::claim(disk, &named("a"), 1).expect("its own claim");
    }

    #[test]
    fn a_nameless_holder_lives_by_its_ticks() {
        let disk: Rc<dyn Disk> = Rc::new(SimDisk::new());
        let mut nameless = SpaceLock::claim(disk.clone(), &Settings::default(), 0).expect("free");
        assert_eq!(nameless.beat(30_000).expect("beats"), Some(50_000));
        assert!(SpaceLock::claim(disk.clone(), &named("b"), 90_000).is_err(), "60 s of silence are not over");
        SpaceLock::claim(disk, &named("b"), 90_001).expect("silent for too long");
    }

    #[test]
    fn a_torn_claim_is_nobodys_and_an_id_cannot_leave_the_directory() {
        let sim = SimDisk::new();
        sim.create_dir(DIRECTORY).expect("made");
        sim.open("lock/torn.json", OpenMode::Create).expect("made").write_at(b"{", 0).expect("written");
        let disk: Rc<dyn Disk> = Rc::new(sim);
        SpaceLock::claim(disk.clone(), &named("a"), 0).expect("free");
        let refused = SpaceLock::claim(disk, &named("../a"), 0).expect_err("not a file name");
        assert_eq!(refused.code, FailureCode::InvalidArgument);
    }
}
