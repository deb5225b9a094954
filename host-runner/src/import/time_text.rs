//! Times as people and programs write them, to milliseconds since 1970.
//!
//! A text is understood whole or not at all: a wrong date in a memory is worse than none. `03/04/2024` is refused, because
//! nobody can tell whether March or April is meant.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use serde_json::Value;

/// Numbers below these are in seconds, milliseconds, microseconds; greater ones are in nanoseconds.
const SECONDS_BELOW: f64 = 1e11;
const MILLIS_BELOW: f64 = 1e14;
const MICROS_BELOW: f64 = 1e17;

/// The end of the year 9999 in UTC, in milliseconds: the last instant that the engine takes.
const LAST: f64 = 253_402_300_799_999.0;

const MONTHS: [&str; 12] = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];

/// Words that say nothing more than the date does.
const FILLERS: [&str; 8] = ["on", "at", "of", "the", "um", "utc", "gmt", "t"];

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Returns the instant of a JSON value: a number of seconds, milliseconds, microseconds or nanoseconds, or text.
pub(crate) fn of_value(value: &Value, zone: &TimeZone) -> Option<u64> {
    match value {
        Value::Number(number) => of_number(number.as_f64()?),
        Value::String(text) => parse(text, zone),
        _ => None,
    }
}

fn of_number(number: f64) -> Option<u64> {
    let millis = match number {
        n if !n.is_finite() || n < 0.0 => return None,
        n if n < SECONDS_BELOW => n * 1000.0,
        n if n < MILLIS_BELOW => n,
        n if n < MICROS_BELOW => n / 1000.0,
        n => n / 1_000_000.0,
    };
    (millis <= LAST).then(|| millis.round() as u64)
}

/// Returns the instant that `text` names, in `zone` unless the text names a zone itself. A date without a time of day is
/// its midnight.
pub(crate) fn parse(text: &str, zone: &TimeZone) -> Option<u64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return of_number(number);
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return u64::try_from(instant.as_millisecond()).ok();
    }
    let local = text.parse::<DateTime>().ok().or_else(|| words(text))?;
    u64::try_from(zone.to_timestamp(local).ok()?.as_millisecond()).ok()
}

/// Reads a date and perhaps a time of day from free text.
fn words(text: &str) -> Option<DateTime> {
    let lower = text.to_lowercase();
    let (time, rest) = take_time(&lower)?;
    let date = chinese_date(&rest).or_else(|| numeric_date(&rest)).or_else(|| named_date(&rest))?;
    Some(date.to_datetime(time))
}

/// Cuts a time of day (`1:56 pm`, `08:30`, `下午3点20分`) out of the text; midnight if there is none. `None` if there is one
/// and it is not a time.
fn take_time(text: &str) -> Option<(Time, String)> {
    let chars: Vec<char> = text.chars().collect();
    let marker = [("上午", 0), ("早上", 0), ("凌晨", 0), ("中午", 12), ("下午", 12), ("晚上", 12)].iter().find(|(word, _)| text.contains(word));
    let Some(colon) = (1..chars.len().saturating_sub(1)).find(|at| {
        let splits = matches!(chars[*at], ':' | '：' | '点' | '时');
        splits && chars[at - 1].is_ascii_digit()
    }) else {
        return match hour_word(text) {
            Some((hour, rest)) => Some((Time::new(hour, 0, 0, 0).ok()?, rest)),
            None => Some((Time::midnight(), text.to_owned())),
        };
    };
    let start = (0..colon).rev().take_while(|at| chars[*at].is_ascii_digit()).last()?;
    let number = |from: usize| chars[from..].iter().take_while(|c| c.is_ascii_digit()).collect::<String>();
    let mut hour: i8 = number(start).parse().ok()?;
    let minutes = number(colon + 1);
    let mut end = colon + 1 + minutes.len();
    let minute: i8 = if minutes.is_empty() { 0 } else { minutes.parse().ok()? };
    let mut second = 0;
    if chars.get(end).is_some_and(|c| matches!(c, ':' | '：')) {
        let seconds = number(end + 1);
        second = seconds.parse().ok()?;
        end += 1 + seconds.len();
    }
    let rest: String = chars[end..].iter().collect::<String>();
    let rest = rest.trim_start_matches(['分', '秒', ' ']);
    let (rest, half) = match ["am", "a.m.", "pm", "p.m."].iter().position(|word| rest.starts_with(word)) {
        Some(at) => (&rest[["am", "a.m.", "pm", "p.m."][at].len()..], Some(if at < 2 { 0 } else { 12 })),
        None => (rest, marker.map(|(_, half)| *half)),
    };
    if let Some(half) = half {
        hour = if hour < 12 && half == 12 { hour + 12 } else { hour };
        hour = if hour == 12 && half == 0 { 0 } else { hour };
    }
    let mut left: String = chars[..start].iter().collect();
    if let Some((word, _)) = marker {
        left = left.replace(word, " ");
    }
    Some((Time::new(hour, minute, second, 0).ok()?, format!("{left} {rest}")))
}

