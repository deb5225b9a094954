//! `strata demo`: the main job, from a conversation to a prompt and back to the words.

use super::{browse, trace};
use crate::cli::exit::Exit;
use crate::cli::options::Settings;
use crate::cli::terminal::{self, Terminal};
use crate::cli::{clock, open};
use crate::import::{self, Format, Message, Problem, Sink, Source};
use anyhow::{Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use std::time::Instant;
use strata_host::Space;
use strata_host::contract::{self, EndEvent, Injection, PromptEvent, Scope, Selector};

/// The conversation, so that the command works wherever the program is.
const CONVERSATION: &str = include_str!("../../../../examples/lena.md");
const CONVERSATION_NAME: &str = "examples/lena.md";

/// What the new session asks. It needs what was said weeks apart and never together.
const QUESTION: &str = "My mother and I want to go out for dinner on Saturday. Where should I book, and when can Teresa call about the cello?";

/// Memories shown.
const SHOWN: usize = 8;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strata demo                                       needs no key, no network, and leaves nothing behind
  strata demo --ask \"which strings do I like?\"
  strata demo --data ./demo-memory                  keeps the memory, to look around with the other commands
  STRATA_LLM_URL=http://localhost:11434/v1 STRATA_LLM_MODEL=qwen3 strata demo")]
pub(crate) struct Demo {
    /// What the new session asks
    #[arg(long, value_name = "PROMPT", default_value = QUESTION, hide_default_value = true)]
    ask: String,
}

impl Demo {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let mut settings = settings.clone();
        // Only a directory named on the command line is written to: a demonstration must not end up in somebody's memory.
        let scratch = if settings.data_named { None } else { Some(tempfile::Builder::new().prefix("strata-demo-").tempdir()?) };
        if let Some(scratch) = &scratch {
            settings.data = scratch.path().to_owned();
        }
        settings.scope = Scope::default();
        let space = open::work(&settings)?;

        let read = store(&space, &settings, terminal)?;
        let memories = distil(&space, &settings, terminal)?;
        let injection = ask(&space, &self.ask, terminal)?;
        let traced = trace_one(&space, &injection, terminal)?;
        space.close()?;

        if terminal.json {
            terminal.document(&json!({"messages": read, "atoms": memories, "ask": self.ask, "injection": injection, "trace": traced}));
        } else {
            farewell(&settings, scratch.is_some(), terminal);
        }
        Ok(Exit::Done)
    }
}

/// Step one: the conversation is stored, word by word.
fn store(space: &Space, settings: &Settings, terminal: &Terminal) -> Result<u64> {
    let mut conversation = Conversation::default();
    import::read(Format::Markdown, &mut Source::of_text(CONVERSATION_NAME, CONVERSATION), &mut conversation)?;
    ensure!(conversation.problems == 0, "{CONVERSATION_NAME} cannot be read whole");
    let started = Instant::now();
    let mut stored = 0;
    for (session, messages) in &conversation.sessions {
        let scope = Scope { session: session.clone(), ..settings.scope.clone() };
        let report = space.agent_end(EndEvent { scope, messages: messages.clone(), success: true, at: strata_host::now() })?;
        stored += report.stored.len() as u64 + u64::from(report.known);
    }
    if terminal.json {
        return Ok(stored);
    }
    let times = || conversation.sessions.iter().flat_map(|(_, messages)| messages).filter_map(|message| message.said_at);
    let span = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    terminal.heading("1  Everything that was said is kept");
    terminal.remark(
        "   ",
        &format!(
            "Lena, a violin maker in Porto, talked with her assistant in {} sessions from {} to {}. The agent tells Strata what was said after each \
             turn; on return it is on disk.",
            conversation.sessions.len(),
            clock::people(span.0, &settings.zone).get(..10).unwrap_or_default(),
            clock::people(span.1, &settings.zone).get(..10).unwrap_or_default(),
        ),
    );
    terminal.line("");
    terminal.line(format!("   {} messages in {:.0} ms", terminal::strong().apply_to(stored), started.elapsed().as_secs_f64() * 1000.0));
    Ok(stored)
}

/// Step two: memories are made of it, each with its grounds.
fn distil(space: &Space, settings: &Settings, terminal: &Terminal) -> Result<Vec<Value>> {
    let started = Instant::now();
    open::finish(space, settings, terminal)?;
    let took = started.elapsed();
    let atoms = browse::rows(space, "atoms", &Selector::default(), u32::MAX)?;
    if terminal.json {
        return Ok(atoms);
    }
    let current: Vec<&Value> = atoms.iter().filter(|atom| atom["believed-to"].is_null()).collect();
    let by = settings.config.llm.as_ref().map_or("by rules, since no model is configured".to_owned(), |llm| format!("by {}", llm.model));
    terminal.heading("2  What follows from it is remembered, with its grounds");
    terminal.remark("   ", &format!("{} memories, made {by}, in {:.1} s. Some of them:", current.len(), took.as_secs_f64()));
    for atom in telling(&current) {
        terminal.line("");
        let marks = format!("{} · {}", atom["kind"].as_str().unwrap_or_default(), atom["id"].as_str().unwrap_or_default());
        terminal.text("   ", atom["text"].as_str().unwrap_or_default());
        terminal.line(format!("   {}", terminal::faint().apply_to(marks)));
        let found = open::document(space.trace(atom["id"].as_str().unwrap_or_default().into()))?;
        if let Some(ground) = found["rests-on"].get(0) {
            terminal.remark("   ", &format!("because {} said on {}: “{}”", who(ground), day(ground), quote(ground)));
        }
    }
    changed_mind(space, &atoms, terminal)?;
    Ok(atoms)
}

