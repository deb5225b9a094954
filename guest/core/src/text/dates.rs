//! Dates that a query names, so that they can be held against the times of messages.

use std::ops::Range;

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// Days after a named day within which what is said is likely to be about it; half of the credit goes
/// to days before it, for plans.
const NEAR_DAYS: i64 = 14;

/// A date as named; what is not named is `None`, but something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    year: Option<i64>,
    month: Option<u32>,
    day: Option<u32>,
}

const MONTHS: [&str; 12] = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];

/// Words before a month's name that make it a month: `may` alone is a verb.
const BEFORE_MONTH: &[&str] = &["in", "of", "during", "since", "until", "by", "last", "this", "next", "early", "late", "mid"];

/// Returns the dates that `text` names, and where they stand, in bytes.
pub fn find(text: &str) -> Vec<(Named, Range<usize>)> {
    let pieces = pieces(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < pieces.len() {
        match read(&pieces[at..]) {
            Some((named, first, count)) => {
                found.push((named, pieces[at + first].range.start..pieces[at + count - 1].range.end));
                at += count;
            }
            None => at += 1,
        }
    }
    found
}

/// Returns how well a time (milliseconds, UTC) fits the best of some named dates, 0 to 1.
pub fn fit(dates: &[Named], at_ms: u64) -> f32 {
    let days = at_ms as i64 / DAY_MS;
    let (year, month, _) = civil(days);
    dates.iter().map(|named| fit_one(*named, days, year, month)).fold(0.0, f32::max)
}

fn fit_one(named: Named, days: i64, year: i64, month: u32) -> f32 {
    let named_year = named.year.unwrap_or(year);
    match (named.month, named.day) {
        (None, _) => f32::from(year == named_year),
        (Some(named_month), None) => match (year - named_year) * 12 + i64::from(month) - i64::from(named_month) {
            0 => 1.0,
            // Told afterwards.
            1 => 0.5,
            _ => 0.0,
        },
        (Some(named_month), Some(named_day)) => match days - day_number(named_year, named_month, named_day) {
            0 => 1.0,
            after @ 1.. => (1.0 - after as f32 / NEAR_DAYS as f32).max(0.0),
            before => (0.5 + before as f32 / NEAR_DAYS as f32).max(0.0),
        },
    }
}

/// A word, a number or a mark of the text.
struct Piece<'a> {
    text: &'a str,
    range: Range<usize>,
    number: Option<i64>,
    month: Option<u32>,
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let class = |c: char| match c {
        c if c.is_ascii_digit() => 0,
        c if c.is_ascii_alphabetic() => 1,
        c if c.is_whitespace() => 2,
        _ => 3,
    };
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut indices = text.char_indices().peekable();
    while let Some((at, c)) = indices.next() {
        let end = at + c.len_utf8();
        if class(c) != 3 && indices.peek().is_some_and(|(_, next)| class(*next) == class(c)) {
            continue;
        }
        if class(c) != 2 {
            let piece = &text[start..end];
            let number = if piece.len() <= 4 { piece.parse().ok() } else { None };
            pieces.push(Piece { text: piece, range: start..end, number, month: month(piece) });
        }
        start = end;
    }
    pieces
}

fn month(word: &str) -> Option<u32> {
    let lower = word.to_ascii_lowercase();
    let index =
        MONTHS.iter().position(|name| *name == lower || (lower.len() == 3 && name.starts_with(&lower)) || (lower == "sept" && name.starts_with("sept")))?;
    Some(index as u32 + 1)
}

