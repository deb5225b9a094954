//! Dates that are said relative to now: "yesterday", "next Wednesday", "下周三", "3 May".

use crate::calendar::Calendar;
use crate::contract::Instant;
use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

/// A date found in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dated {
    /// Where it stands, in bytes.
    pub place: (usize, usize),
    /// The first day.
    pub first: Date,
    /// The last day; the same for a single day.
    pub last: Date,
}

impl Dated {
    /// Returns the date for people: `on 2026-05-12`, `in 2026-05`, `in 2025`, `between 2026-05-04 and
    /// 2026-05-10`; without the preposition if `is_governed`.
    pub(super) fn english(&self, is_governed: bool) -> String {
        let (first, last) = (self.first, self.last);
        let (preposition, bare) = if first == last {
            ("on ", first.to_string())
        } else if first == first.first_of_year() && last == first.last_of_year() {
            ("in ", first.year().to_string())
        } else if first == first.first_of_month() && last == first.last_of_month() {
            ("in ", format!("{}-{:02}", first.year(), first.month()))
        } else if is_governed {
            ("", format!("{first} to {last}"))
        } else {
            ("between ", format!("{first} and {last}"))
        };
        if is_governed { bare } else { format!("{preposition}{bare}") }
    }

    /// Returns the first and the last instant.
    pub(super) fn instants(&self, calendar: &Calendar) -> Option<(Instant, Instant)> {
        let (start, first_end) = calendar.bounds(&self.first.to_string())?;
        let end = if self.last == self.first { first_end } else { calendar.bounds(&self.last.to_string())?.1 };
        Some((start, end.saturating_sub(1)))
    }
}

/// Whether a sentence speaks of what was or of what will be; decides what a bare weekday means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tense {
    /// It happened.
    Past,
    /// It will.
    Future,
}

/// Returns the first date in an English text (lower case), said on `today`.
pub(super) fn english(text: &str, today: Date, tense: Tense) -> Option<Dated> {
    let words = words(text);
    (0..words.len()).find_map(|index| english_at(&words, index, today, tense))
}

/// A word and where it stands.
type Word<'a> = (usize, &'a str);

fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let inside = c.is_alphanumeric() || (matches!(c, '-' | '/' | '\'') && start.is_some());
        match (inside, start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                words.push((from, &text[from..at]));
                start = None;
            }
            _ => {}
        }
    }
    words
}