/// Cuts `3 pm` or `3pm` out of the text.
fn hour_word(text: &str) -> Option<(i8, String)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    for (at, word) in words.iter().enumerate() {
        let Some((digits, half)) = word.strip_suffix("am").map(|d| (d, 0)).or_else(|| word.strip_suffix("pm").map(|d| (d, 12))) else { continue };
        let (digits, from) = if digits.is_empty() { (*words.get(at.checked_sub(1)?)?, at - 1) } else { (digits, at) };
        let hour: i8 = digits.parse().ok().filter(|hour| (1..=12).contains(hour))?;
        let rest = words.iter().enumerate().filter(|(i, _)| *i < from || *i > at).map(|(_, word)| *word).collect::<Vec<_>>().join(" ");
        return Some((hour % 12 + half, rest));
    }
    None
}

/// `2024年04月01日 周一`
fn chinese_date(text: &str) -> Option<Date> {
    let (year, rest) = text.split_once('年')?;
    let (month, rest) = rest.split_once('月')?;
    let (day, rest) = rest.split_once(['日', '号'])?;
    let rest = rest.trim();
    let weekday = ["周", "星期", "礼拜", "（周", "(周", "（星期", "(星期"].iter().any(|word| rest.starts_with(word));
    if !rest.is_empty() && !weekday {
        return None;
    }
    Date::new(year.trim().parse().ok()?, month.trim().parse().ok()?, day.trim().parse().ok()?).ok()
}

/// `2024-04-01`, `2024/4/1`, `01.04.2024` (with dots the day comes first), `25/12/2024`.
fn numeric_date(text: &str) -> Option<Date> {
    let mut words = text.split([' ', ',', '(', ')']).filter(|word| !word.is_empty() && !is_weekday(word) && !FILLERS.contains(word));
    let word = words.next().filter(|_| words.next().is_none())?;
    let separator = ['-', '/', '.'].into_iter().find(|separator| word.contains(*separator))?;
    let parts: Vec<&str> = word.trim_end_matches('t').split(separator).collect();
    let [a, b, c] = parts[..] else { return None };
    let (first, second, third): (i16, i16, i16) = (a.parse().ok()?, b.parse().ok()?, c.parse().ok()?);
    let (year, month, day) = match (a.len(), c.len()) {
        (4, _) => (first, second, third),
        (_, 4) if separator == '.' || first > 12 => (third, second, first),
        (_, 4) if second > 12 || first == second => (third, first, second),
        _ => return None,
    };
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// `8 May, 2023`, `March-15-2024`, `Mon, 15th of Mar 2024`.
fn named_date(text: &str) -> Option<Date> {
    let (mut year, mut month, mut day) = (None, None, None);
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
        if let Ok(number) = digits.parse::<i16>() {
            match (digits.len(), number) {
                (4, _) if year.is_none() => year = Some(number),
                (1..=2, 1..=31) if day.is_none() => day = Some(number as i8),
                _ => return None,
            }
        } else if let Some(at) = MONTHS.iter().position(|name| word.len() >= 3 && (name.starts_with(word) || word == "sept" && *name == "september")) {
            if month.replace(at as i8 + 1).is_some() {
                return None;
            }
        } else if !FILLERS.contains(&word) && !is_weekday(word) {
            return None;
        }
    }
    Date::new(year?, month?, day?).ok()
}

