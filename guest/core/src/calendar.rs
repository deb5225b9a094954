//! Local time: the only place where an instant becomes a date.
//!
//! The store holds milliseconds; people and models read ISO 8601 with offset in the configured zone.

use crate::contract::{Failure, Instant, Result};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ZonedDateTime, civil};

/// A configured time zone.
#[derive(Clone, Debug)]
pub struct Calendar {
    zone: TimeZone,
}

/// Milliseconds of a minute.
const MINUTE_MS: u64 = 60_000;

impl Calendar {
    /// Returns the calendar of a zone: `UTC`, an IANA name, or an offset as `+08:00`. `system` is
    /// UTC, because the engine must give the same bytes on every host.
    pub fn new(zone: &str) -> Result<Self> {
        if let Some(offset) = fixed(zone) {
            return Ok(Self { zone: TimeZone::fixed(offset) });
        }
        match zone {
            "" | "UTC" | "system" => Ok(Self { zone: TimeZone::UTC }),
            name => TimeZone::get(name)
                .map(|zone| Self { zone })
                .map_err(|_| Failure::invalid(format!("timezone: `{name}` is neither UTC, an IANA name nor an offset like +08:00"))),
        }
    }

    fn zoned(&self, at: Instant) -> ZonedDateTime {
        // Instants beyond jiff's year 9999 are shown as its last one.
        let timestamp = i64::try_from(at).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::MAX);
        timestamp.to_zoned_datetime(self.zone.clone())
    }

    /// Returns `2026-06-01T10:00:00+08:00`.
    pub fn iso(&self, at: Instant) -> String {
        self.zoned(at).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    }

    /// Returns the local day, `2026-06-01`.
    pub fn day(&self, at: Instant) -> String {
        self.zoned(at).strftime("%Y-%m-%d").to_string()
    }

    /// Returns the instants at which a local day (`2026-06-01`) begins and ends; nothing for text that is no day.
    pub fn bounds(&self, day: &str) -> Option<(Instant, Instant)> {
        let date: civil::Date = day.parse().ok()?;
        let start = date.to_zoned_datetime(self.zone.clone()).ok()?;
        let end = date.tomorrow().ok()?.to_zoned_datetime(self.zone.clone()).ok()?;
        Some((instant(&start), instant(&end)))
    }

    /// Returns the first instant after `after` whose local time of day is `time` (`03:00`).
    pub fn next_time_of_day(&self, time: &str, after: Instant) -> Option<Instant> {
        let (hour, minute) = time.split_once(':')?;
        let time = civil::Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()?;
        let mut day = self.zoned(after).date();
        // Two days suffice; a day that lacks the time in a change of clocks gets the next valid one.
        for _ in 0..3 {
            let at = instant(&day.to_datetime(time).to_zoned_datetime(self.zone.clone()).ok()?);
            if at > after {
                return Some(at);
            }
            day = day.tomorrow().ok()?;
        }
        None
    }

    /// Reads an ISO 8601 time with offset (`2026-06-01T10:00:00+08:00`, `…Z`).
    pub fn parse(text: &str) -> Option<Instant> {
        let timestamp: Timestamp = text.trim().parse().ok()?;
        u64::try_from(timestamp.as_millisecond()).ok()
    }
}

fn instant(zoned: &ZonedDateTime) -> Instant {
    u64::try_from(zoned.timestamp().as_millisecond()).unwrap_or(0)
}

fn fixed(zone: &str) -> Option<Offset> {
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = (hours * 60 + minutes) * (MINUTE_MS / 1000);
    Offset::from_seconds(sign * i32::try_from(seconds).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_local_in_every_kind_of_zone() {
        // 2026-06-01T02:03:04.567Z
        let at = 1_780_279_384_567;
        let shown = |zone: &str| Calendar::new(zone).map(|calendar| calendar.iso(at)).expect("a zone");
        assert_eq!(shown("UTC"), "2026-06-01T02:03:04+00:00");
        assert_eq!(shown("+08:00"), "2026-06-01T10:03:04+08:00");
        assert_eq!(shown("America/New_York"), "2026-05-31T22:03:04-04:00");
        assert_eq!(Calendar::new("America/New_York").expect("a zone").day(at), "2026-05-31");
        assert!(Calendar::new("Middle/Earth").is_err());
        assert!(Calendar::new("+99:00").is_err());
    }

    #[test]
    fn a_day_of_23_hours_has_its_own_bounds() {
        let berlin = Calendar::new("Europe/Berlin").expect("a zone");
        let (start, end) = berlin.bounds("2026-03-29").expect("a day");
        assert_eq!((end - start) / 3_600_000, 23);
        assert_eq!(berlin.day(start), "2026-03-29");
        assert_eq!(berlin.day(end), "2026-03-30");
    }

    #[test]
    fn cleaning_time_comes_once_a_local_day() {
        let calendar = Calendar::new("+08:00").expect("a zone");
        let at = calendar.next_time_of_day("03:00", 1_780_279_384_567).expect("a time");
        assert_eq!(calendar.iso(at), "2026-06-02T03:00:00+08:00");
        assert_eq!(calendar.next_time_of_day("03:00", at), Some(at + 24 * 3_600_000));
        assert_eq!(calendar.next_time_of_day("noon", 0), None);
    }
}