fn english_at(words: &[Word<'_>], index: usize, today: Date, tense: Tense) -> Option<Dated> {
    let word = |offset: usize| words.get(index + offset).map_or("", |(_, word)| *word);
    let span = |count: usize, first: Date, last: Date| {
        let (start, _) = words[index];
        let (end, last_word) = words[index + count - 1];
        Some(Dated { place: (start, end + last_word.len()), first, last })
    };
    let day = |count: usize, date: Option<Date>| date.and_then(|date| span(count, date, date));
    match (word(0), word(1), word(2)) {
        ("the", "day", "before") if word(3) == "yesterday" => day(4, shift_days(today, -2)),
        ("the", "day", "after") if word(3) == "tomorrow" => day(4, shift_days(today, 2)),
        ("today" | "tonight", ..) => day(1, Some(today)),
        ("this", "morning" | "afternoon" | "evening", _) => day(2, Some(today)),
        ("yesterday", ..) => day(1, shift_days(today, -1)),
        ("last", "night", _) => day(2, shift_days(today, -1)),
        ("tomorrow", ..) => day(1, shift_days(today, 1)),
        (which @ ("last" | "this" | "next"), unit, _) => {
            let step = match which {
                "last" => -1,
                "this" => 0,
                _ => 1,
            };
            if let Some((first, last)) = period(unit, step, today) {
                return span(2, first, last);
            }
            let weekday = weekday(unit)?;
            // "Last Friday" is the latest one before today; "next Friday" is the one of next week.
            day(2, if step < 0 { latest(weekday, today) } else { in_week(weekday, step, today) })
        }
        ("in", count, unit) => {
            // "In a week from 3 March" does not count from today.
            let date = shift(today, number(count)?, unit).filter(|_| !matches!(word(3), "from" | "of" | "after" | "before" | "or"))?;
            span(3, date, date)
        }
        (count, unit, "ago") => {
            let (first, last) = around(shift(today, -number(count)?, unit)?, unit)?;
            span(3, first, last)
        }
        (count, month_name, year) if ordinal(count).is_some() && month(month_name).is_some() => {
            let count_words = if calendar_year(year).is_some() { 3 } else { 2 };
            day(count_words, calendar_date(ordinal(count)?, month(month_name)?, calendar_year(year), today, tense))
        }
        (count, "of", month_name) if ordinal(count).is_some() && month(month_name).is_some() => {
            day(3, calendar_date(ordinal(count)?, month(month_name)?, None, today, tense))
        }
        (month_name, count, year) if month(month_name).is_some() && ordinal(count).is_some() => {
            let count_words = if calendar_year(year).is_some() { 3 } else { 2 };
            day(count_words, calendar_date(ordinal(count)?, month(month_name)?, calendar_year(year), today, tense))
        }
        ("on", name, _) if weekday(name).is_some() => {
            let weekday = weekday(name)?;
            day(2, if tense == Tense::Past { latest(weekday, today) } else { coming(weekday, today) })
        }
        (text, ..) if text.len() == 10 && text.as_bytes()[4] == b'-' => day(1, text.parse().ok()),
        _ => None,
    }
}

/// Returns the first date in a Chinese text, said on `today`.
pub(super) fn chinese(text: &str, today: Date, tense: Tense) -> Option<Dated> {
    text.char_indices().find_map(|(at, _)| {
        // 每周一 is a habit, 一周一次 a frequency: neither is a date.
        if text[..at].ends_with(|c: char| c == '每' || c.is_ascii_digit() || "一二两三四五六七八九十几".contains(c)) {
            return None;
        }
        let (length, first, last) = chinese_at(&text[at..], today, tense)?;
        Some(Dated { place: (at, at + length), first, last })
    })
}

fn chinese_at(text: &str, today: Date, tense: Tense) -> Option<(usize, Date, Date)> {
    for (name, days) in
        [("大前天", -3), ("大后天", 3), ("前天", -2), ("昨天", -1), ("昨晚", -1), ("今天", 0), ("今晚", 0), ("今早", 0), ("明天", 1), ("明晚", 1), ("后天", 2)]
    {
        if text.starts_with(name) {
            let date = shift_days(today, days)?;
            return Some((name.len(), date, date));
        }
    }
    for (name, unit, step) in [
        ("上个月", "month", -1),
        ("上月", "month", -1),
        ("这个月", "month", 0),
        ("本月", "month", 0),
        ("下个月", "month", 1),
        ("下月", "month", 1),
        ("去年", "year", -1),
        ("今年", "year", 0),
        ("明年", "year", 1),
    ] {
        if let Some(rest) = text.strip_prefix(name) {
            // 今年三十岁 tells an age, 明年五月 a month that is not known here.
            if rest.starts_with(|c: char| c.is_ascii_digit() || "一二三四五六七八九十".contains(c)) {
                return None;
            }
            let (first, last) = period(unit, step, today)?;
            return Some((name.len(), first, last));
        }
    }
    for (prefix, step) in [("上", -1), ("这", 0), ("本", 0), ("下", 1)] {
        let Some(rest) = text.strip_prefix(prefix) else { continue };
        let rest = rest.strip_prefix('个').unwrap_or(rest);
        let Some(after) = ["星期", "礼拜", "周"].iter().find_map(|name| rest.strip_prefix(*name)) else { continue };
        if let Some(after) = after.strip_prefix('末') {
            let (first, last) = period("weekend", step, today)?;
            return Some((text.len() - after.len(), first, last));
        }
        let Some(weekday) = after.chars().next().and_then(chinese_weekday) else {
            let (first, last) = period("week", step, today)?;
            return Some((text.len() - after.len(), first, last));
        };
        let length = text.len() - after.len() + after.chars().next().map_or(0, char::len_utf8);
        let date = in_week(weekday, step, today)?;
        return Some((length, date, date));
    }
    if let Some(after) = ["星期", "礼拜", "周"].iter().find_map(|name| text.strip_prefix(*name))
        && let Some(weekday) = after.chars().next().and_then(chinese_weekday)
    {
        let length = text.len() - after.len() + after.chars().next().map_or(0, char::len_utf8);
        let date = if tense == Tense::Past { latest(weekday, today) } else { coming(weekday, today) }?;
        return Some((length, date, date));
    }
    let (count, rest) = chinese_number(text)?;
    for (unit_name, unit) in [("天", "days"), ("个星期", "weeks"), ("周", "weeks"), ("个月", "months"), ("年", "years")] {
        if let Some(after) = rest.strip_prefix(unit_name)
            && let Some(sign) = [("前", -1), ("后", 1)].iter().find(|(name, _)| after.starts_with(name)).map(|(_, sign)| *sign)
        {
            let date = shift(today, sign * count, unit)?;
            let (first, last) = if sign < 0 { around(date, unit)? } else { (date, date) };
            return Some((text.len() - after.len() + '前'.len_utf8(), first, last));
        }
    }
    let (year, month_text) = match rest.strip_prefix('年').filter(|_| (1900..=2200).contains(&count)) {
        Some(after) => (Some(i16::try_from(count).ok()?), after),
        None => (None, text),
    };
    let (month, after) = chinese_number(month_text)?;
    let (day, after) = chinese_number(after.strip_prefix('月')?)?;
    let after = after.strip_prefix(['日', '号'])?;
    let date = calendar_date(i8::try_from(day).ok()?, i8::try_from(month).ok()?, year, today, tense)?;
    Some((text.len() - after.len(), date, date))
}

fn chinese_weekday(c: char) -> Option<Weekday> {
    Some(match c {
        '一' => Weekday::Monday,
        '二' => Weekday::Tuesday,
        '三' => Weekday::Wednesday,
        '四' => Weekday::Thursday,
        '五' => Weekday::Friday,
        '六' => Weekday::Saturday,
        '日' | '天' => Weekday::Sunday,
        _ => return None,
    })
}

/// Returns the number (up to 9999 in digits, up to 99 in words) that a text begins with, and the rest.
fn chinese_number(text: &str) -> Option<(i32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        return (digits <= 4).then(|| text[..digits].parse().ok().map(|number| (number, &text[digits..]))).flatten();
    }
    let digit = |c: char| "一二三四五六七八九".chars().position(|known| known == c).map(|place| place as i32 + 1).or((c == '两').then_some(2));
    let mut rest = text.chars();
    let first = rest.next()?;
    let (number, rest) = if first == '十' { (10, rest.as_str()) } else { (digit(first)?, rest.as_str()) };
    let (number, rest) = match rest.strip_prefix('十') {
        Some(after) if number < 10 => (number * 10, after),
        _ => (number, rest),
    };
    match rest.chars().next().and_then(digit).filter(|_| number >= 10) {
        Some(units) => Some((number + units, &rest['一'.len_utf8()..])),
        None => Some((number, rest)),
    }
}