fn is_weekday(word: &str) -> bool {
    let word = word.trim_end_matches('.');
    word.len() >= 3 && WEEKDAYS.iter().any(|name| name.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let found = parse(text, &TimeZone::UTC).map(|ms| Timestamp::from_millisecond(ms as i64).expect("in range").to_string());
        assert_eq!(found.as_deref(), Some(expect), "{text}");
    }

    #[test]
    fn what_programs_write() {
        check("2026-02-06T07:49:03.491Z", "2026-02-06T07:49:03.491Z");
        check("2026-02-06T07:49:03+08:00", "2026-02-05T23:49:03Z");
        check("2026-02-06 07:49:03", "2026-02-06T07:49:03Z");
        check("2026-02-06", "2026-02-06T00:00:00Z");
        check("1770364143", "2026-02-06T07:49:03Z");
        check("1770364143489", "2026-02-06T07:49:03.489Z");
        check("1770364143.5", "2026-02-06T07:49:03.5Z");
        check("1770364143489123", "2026-02-06T07:49:03.489Z");
        check("1770364143489123456", "2026-02-06T07:49:03.489Z");
    }

    #[test]
    fn a_number_beyond_every_year_is_no_time() {
        let found = |number: f64| of_value(&serde_json::json!(number), &TimeZone::UTC);
        assert_eq!(found(1e25), None);
        assert_eq!(found(-1.0), None);
        assert_eq!(found(1_770_364_143_489_123_456.0), Some(1_770_364_143_489));
    }

    #[test]
    fn what_people_write() {
        check("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00Z");
        check("12:09 am on 13 September, 2023", "2023-09-13T00:09:00Z");
        check("12:30 PM, March 3rd 2024", "2024-03-03T12:30:00Z");
        check("March-15-2024", "2024-03-15T00:00:00Z");
        check("Mon, 4 Mar 2024 09:05:06", "2024-03-04T09:05:06Z");
        check("3 pm on 4 March 2024", "2024-03-04T15:00:00Z");
        check("March 4, 2024 3pm", "2024-03-04T15:00:00Z");
        check("2024/4/1 08:30", "2024-04-01T08:30:00Z");
        check("2024-04-01 08:30", "2024-04-01T08:30:00Z");
        check("01.04.2024 08:30", "2024-04-01T08:30:00Z");
        check("25/12/2024", "2024-12-25T00:00:00Z");
        check("2024年04月01日 周一 08:30", "2024-04-01T08:30:00Z");
        check("2024年4月1日", "2024-04-01T00:00:00Z");
        check("2024年4月1日 下午3:20", "2024-04-01T15:20:00Z");
        check("2024年4月1日下午3点20分", "2024-04-01T15:20:00Z");
    }

    #[test]
    fn a_zone_moves_only_times_that_name_none() {
        let lisbon = TimeZone::fixed(jiff::tz::offset(1));
        assert_eq!(parse("2024-04-01 08:30", &lisbon), parse("2024-04-01T07:30:00Z", &TimeZone::UTC));
        assert_eq!(parse("2024-04-01T08:30:00Z", &lisbon), parse("2024-04-01T08:30:00Z", &TimeZone::UTC));
    }

    #[test]
    fn what_is_not_surely_a_time_is_refused() {
        for text in ["", "some day", "03/04/2024", "2024-13-01", "29 February 2023", "25:00 on 8 May 2023", "8 May", "May 2023", "room 12:30", "8 May 2023 x"] {
            assert_eq!(parse(text, &TimeZone::UTC), None, "{text}");
        }
    }
}