/// Returns memories of each kind in turn, the most important first, so that a few show the range.
fn telling<'a>(atoms: &[&'a Value]) -> Vec<&'a Value> {
    let mut kinds: Vec<Vec<&Value>> = ["instruction", "persona", "episodic"]
        .iter()
        .map(|kind| {
            let mut of_kind: Vec<&Value> = atoms.iter().copied().filter(|atom| atom["kind"] == *kind).collect();
            of_kind.sort_by_key(|atom| std::cmp::Reverse(atom["priority"].as_i64().map(|priority| if priority < 0 { 101 } else { priority })));
            of_kind.reverse();
            of_kind
        })
        .collect();
    let mut chosen = Vec::new();
    while chosen.len() < SHOWN && kinds.iter().any(|kind| !kind.is_empty()) {
        for kind in &mut kinds {
            chosen.extend(kind.pop());
        }
    }
    chosen.truncate(SHOWN);
    chosen
}

/// Shows a memory that another took the place of, if there is one.
fn changed_mind(space: &Space, atoms: &[Value], terminal: &Terminal) -> Result<()> {
    for old in atoms.iter().filter(|atom| !atom["believed-to"].is_null()) {
        let found = open::document(space.trace(old["id"].as_str().unwrap_or_default().into()))?;
        let words = |atom: &Value| atom["text"].as_str().unwrap_or_default().trim_end_matches(['.', '。']).to_owned();
        // The same thing said in fewer words is no change of mind.
        if let Some(new) = found["replaced-by"].get(0).filter(|new| !words(old).contains(&words(new)) && !words(new).contains(&words(old))) {
            terminal.heading("   A changed mind replaces, it does not erase");
            terminal.led("   was  ", old["text"].as_str().unwrap_or_default());
            terminal.led("   now  ", new["text"].as_str().unwrap_or_default());
            break;
        }
    }
    Ok(())
}

/// Step three: a new session asks, and gets what fits.
fn ask(space: &Space, question: &str, terminal: &Terminal) -> Result<Injection> {
    let scope = Scope { session: "a-new-session".into(), ..Scope::default() };
    let started = Instant::now();
    let injection = space.before_prompt_build(PromptEvent { scope, prompt: question.into(), at: strata_host::now(), ..PromptEvent::default() })?;
    if terminal.json {
        return Ok(injection);
    }
    terminal.heading("3  A new session asks");
    terminal.led("   Lena: ", question);
    terminal.line("");
    terminal.remark("   ", &format!("Found in {:.1} ms. This exact text enters the prompt", started.elapsed().as_secs_f64() * 1000.0));
    for (title, text) in [("at the end of the system prompt:", &injection.stable), ("beside what Lena wrote:", &injection.dynamic)] {
        if !text.trim().is_empty() {
            terminal.line("");
            terminal.remark("   ", title);
            terminal.quoted(text.trim_end());
        }
    }
    Ok(injection)
}

/// Step four: one line of it, back to the words.
fn trace_one(space: &Space, injection: &Injection, terminal: &Terminal) -> Result<Value> {
    let Some(id) = injection.recalled.first() else { return Ok(Value::Null) };
    let found = open::document(space.trace(id.clone()))?;
    if !terminal.json {
        terminal.heading("4  And every line leads back to what was said");
        terminal.line(format!("   {} strata trace {id}", terminal::faint().apply_to("$")));
        terminal.line("");
        trace::print(&found, terminal);
    }
    Ok(found)
}

fn farewell(settings: &Settings, gone: bool, terminal: &Terminal) {
    terminal.heading("Now with your own conversations");
    let data = if gone { String::new() } else { format!(" --data {}", settings.data.display()) };
    for (command, what) in [
        ("import conversations.json".to_owned(), "a ChatGPT, Claude, OpenClaw or Markdown history"),
        (format!("recall{data} \"what do I like?\""), "what would enter a prompt"),
        (format!("search{data} cello"), "look around"),
        (format!("status{data}"), "what is stored, what waits"),
    ] {
        terminal.line(format!("   strata {command:<36} {}", terminal::faint().apply_to(what)));
    }
    if settings.config.llm.is_none() {
        terminal.line("");
        terminal.remark("   ", "Rules find what is said plainly. A model finds more: set STRATA_LLM_URL to any OpenAI-compatible endpoint.");
    }
}

fn who(message: &Value) -> &str {
    message["speaker"].as_str().or_else(|| message["role"].as_str()).unwrap_or("someone")
}

fn day(message: &Value) -> &str {
    message["said-at"].as_str().and_then(|at| at.get(..10)).unwrap_or_default()
}

fn quote(message: &Value) -> &str {
    let text = |member: &str| message[member].as_str().filter(|text| !text.is_empty());
    text("quote").or_else(|| text("text")).unwrap_or_default()
}

/// Collects the conversation by session.
#[derive(Default)]
struct Conversation {
    sessions: Vec<(String, Vec<contract::Message>)>,
    problems: u32,
}

impl Sink for Conversation {
    fn message(&mut self, message: Message) -> Result<()> {
        let said = contract::Message {
            id: Some(message.id),
            role: message.role,
            speaker: message.speaker,
            content: message.content,
            structured: message.structured,
            said_at: message.said_at,
        };
        match self.sessions.last_mut().filter(|(session, _)| *session == message.session) {
            Some((_, messages)) => messages.push(said),
            None => self.sessions.push((message.session, vec![said])),
        }
        Ok(())
    }

    fn record(&mut self, _record: Value) -> Result<()> {
        Ok(())
    }

    fn problem(&mut self, _problem: Problem) {
        self.problems += 1;
    }

    fn aside(&mut self, _reason: &str) {}
}