fn number(word: &str) -> Option<i32> {
    const WORDS: &[&str] = &["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    match word {
        "a" | "an" => Some(1),
        _ => word.parse().ok().filter(|number| (0..=1000).contains(number)).or_else(|| WORDS.iter().position(|known| *known == word).map(|place| place as i32)),
    }
}

fn ordinal(word: &str) -> Option<i8> {
    let digits = word.trim_end_matches(['s', 't', 'n', 'd', 'r', 'h']);
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

fn calendar_year(word: &str) -> Option<i16> {
    word.parse().ok().filter(|year| (1900..=2200).contains(year) && word.len() == 4)
}

fn month(word: &str) -> Option<i8> {
    const MONTHS: &[&str] = &["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];
    let place = MONTHS.iter().position(|month| *month == word || (word.len() == 3 && month.starts_with(word)) || (word == "sept" && *month == "september"))?;
    i8::try_from(place + 1).ok()
}

fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" => Weekday::Monday,
        "tuesday" => Weekday::Tuesday,
        "wednesday" => Weekday::Wednesday,
        "thursday" => Weekday::Thursday,
        "friday" => Weekday::Friday,
        "saturday" => Weekday::Saturday,
        "sunday" => Weekday::Sunday,
        _ => return None,
    })
}

fn shift_days(date: Date, days: i32) -> Option<Date> {
    date.checked_add(days.days()).ok()
}

fn shift(date: Date, count: i32, unit: &str) -> Option<Date> {
    match unit {
        "day" | "days" => date.checked_add(count.days()).ok(),
        "week" | "weeks" => date.checked_add(count.weeks()).ok(),
        "month" | "months" => date.checked_add(count.months()).ok(),
        "year" | "years" => date.checked_add(count.years()).ok(),
        _ => None,
    }
}

/// Returns the days that somebody means who counts back in `unit`: three years ago was a year, not a day.
fn around(date: Date, unit: &str) -> Option<(Date, Date)> {
    match unit.trim_end_matches('s') {
        "day" => Some((date, date)),
        unit => period(unit, 0, date),
    }
}

/// Returns the first and last day of the week, weekend, month or year that is `step` from today's.
fn period(unit: &str, step: i32, today: Date) -> Option<(Date, Date)> {
    let monday = shift_days(today, 7 * step - i32::from(today.weekday().to_monday_zero_offset()))?;
    match unit {
        "week" => Some((monday, shift_days(monday, 6)?)),
        "weekend" => Some((shift_days(monday, 5)?, shift_days(monday, 6)?)),
        "month" => {
            let first = today.first_of_month().checked_add(step.months()).ok()?;
            Some((first, first.last_of_month()))
        }
        "year" => {
            let first = today.first_of_year().checked_add(step.years()).ok()?;
            Some((first, first.last_of_year()))
        }
        _ => None,
    }
}

