//! The question about the persona.

use super::{MAX_PERSONA_CHARS, MAX_SCENE_TEXT, Trigger};
use crate::calendar::Calendar;
use crate::contract::{Instant, Result};
use crate::l2::{self, Fact};
use crate::pages::Page;
use rusqlite::Connection;
use serde_json::json;

/// The system prompt.
pub(super) const SYSTEM: &str = include_str!("../../prompts/l3-persona.md");

/// What the question is made of.
pub(super) struct Input<'a> {
    pub now: Instant,
    pub calendar: &'a Calendar,
    pub trigger: Option<Trigger>,
    pub persona: Option<&'a Page>,
    pub scenes: &'a [Page],
    pub instructions: &'a [Fact],
    pub problem: &'a str,
}

/// Returns the user prompt.
pub(super) fn build(db: &Connection, input: &Input<'_>) -> Result<String> {
    let mut prompt = format!("Now: {}\nWhy now: {}\n\n## The profile\n\n", input.calendar.iso(input.now), input.trigger.map_or("", Trigger::word));
    match input.persona {
        Some(persona) if !persona.body.trim().is_empty() => {
            prompt.push_str(&persona.body);
            prompt.push('\n');
            for hand in &persona.hand {
                prompt.push_str(&format!("\nWritten by hand, kept as it is: {}\n", json!(hand)));
            }
        }
        _ => prompt.push_str("There is none yet.\n"),
    }
    if let Some(persona) = input.persona {
        for atom in l2::struck(db, persona)? {
            prompt.push_str(&format!("\nStruck by the user, not to be stated: {atom}\n"));
        }
    }
    prompt.push_str("\n## Pages that changed\n");
    let mut room = MAX_SCENE_TEXT;
    for scene in input.scenes {
        if scene.body.len() > room {
            prompt.push_str(&format!("\n### {} (only its summary)\n\n{}\n", scene.file(), scene.summary));
            continue;
        }
        room -= scene.body.len();
        prompt.push_str(&format!("\n### {} (updated {})\n\n{}\n", scene.file(), input.calendar.iso(scene.updated_at), scene.body));
    }
    prompt.push_str("\n## Standing instructions\n\n");
    for fact in input.instructions {
        prompt.push_str(&format!("{}\n", json!({"id": fact.uid, "text": fact.text, "priority": fact.priority})));
    }
    prompt.push_str(&format!("\n## Limits\n\n- The profile has at most {MAX_PERSONA_CHARS} characters, headings, ids and hand-written lines included.\n"));
    if !input.problem.is_empty() {
        prompt.push_str(&format!("\n## Your last answer was refused\n\n{}\n", input.problem));
    }
    Ok(prompt)
}
