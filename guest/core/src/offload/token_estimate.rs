//! Token counts without a tokenizer: an estimate by script and content class.
//!
//! Byte-pair tokenizers cut text into pieces first (words, digit groups, runs of marks, breaks,
//! indents) and seldom join across them, so counting pieces is enough for budgets. The weights were
//! fitted on half of fourteen recorded agent sessions and on Chinese chat against o200k_base; the
//! error on the other half is in `docs/offload.md`. A host that reports real usage calibrates the
//! rest through [`Calibration`].

/// Weights in thousandths of a token. One a piece unless the name says otherwise.
const WORD: u64 = 1_150;
/// A word that touches a digit (`a3f`, `utf8`): half of a piece that is counted as digits already.
const WORD_BY_DIGIT: u64 = 320;
/// A change from lower to upper case inside a word.
const HUMP: u64 = 795;
/// A group of up to three digits.
const DIGITS: u64 = 1_770;
const MARKS: u64 = 575;
/// Each mark after the first of a run.
const MARK_TAIL: u64 = 80;
const LINE_BREAK: u64 = 714;
/// Two or more blanks, or blanks after a line break.
const INDENT: u64 = 1_320;
/// A character of the CJK, kana and hangul blocks.
const WIDE: u64 = 820;
/// A character of any other script beyond ASCII.
const OTHER: u64 = 355;

/// Tokens that a message costs beside its text (role marks and separators of chat formats).
pub const MESSAGE_OVERHEAD_TOKENS: u64 = 4;

/// Returns the estimated number of tokens in `text`. Runs in linear time.
pub fn estimate(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let class = |at: usize| CLASSES[bytes[at] as usize];
    let mut sum = 0_u64;
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match class(at) {
            Class::Letter => {
                at += 1;
                while at < bytes.len() && class(at) == Class::Letter {
                    if bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase() {
                        sum += HUMP;
                    }
                    at += 1;
                }
                let by_digit = (start > 0 && class(start - 1) == Class::Digit) || (at < bytes.len() && class(at) == Class::Digit);
                sum += if by_digit { WORD_BY_DIGIT } else { WORD };
            }
            Class::Digit => {
                while at < bytes.len() && class(at) == Class::Digit {
                    at += 1;
                }
                sum += DIGITS * (at - start).div_ceil(3) as u64;
            }
            Class::Blank => {
                let mut broke = false;
                while at < bytes.len() && class(at) == Class::Blank {
                    broke |= bytes[at] == b'\n';
                    at += 1;
                }
                if broke {
                    sum += LINE_BREAK;
                }
                let indented = if broke { bytes[at - 1] != b'\n' && at - start > 2 } else { at - start > 1 || bytes[start] == b'\t' };
                if indented {
                    sum += INDENT;
                }
            }
            Class::Mark => {
                while at < bytes.len() && class(at) == Class::Mark {
                    at += 1;
                }
                sum += MARKS + MARK_TAIL * (at - start - 1) as u64;
            }
            Class::Lead => {
                let lead = bytes[at];
                // E3..EE lead the CJK, kana and hangul blocks in UTF-8.
                sum += if (0xE3..0xEF).contains(&lead) { WIDE } else { OTHER };
                at += match lead {
                    0xF0.. => 4,
                    0xE0.. => 3,
                    _ => 2,
                };
            }
        }
    }
    sum.div_ceil(1_000)
}

/// A model's correction of the estimate, learned from the usage that hosts report.
///
/// Kept as sums, so that the same reports in any order give the same factor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calibration {
    /// Sum of what hosts reported.
    pub reported_tokens: u64,
    /// Sum of what was estimated for the same prompts.
    pub estimated_tokens: u64,
}

/// The factor stays within these bounds, in thousandths: a report outside them is about another
/// prompt than the one that was estimated.
const CALIBRATION_MILLI: std::ops::RangeInclusive<u64> = 500..=2_000;
/// Reports are halved beyond this sum, so that a changed tokenizer is learned within some calls.
const CALIBRATION_MEMORY_TOKENS: u64 = 2_000_000;

impl Calibration {
    /// Takes one report in: the host's count of a prompt that was estimated at `estimated_tokens`.
    /// Reports that are off by more than a factor of two are not taken.
    pub fn report(&mut self, reported_tokens: u64, estimated_tokens: u64) {
        if estimated_tokens == 0 {
            return;
        }
        let milli = reported_tokens.saturating_mul(1_000) / estimated_tokens;
        if !CALIBRATION_MILLI.contains(&milli) {
            return;
        }
        self.reported_tokens += reported_tokens;
        self.estimated_tokens += estimated_tokens;
        if self.estimated_tokens > CALIBRATION_MEMORY_TOKENS {
            self.reported_tokens /= 2;
            self.estimated_tokens /= 2;
        }
    }

    /// Returns `estimated` corrected by what was reported so far.
    pub fn apply(&self, estimated: u64) -> u64 {
        if self.estimated_tokens == 0 {
            return estimated;
        }
        let product = u128::from(estimated) * u128::from(self.reported_tokens);
        u64::try_from(product / u128::from(self.estimated_tokens)).unwrap_or(u64::MAX)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Blank,
    Mark,
    /// The first byte of a character beyond ASCII.
    Lead,
}

static CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut table = [Class::Mark; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        table[at] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b' ' | b'\n' | b'\r' | b'\t' => Class::Blank,
            0x80.. => Class::Lead,
            _ => Class::Mark,
        };
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_code_and_chinese_are_near_the_real_tokenizer() {
        // Counts by o200k_base.
        let cases = [
            ("The quick brown fox jumps over the lazy dog.", 10),
            ("fn main() {\n    println!(\"hello {}\", name);\n}\n", 16),
            ("今天天气很好，我们去公园散步吧。", 12),
        ];
        for (text, real) in cases {
            let estimated = estimate(text);
            assert!(estimated.abs_diff(real) <= real / 2, "{text}: {estimated} for {real}");
        }
        assert_eq!(estimate(""), 0);
    }

    #[test]
    fn calibration_follows_reports_and_ignores_absurd_ones() {
        let mut calibration = Calibration::default();
        assert_eq!(calibration.apply(100), 100);
        calibration.report(1_200, 1_000);
        calibration.report(50_000, 1_000);
        assert_eq!(calibration.apply(100), 120);
    }
}
