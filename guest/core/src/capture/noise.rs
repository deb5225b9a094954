//! Noise: messages that are not kept at all, and messages that are kept but not distilled.
//!
//! The rules are the reference system's, each narrowed so that it hits what hosts write and not
//! what people write about it.

/// First words of the root directories of Unix: `/tmp is full` is a sentence, not a command.
const ROOT_DIRECTORIES: &[&str] =
    &["bin", "boot", "data", "dev", "etc", "home", "lib", "media", "mnt", "opt", "proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var"];

/// Most symbols that a message of nothing but symbols may have to say nothing.
const MAX_SYMBOLS: usize = 5;

/// Returns why a cleaned message is not kept, if it is not.
pub fn drop_reason(role: &str, text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("empty");
    }
    match role {
        // The host's system prompt: said by nobody, and again with every turn.
        "system" => Some("system-prompt"),
        "assistant" if matches!(text, "NO_REPLY" | "HEARTBEAT_OK") => Some("silent-reply"),
        "user" if is_command(text) => Some("command"),
        _ if text == "(session bootstrap)" => Some("session-start"),
        _ if text.starts_with("A new session was started via") || text.starts_with("✅ New session started") => Some("session-start"),
        _ if text.starts_with("Pre-compaction memory flush") => Some("memory-flush"),
        "user" if text.starts_with("Read HEARTBEAT.md if it exists") => Some("heartbeat"),
        _ => None,
    }
}

/// Returns whether a kept message may be distilled into atoms.
pub fn is_worth_distilling(text: &str) -> bool {
    let mut symbols = 0;
    let mut only_questions = true;
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        if c.is_alphanumeric() {
            return true;
        }
        symbols += 1;
        only_questions &= matches!(c, '?' | '？');
    }
    symbols > MAX_SYMBOLS && !only_questions
}

/// Returns whether the text is a command to the host: `/new`, `/model fast`; not a path.
fn is_command(text: &str) -> bool {
    let Some(first) = text.strip_prefix('/').and_then(|rest| rest.split(char::is_whitespace).next()) else { return false };
    first.starts_with(|c: char| c.is_ascii_alphabetic())
        && first.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-:@".contains(&b))
        && !ROOT_DIRECTORIES.contains(&first)
}

/// Returns why nothing of a session is kept, if it is one of the host's own or an excluded agent's.
pub fn session_reason(session: &str, agent: &str, excluded: &[String]) -> Option<&'static str> {
    if session.starts_with("temp:") || session.starts_with("memory-") || session.contains(":memory-scene-extract-") {
        return Some("internal-session");
    }
    if session.contains(":subagent:") {
        return Some("subagent-session");
    }
    if session.contains(":cron:") || session.contains(":heartbeat:") {
        return Some("scheduled-session");
    }
    excluded.iter().any(|glob| matches_glob(glob, agent)).then_some("excluded-agent")
}

/// Returns whether `name` matches `glob`, where `*` is any text and `?` any character.
fn matches_glob(glob: &str, name: &str) -> bool {
    let (glob, name): (Vec<char>, Vec<char>) = (glob.chars().collect(), name.chars().collect());
    // The classic two-pointer walk: on a mismatch the last star takes one character more.
    let (mut g, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match glob.get(g) {
            Some('*') => {
                star = Some((g, n));
                g += 1;
            }
            Some(&c) if c == '?' || c == name[n] => {
                g += 1;
                n += 1;
            }
            _ => match star {
                Some((star_g, star_n)) => {
                    g = star_g + 1;
                    n = star_n + 1;
                    star = Some((star_g, star_n + 1));
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_go() {
        for (role, text, reason) in [
            ("user", "", "empty"),
            ("system", "You are helpful", "system-prompt"),
            ("user", "/new", "command"),
            ("user", "/model fast", "command"),
            ("user", "/skill:review now", "command"),
            ("assistant", "NO_REPLY", "silent-reply"),
            ("assistant", "HEARTBEAT_OK", "silent-reply"),
            ("user", "(session bootstrap)", "session-start"),
            ("user", "A new session was started via /new or /reset. Greet the user.", "session-start"),
            ("assistant", "✅ New session started · model: x", "session-start"),
            ("user", "Pre-compaction memory flush. Store durable memories now.", "memory-flush"),
            ("user", "Read HEARTBEAT.md if it exists (workspace context). Follow it strictly.", "heartbeat"),
        ] {
            assert_eq!(drop_reason(role, text), Some(reason), "{text}");
        }
    }

    #[test]
    fn what_must_stay() {
        for (role, text) in [
            ("user", "/etc/hosts is broken"),
            ("user", "/tmp is full, what now?"),
            ("user", "/ is the root"),
            ("user", "/10 would not recommend"),
            ("assistant", "/new starts a session"),
            ("user", "NO_REPLY"),
            ("assistant", "Say NO_REPLY to stay silent"),
            ("user", "What is HEARTBEAT.md for?"),
            ("user", "My heartbeat is 60"),
            ("user", "Why did it say: A new session was started via /new?"),
            ("tool", "ok"),
            ("user", "👍"),
        ] {
            assert_eq!(drop_reason(role, text), None, "{text}");
        }
    }

    #[test]
    fn worth_in_both_directions() {
        for noise in ["?", "？？？？？？？", "!!!", "👍", "...", "🎉🎉"] {
            assert!(!is_worth_distilling(noise), "{noise}");
        }
        for said in ["no", "好", "5", "a?", "why???", "¯\\_(ツ)_/¯", "!?!?!?"] {
            assert!(is_worth_distilling(said), "{said}");
        }
    }

    #[test]
    fn sessions_in_both_directions() {
        for (session, reason) in [
            ("agent:main:subagent:1", "subagent-session"),
            ("temp:x", "internal-session"),
            ("memory-abc", "internal-session"),
            ("x:memory-scene-extract-1", "internal-session"),
            ("agent:main:cron:daily", "scheduled-session"),
            ("agent:main:heartbeat:1", "scheduled-session"),
        ] {
            assert_eq!(session_reason(session, "main", &[]), Some(reason));
        }
        for session in ["agent:main:main", "temperature", "my memory-test", "cron jobs", "agent:main:telegram:direct:1"] {
            assert_eq!(session_reason(session, "main", &[]), None, "{session}");
        }
        let globs = ["bench-*".to_owned(), "b?t".to_owned()];
        assert_eq!(session_reason("s", "bench-1", &globs), Some("excluded-agent"));
        assert_eq!(session_reason("s", "bot", &globs), Some("excluded-agent"));
        assert_eq!(session_reason("s", "boot", &globs), None);
        assert_eq!(session_reason("s", "my-bench-1", &globs), None);
    }
}
