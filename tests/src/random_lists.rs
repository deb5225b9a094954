//! Random message lists in all shapes that agents speak, by seed.

use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A small generator of random numbers: splitmix64.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// Returns the next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to `bound - 1`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// Returns at most `most` words of prose, code, paths and marks.
    pub fn words(&mut self, most: u64) -> String {
        const WORDS: [&str; 24] = [
            "error:", "src/main.rs:12:5", "the", "test", "FAILED", "ok", "fn parse", "{\"a\": 1}", "12345", "café", "中文字", "🦀", "`code`", "```", "\n",
            "\n\n", "\t", "refs/0123456789abcdef.md", "[Offloaded Tool Result", "<div>", "\"quoted\"", "\\", "a_long_identifier_name",
            "https://example.org/x?y=1",
        ];
        let mut text = String::new();
        for _ in 0..self.below(most + 1) {
            text.push_str(WORDS[self.below(WORDS.len() as u64) as usize]);
            text.push(' ');
        }
        text
    }
}

/// Returns a random list of messages, mostly in one shape, now and then mixed or broken.
pub fn list(dice: &mut Dice) -> Vec<Value> {
    let shape = dice.below(4);
    let length = dice.below(30);
    let big = [8, 60, 150][dice.below(3) as usize];
    let mut out = Vec::new();
    let mut calls = 0;
    if dice.below(2) == 0 {
        out.push(json!({"role": "system", "content": dice.words(40)}));
    }
    while (out.len() as u64) < length {
        match dice.below(12) {
            0 | 1 => out.push(user(dice, shape)),
            2 => out.push(said(dice, shape)),
            3 if dice.below(4) == 0 => out.push(odd(dice)),
            _ => turn(dice, shape, big, &mut calls, &mut out),
        }
    }
    out
}

fn user(dice: &mut Dice, shape: u64) -> Value {
    let text = dice.words(40);
    match shape {
        1 => json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
        2 => json!({"role": "user", "content": [{"type": "text", "text": text}]}),
        _ => json!({"role": "user", "content": text}),
    }
}

fn said(dice: &mut Dice, shape: u64) -> Value {
    let text = dice.words(200);
    match shape {
        1 => json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}),
        2 | 3 => json!({"role": "assistant", "content": [{"type": "text", "text": text}]}),
        _ => json!({"role": "assistant", "content": text, "reasoning_content": dice.words(80)}),
    }
}

fn odd(dice: &mut Dice) -> Value {
    match dice.below(7) {
        0 => json!({"role": "mystery", "payload": dice.words(20)}),
        1 => json!({"role": "tool", "tool_call_id": "nobody", "content": dice.words(120)}),
        2 => json!({"role": "assistant", "content": null, "tool_calls": [{"id": "open", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]}),
        3 => json!("just text"),
        4 => json!({"role": "user", "content": [{"type": "image", "source": {"data": "AAAA"}}]}),
        5 => json!({"type": "item_reference", "id": "x"}),
        _ => json!({"role": "tool", "tool_call_id": "image", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}),
    }
}

fn turn(dice: &mut Dice, shape: u64, big: u64, calls: &mut u64, out: &mut Vec<Value>) {
    let parallel = 1 + dice.below(3);
    let ids: Vec<String> = (0..parallel)
        .map(|_| {
            *calls += 1;
            // Some hosts use ids again.
            if dice.below(20) == 0 { "call_again".to_owned() } else { format!("call_{calls}") }
        })
        .collect();
    let ids: Vec<String> = ids.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let name = ["bash", "Read", "Edit", "grep", "weather"][dice.below(5) as usize];
    let long = if dice.below(3) == 0 { 150 } else { 5 };
    let arguments = json!({"command": dice.words(12), "content": dice.words(long)});
    let results: Vec<String> = ids.iter().map(|_| dice.words(big)).collect();
    let text = dice.words(20);
    match shape {
        0 => {
            let list: Vec<Value> =
                ids.iter().map(|id| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})).collect();
            out.push(json!({"role": "assistant", "content": text, "tool_calls": list, "reasoning_content": dice.words(60)}));
            for (id, result) in ids.iter().zip(&results) {
                out.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
            }
        }
        1 => {
            if dice.below(2) == 0 {
                out.push(json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "AAAA"}));
            }
            for id in &ids {
                out.push(json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments.to_string()}));
            }
            for (id, result) in ids.iter().zip(&results) {
                out.push(json!({"type": "function_call_output", "call_id": id, "output": result}));
            }
        }
        2 => {
            let mut blocks = vec![json!({"type": "thinking", "thinking": dice.words(60), "signature": "s"}), json!({"type": "text", "text": text})];
            blocks.extend(ids.iter().map(|id| json!({"type": "tool_use", "id": id, "name": name, "input": arguments})));
            out.push(json!({"role": "assistant", "content": blocks}));
            let blocks: Vec<Value> = ids
                .iter()
                .zip(&results)
                .map(|(id, result)| json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": result}]}))
                .collect();
            out.push(json!({"role": "user", "content": blocks}));
        }
        _ => {
            let mut blocks = vec![json!({"type": "text", "text": text})];
            blocks.extend(ids.iter().map(|id| json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})));
            out.push(json!({"role": "assistant", "content": blocks, "timestamp": 1}));
            for (id, result) in ids.iter().zip(&results) {
                out.push(json!({"role": "toolResult", "toolCallId": id, "toolName": name, "content": [{"type": "text", "text": result}], "isError": false, "timestamp": 2}));
            }
        }
    }
}
