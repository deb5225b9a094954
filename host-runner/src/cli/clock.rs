//! Times for people, and times that people write.

use super::exit::Usage;
use crate::import::time_text;
use anyhow::Result;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

/// Returns `2026-03-01 09:12` in the zone.
pub(crate) fn people(at_ms: u64, zone: &TimeZone) -> String {
    match Timestamp::from_millisecond(i64::try_from(at_ms).unwrap_or(i64::MAX)) {
        Ok(at) => zone.to_datetime(at).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => format!("{at_ms} ms"),
    }
}

/// Returns `2026-03-01-091213`: a name for what is made at this time.
pub(crate) fn file_name(at_ms: u64, zone: &TimeZone) -> String {
    match Timestamp::from_millisecond(i64::try_from(at_ms).unwrap_or(i64::MAX)) {
        Ok(at) => zone.to_datetime(at).strftime("%Y-%m-%d-%H%M%S").to_string(),
        Err(_) => at_ms.to_string(),
    }
}

/// Returns `2026-03-01 09:12` of a document's time, which is a number or ISO 8601.
pub(crate) fn shown(time: &Value, zone: &TimeZone) -> Option<String> {
    match time {
        Value::String(iso) => Some(iso.get(..16).map_or_else(|| iso.clone(), |start| start.replace('T', " "))),
        time => time.as_u64().map(|at_ms| people(at_ms, zone)),
    }
}

/// Reads a time on the command line: a date, a date and time, or `7d`, `12h`, `30m` ago.
pub(crate) fn parse(flag: &str, text: &str, zone: &TimeZone, now_ms: u64) -> Result<u64> {
    let ago = [('d', 86_400_000_u64), ('h', 3_600_000), ('m', 60_000)].iter().find_map(|(unit, ms)| Some((text.strip_suffix(*unit)?.parse::<u64>().ok()?, ms)));
    if let Some((count, ms)) = ago {
        return Ok(now_ms.saturating_sub(count.saturating_mul(*ms)));
    }
    time_text::parse(text, zone).ok_or_else(|| Usage(format!("{flag} {text}: not a time; write 2026-03-01, \"2026-03-01 09:12\", 7d, 12h or 30m")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_on_the_command_line() {
        let utc = TimeZone::UTC;
        assert_eq!(parse("--since", "2d", &utc, 200_000_000).expect("a time"), 200_000_000 - 172_800_000);
        assert_eq!(parse("--since", "1970-01-02", &utc, 0).expect("a time"), 86_400_000);
        assert!(parse("--since", "soon", &utc, 0).expect_err("not a time").to_string().contains("--since soon"));
        assert_eq!(people(86_400_000, &utc), "1970-01-02 00:00");
        assert_eq!(shown(&"2026-03-01T09:12:13.000+08:00".into(), &utc).as_deref(), Some("2026-03-01 09:12"));
        assert_eq!(shown(&86_400_000.into(), &utc).as_deref(), Some("1970-01-02 00:00"));
        assert_eq!(shown(&Value::Null, &utc), None);
    }
}
