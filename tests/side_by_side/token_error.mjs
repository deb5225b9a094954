/**
 * Measures the engine's token estimate against a real tokenizer (o200k_base) on recorded sessions.
 *
 * Usage: node token_error.mjs SESSION.json ...
 * Prints a row a session, then a row a class of content: messages, real tokens, the error of the whole, and the error of
 * single messages of 20 tokens or more at the median and the 90th percentile. Both sides count four tokens a message and a
 * call for their marks. A message has the first class of `CLASSES` that fits it.
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
const share = (text, pattern) => (text.match(pattern) ?? []).length / Math.max(1, text.length);
const lines = (text, pattern) => text.split('\n').filter((line) => pattern.test(line)).length / text.split('\n').length;
const isJson = (text) => {
  try {
    return typeof JSON.parse(text) === 'object';
  } catch {
    return false;
  }
};
const CLASSES = [
  ['calls (JSON arguments)', (message) => (message.tool_calls ?? []).length > 0],
  ['words of users, system and assistant', (message) => message.role !== 'tool'],
  ['Chinese, Japanese, Korean', (_, text) => share(text, /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/g) > 0.1],
  ['results: JSON', (_, text) => isJson(text)],
  ['results: diff', (_, text) => /^@@ .*@@/m.test(text) && lines(text, /^[-+ ]/) > 0.5],
  ['results: numbered lines of a file', (_, text) => lines(text, /^\s*\d+(→|:|\t|\|)/) > 0.5],
  ['results: lists of paths and matches', (_, text) => lines(text, /^\S*[\w.]\/\S+/) > 0.5],
  ['results: code, prose, logs, the rest', () => true],
];

class Row {
  messages = 0;
  estimated = 0;
  counted = 0;
  errors = [];

  add(estimated, counted) {
    this.messages += 1;
    this.estimated += estimated;
    this.counted += counted;
    if (counted >= SHORT_TOKENS) this.errors.push(Math.abs(estimated / counted - 1));
  }

  print(name) {
    this.errors.sort((a, b) => a - b);
    const at = (part) => percent(this.errors[Math.min(this.errors.length - 1, Math.floor(this.errors.length * part))] ?? 0);
    console.log(`| ${name} | ${this.messages} | ${this.counted.toLocaleString('en')} | ${percent(this.estimated / this.counted - 1)} | ${at(0.5)} | ${at(0.9)} |`);
  }
}

const heading = (what) => console.log(`| ${what} | messages | tokens | error of the whole | of a message, median | 90th percentile |\n| --- | --- | --- | --- | --- | --- |`);
const all = new Row();
const classes = new Map(CLASSES.map(([name]) => [name, new Row()]));
heading('session');
for (const file of process.argv.slice(2)) {
  const session = new Row();
  for (const message of JSON.parse(readFileSync(file, 'utf8')).messages) {
    const { tokensBefore } = await memory.assemble({ messagesJson: JSON.stringify([message]), windowTokens: 200_000, at: AT });
    const text = typeof message.content === 'string' ? message.content : '';
    const [name] = CLASSES.find(([, fits]) => fits(message, text));
    for (const row of [session, all, classes.get(name)]) row.add(tokensBefore, real(message));
  }
  session.print(basename(file, '.json'));
}
console.log();
heading('content');
for (const [name, row] of classes) if (row.messages > 0) row.print(name);
all.print('all');
await memory.close();
rmSync(dir, { recursive: true });