/// Reads a date at the beginning of some pieces: the date, its first piece, and how many were read.
fn read(pieces: &[Piece<'_>]) -> Option<(Named, usize, usize)> {
    let text = |at: usize| pieces.get(at).map_or("", |piece| piece.text);
    let number = |at: usize| pieces.get(at).and_then(|piece| piece.number);
    let year = |at: usize| number(at).filter(|year| (1900..2200).contains(year));
    let small = |at: usize, most: i64| number(at).filter(|number| (1..=most).contains(number)).map(|number| number as u32);
    let month = |at: usize| pieces.get(at).and_then(|piece| piece.month);
    let lower = |at: usize| text(at).to_ascii_lowercase();
    let is = |at: usize, words: &[&str]| words.contains(&text(at));
    let ordinal = |at: usize| usize::from(["st", "nd", "rd", "th"].contains(&lower(at).as_str()));
    let whole = |year, month, day, count| Some((Named { year, month, day }, 0, count));

    // 2024-03-15, 2024/3/15, 2024年3月15日, 2024年3月
    if let (Some(named_year), true, Some(named_month)) = (year(0), is(1, &["-", "/", "年"]), small(2, 12)) {
        if let (true, Some(day)) = (is(3, &["-", "/", "月"]), small(4, 31)) {
            return whole(Some(named_year), Some(named_month), Some(day), 5 + usize::from(is(5, &["日", "号"])));
        }
        if is(1, &["年"]) && is(3, &["月"]) {
            return whole(Some(named_year), Some(named_month), None, 4);
        }
    }
    // 3月15日
    if let (Some(named_month), true, Some(day), true) = (small(0, 12), is(1, &["月"]), small(2, 31), is(3, &["日", "号"])) {
        return whole(None, Some(named_month), Some(day), 4);
    }
    // 15 March 2024, 15th of March
    if let Some(day) = small(0, 31) {
        let after = 1 + ordinal(1);
        let after = after + usize::from(lower(after) == "of");
        if let Some(named_month) = month(after) {
            let comma = usize::from(is(after + 1, &[","]));
            return match year(after + 1 + comma) {
                Some(named_year) => whole(Some(named_year), Some(named_month), Some(day), after + 2 + comma),
                None => whole(None, Some(named_month), Some(day), after + 1),
            };
        }
    }
    // March 15, 2024; March 2024
    if let Some(named_month) = month(0) {
        if let Some(day) = small(1, 31) {
            let after = 2 + ordinal(2);
            let comma = usize::from(is(after, &[","]));
            return match year(after + comma) {
                Some(named_year) => whole(Some(named_year), Some(named_month), Some(day), after + comma + 1),
                None => whole(None, Some(named_month), Some(day), after),
            };
        }
        let after = 1 + usize::from(is(1, &[","]) || lower(1) == "of");
        if let Some(named_year) = year(after) {
            return whole(Some(named_year), Some(named_month), None, after + 1);
        }
    }
    // in March; in 2024. The first word stays in the query.
    if BEFORE_MONTH.contains(&lower(0).as_str()) {
        if let Some(named_month) = month(1) {
            let named_year = year(2).or_else(|| year(3).filter(|_| is(2, &[","])));
            let day = small(2, 31);
            if day.is_none() && named_year.is_none() {
                return Some((Named { year: None, month: Some(named_month), day: None }, 1, 2));
            }
        }
        if let (Some(named_year), true) = (year(1), ["in", "during"].contains(&lower(0).as_str())) {
            return Some((Named { year: Some(named_year), month: None, day: None }, 1, 2));
        }
    }
    None
}

/// Returns the days from 1970-01-01 to a date of the proleptic Gregorian calendar (Hinnant, `days_from_civil`).
fn day_number(year: i64, month: u32, day: u32) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = i64::from((153 * ((month + 9) % 12) + 2) / 5 + day - 1);
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns year, month and day of a day number (Hinnant, `civil_from_days`).
fn civil(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * shifted + 2) / 5 + 1) as u32;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 } as u32;
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::type_complexity)]
    fn check(text: &str, expected: &[(Option<i64>, Option<u32>, Option<u32>, &str)]) {
        let found: Vec<_> = find(text).into_iter().map(|(named, range)| (named.year, named.month, named.day, &text[range])).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn dates_of_queries() {
        check("What did I do on 25 May, 2022?", &[(Some(2022), Some(5), Some(25), "25 May, 2022")]);
        check("since March 3rd", &[(None, Some(3), Some(3), "March 3rd")]);
        check("Where was I in July 2022?", &[(Some(2022), Some(7), None, "July 2022")]);
        check("the second week of November", &[(None, Some(11), None, "November")]);
        check("who may come in 2023", &[(Some(2023), None, None, "2023")]);
        check("2024年4月1日和5月2号", &[(Some(2024), Some(4), Some(1), "2024年4月1日"), (None, Some(5), Some(2), "5月2号")]);
        check("on 2024-03-15 12:00", &[(Some(2024), Some(3), Some(15), "2024-03-15")]);
    }

    #[test]
    fn what_is_no_date() {
        for text in ["May I march on?", "version 5.3.0 has 12 items", "2024 things", "the mayor", "9月亮"] {
            check(text, &[]);
        }
    }

    #[test]
    fn nearer_days_fit_better() {
        let dates: Vec<Named> = find("on 15 March 2024").into_iter().map(|(named, _)| named).collect();
        let day = |day: i64| ((day_number(2024, 3, 15) + day) * DAY_MS) as u64;
        assert_eq!(fit(&dates, day(0)), 1.0);
        assert!(fit(&dates, day(1)) > fit(&dates, day(-1)));
        assert_eq!(fit(&dates, day(30)), 0.0);
        assert_eq!(civil(day_number(2024, 2, 29)), (2024, 2, 29));
    }
}