/// Returns the weekday of the week (Monday first) that is `step` from today's.
fn in_week(weekday: Weekday, step: i32, today: Date) -> Option<Date> {
    let (monday, _) = period("week", step, today)?;
    shift_days(monday, i32::from(weekday.to_monday_zero_offset()))
}

/// Returns the latest such day before today.
fn latest(weekday: Weekday, today: Date) -> Option<Date> {
    (1..=7).filter_map(|days| shift_days(today, -days)).find(|date| date.weekday() == weekday)
}

/// Returns the first such day from today on.
fn coming(weekday: Weekday, today: Date) -> Option<Date> {
    (0..7).filter_map(|days| shift_days(today, days)).find(|date| date.weekday() == weekday)
}

/// Returns a date; without a year, the latest one up to today or the first one from today on.
fn calendar_date(day: i8, month: i8, year: Option<i16>, today: Date, tense: Tense) -> Option<Date> {
    if let Some(year) = year {
        return Date::new(year, month, day).ok();
    }
    let years = if tense == Tense::Past { [today.year(), today.year() - 1] } else { [today.year(), today.year() + 1] };
    let fits = |date: &Date| if tense == Tense::Past { *date <= today } else { *date >= today };
    years.into_iter().filter_map(|year| Date::new(year, month, day).ok()).find(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    // A Wednesday.
    const TODAY: Date = jiff::civil::date(2026, 5, 13);

    fn shown(found: Option<Dated>) -> String {
        found
            .map_or_else(|| "none".into(), |dated| if dated.first == dated.last { dated.first.to_string() } else { format!("{}..{}", dated.first, dated.last) })
    }

    #[test]
    fn english_dates() {
        for (text, tense, date) in [
            ("i went there yesterday", Tense::Past, "2026-05-12"),
            ("the day before yesterday i slept", Tense::Past, "2026-05-11"),
            ("i fly tomorrow", Tense::Future, "2026-05-14"),
            ("i was ill last week", Tense::Past, "2026-05-04..2026-05-10"),
            ("next weekend we hike", Tense::Future, "2026-05-23..2026-05-24"),
            ("last friday", Tense::Past, "2026-05-08"),
            ("next wednesday", Tense::Future, "2026-05-20"),
            ("on monday i started", Tense::Past, "2026-05-11"),
            ("on monday i start", Tense::Future, "2026-05-18"),
            ("three days ago", Tense::Past, "2026-05-10"),
            ("a month ago", Tense::Past, "2026-04-01..2026-04-30"),
            ("five years ago", Tense::Past, "2021-01-01..2021-12-31"),
            ("in a week from 3 march", Tense::Past, "2026-03-03"),
            ("in 2 weeks", Tense::Future, "2026-05-27"),
            ("on 3 may", Tense::Past, "2026-05-03"),
            ("on june 1st, 2025 i left", Tense::Past, "2025-06-01"),
            ("on the 2nd of january", Tense::Future, "2027-01-02"),
            ("on 2026-02-03", Tense::Past, "2026-02-03"),
            ("in 5 files", Tense::Past, "none"),
            ("version 2026", Tense::Past, "none"),
            ("i may go", Tense::Future, "none"),
            ("on time", Tense::Past, "none"),
            ("on 31 february", Tense::Past, "none"),
        ] {
            assert_eq!(shown(english(text, TODAY, tense)), date, "{text}");
        }
    }

    #[test]
    fn chinese_dates() {
        for (text, tense, date) in [
            ("我昨天去了医院", Tense::Past, "2026-05-12"),
            ("大后天出发", Tense::Future, "2026-05-16"),
            ("下周三开会", Tense::Future, "2026-05-20"),
            ("上个星期天", Tense::Past, "2026-05-10"),
            ("这周末", Tense::Future, "2026-05-16..2026-05-17"),
            ("上周", Tense::Past, "2026-05-04..2026-05-10"),
            ("周五考试", Tense::Future, "2026-05-15"),
            ("三天前", Tense::Past, "2026-05-10"),
            ("两周后", Tense::Future, "2026-05-27"),
            ("5月3日", Tense::Past, "2026-05-03"),
            ("2025年十二月二十一号", Tense::Past, "2025-12-21"),
            ("去年", Tense::Past, "2025-01-01..2025-12-31"),
            ("今年30岁", Tense::Past, "none"),
            ("周到的服务", Tense::Past, "none"),
            ("三天", Tense::Past, "none"),
            ("一周一次", Tense::Past, "none"),
            ("每周一开会", Tense::Future, "none"),
            ("每天跑步", Tense::Future, "none"),
        ] {
            assert_eq!(shown(chinese(text, TODAY, tense)), date, "{text}");
        }
    }
}
