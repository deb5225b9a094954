/**
 * Measures the engine's token estimate against a real tokenizer (o200k_base) on recorded sessions.
 *
 * Usage: node token_error.mjs SESSION.json ...
 * Prints a row a session: messages, real tokens, the error of the whole, and the error of single messages of 20 tokens
 * or more at the median and the 90th percentile. Both sides count four tokens a message and a call for their marks.
 */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { openMemory } from '../../js-shim/src/index.js';

const MARKS_TOKENS = 4;
const SHORT_TOKENS = 20;
const AT = 1_780_000_000_000;

const count = (text) => (text ? countTokens(text, { allowedSpecial: 'all' }) : 0);
const real = (message) =>
  MARKS_TOKENS +
  count(typeof message.content === 'string' ? message.content : '') +
  count(message.reasoning_content) +
  (message.tool_calls ?? []).reduce((sum, call) => sum + MARKS_TOKENS + count(call.function.name) + count(call.function.arguments), 0);
const percent = (value) => `${(value * 100).toFixed(1)} %`;

const dir = mkdtempSync(join(tmpdir(), 'strata-tokens-'));
const memory = await openMemory({ dir, scope: { session: 'tokens' }, settings: { offload: { enabled: false } } });
console.log('| session | messages | tokens | error of the whole | of a message, median | 90th percentile |');
console.log('| --- | --- | --- | --- | --- | --- |');
for (const file of process.argv.slice(2)) {
  const { messages } = JSON.parse(readFileSync(file, 'utf8'));
  const errors = [];
  let [estimated, counted] = [0, 0];
  for (const message of messages) {
    const { tokensBefore } = await memory.assemble({ messagesJson: JSON.stringify([message]), windowTokens: 200_000, at: AT });
    const tokens = real(message);
    estimated += tokensBefore;
    counted += tokens;
    if (tokens >= SHORT_TOKENS) errors.push(Math.abs(tokensBefore / tokens - 1));
  }
  errors.sort((a, b) => a - b);
  const at = (share) => percent(errors[Math.min(errors.length - 1, Math.floor(errors.length * share))] ?? 0);
  console.log(`| ${basename(file, '.json')} | ${messages.length} | ${counted.toLocaleString('en')} | ${percent(estimated / counted - 1)} | ${at(0.5)} | ${at(0.9)} |`);
}
await memory.close();
rmSync(dir, { recursive: true });
