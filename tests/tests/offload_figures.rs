//! What `assemble` costs in wasmtime, and how that grows. Opt-in: it wants a quiet machine.
//!
//! ```sh
//! cargo test --release -p strata-tests --features hosts --test offload_figures -- --ignored --nocapture
//! ```
#![allow(clippy::disallowed_methods)] // It measures time.

use serde_json::{Value, json};
use std::time::Instant;
use strata_host::contract::{AssembleRequest, Scope, ToolEvent};
use strata_host::{Clock, ComponentSource, Options, Runtime, Space};
use strata_tests::random_lists::Dice;

const NOW: u64 = 1_780_000_000_000;
/// 600 messages are about 400,000 tokens.
const SIZES: [usize; 4] = [600, 1_200, 3_000, 6_000];
const LINES_A_RESULT: u64 = 58;
const NEXT_CALLS: usize = 7;
const WINDOW_TOKENS: u32 = 200_000;
/// A user speaks before every so many calls.
const CALLS_A_TURN: usize = 12;

fn scope() -> Scope {
    Scope { session: "long".into(), ..Scope::default() }
}

/// A call with its result.
struct Step {
    id: String,
    arguments: String,
    output: String,
}

fn step(at: usize, dice: &mut Dice) -> Step {
    let file = format!("src/module{}/part{}.rs", dice.below(40), dice.below(300));
    let arguments = match at % 3 {
        0 => json!({"command": format!("rg -n value_{} {file}", dice.below(900))}),
        1 => json!({"command": format!("cargo test -p part{} --quiet", dice.below(30))}),
        _ => json!({"command": format!("cat {file}")}),
    };
    let lines = (0..LINES_A_RESULT).map(|line| match at % 3 {
        0 => format!("{file}:{}: let value_{} = compute(item_{}, {});\n", line * 7, dice.below(900), dice.below(900), dice.below(90_000)),
        1 => format!("test part{}::tests::case_{} ... {}\n", dice.below(30), dice.below(9_000), if dice.below(20) == 0 { "FAILED" } else { "ok" }),
        _ => format!("    pub fn method_{}(&self, index: usize) -> Option<u64> {{ self.values.get(index + {}) }}\n", dice.below(9_000), dice.below(99)),
    });
    Step { id: format!("call_{at}"), arguments: arguments.to_string(), output: lines.collect() }
}

struct Story {
    messages: Vec<Value>,
    steps: Vec<Step>,
}

impl Story {
    fn grow(&mut self, dice: &mut Dice) {
        let at = self.steps.len();
        if at.is_multiple_of(CALLS_A_TURN) {
            self.messages.push(json!({"role": "user", "content": format!("Now look at part {at} and say why its test fails.")}));
        }
        let next = step(at, dice);
        self.messages.push(json!({"role": "assistant", "content": format!("Step {at}: the value may come from part {}; looking into it.", dice.below(900)), "tool_calls": [{"id": next.id, "type": "function", "function": {"name": "bash", "arguments": next.arguments}}]}));
        self.messages.push(json!({"role": "tool", "tool_call_id": next.id, "content": next.output}));
        self.steps.push(next);
    }
}

fn tell(space: &Space, step: &Step) {
    let event = ToolEvent {
        scope: scope(),
        tool_call_id: step.id.clone(),
        tool_name: "bash".into(),
        arguments_json: step.arguments.clone(),
        output: step.output.clone(),
        at: NOW,
        ..ToolEvent::default()
    };
    space.after_tool_call(event).expect("stored");
}

/// Returns the milliseconds of one call, and the tokens before and after.
fn assemble(space: &Space, messages: &[Value]) -> (f64, u32, u32) {
    let request = AssembleRequest {
        scope: scope(),
        messages_json: Value::from(messages).to_string(),
        window_tokens: WINDOW_TOKENS,
        at: NOW,
        ..AssembleRequest::default()
    };
    let start = Instant::now();
    let reduced = space.assemble(request).expect("reduced");
    (start.elapsed().as_secs_f64() * 1_000.0, reduced.tokens_before, reduced.tokens_after)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
#[ignore = "a measurement; wants a quiet machine"]
fn assembling_is_fast_and_linear() {
    let runtime = Runtime::new(&ComponentSource::Embedded).expect("compiles");
    println!("| messages | tokens | after | first, results told before | next, median (worst) | first after reopening | first, nothing told before |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let mut grown: Vec<[f64; 4]> = Vec::new();
    for size in SIZES {
        let mut dice = Dice(7);
        let mut story = Story { messages: Vec::new(), steps: Vec::new() };
        while story.messages.len() < size {
            story.grow(&mut dice);
        }
        let options = || Options { clock: Clock::Manual { opened_at: NOW }, ..Options::default() };
        let directory = tempfile::tempdir().expect("temporary");
        let space = Space::open_with(&runtime, directory.path(), options()).expect("opens");
        let started = Instant::now();
        for step in &story.steps {
            tell(&space, step);
        }
        let told = started.elapsed().as_secs_f64() * 1_000.0 / story.steps.len() as f64;
        let (first, before, after) = assemble(&space, &story.messages);
        let mut next = Vec::new();
        for _ in 0..NEXT_CALLS {
            story.grow(&mut dice);
            tell(&space, story.steps.last().expect("just grown"));
            next.push(assemble(&space, &story.messages).0);
        }
        space.close().expect("closes");
        let space = Space::open_with(&runtime, directory.path(), options()).expect("opens");
        let (reopened, _, _) = assemble(&space, &story.messages);
        space.close().expect("closes");
        let fresh = tempfile::tempdir().expect("temporary");
        let space = Space::open_with(&runtime, fresh.path(), options()).expect("opens");
        let (untold, _, _) = assemble(&space, &story.messages);
        space.close().expect("closes");
        let worst = next.iter().copied().fold(0.0, f64::max);
        let next = median(next);
        println!("| {size} | {before} | {after} | {first:.1} ms | {next:.1} ms ({worst:.1}) | {reopened:.1} ms | {untold:.1} ms | (telling one: {told:.1} ms)");
        grown.push([first, next, reopened, untold]);
    }
    let (small, large) = (grown[0], grown[SIZES.len() - 1]);
    let ratios: Vec<String> = small.iter().zip(&large).map(|(small, large)| format!("{:.1}", large / small)).collect();
    println!("{} times the messages cost {} times the milliseconds", SIZES[SIZES.len() - 1] / SIZES[0], ratios.join(" / "));
}
