/**
 * `npm run proof:throughput [-- CALLS.jsonl]`: imports all corpora into one space, a call a session and an
 * agent a file, then asks their questions. Prints one JSON line. With a name it also writes the calls, so that
 * another host can make the same ones (`tests/examples/throughput.rs`).
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { openMemory } from '../src/index.js';
import { corporaDirectory, corpusFiles, importCalls } from './corpora.js';

/** Questions that are asked, spread evenly over all. */
const QUESTIONS = 500;

const corpora = corporaDirectory();
if (!corpora) {
  console.log('SKIPPED: there are no corpora (set STRATA_SHARED)');
  process.exit(0);
}
const files = corpusFiles(corpora);
const calls = files.flatMap((file, index) => importCalls(file, Infinity, `space-${index}`));
const all = files.flatMap((file, index) => JSON.parse(readFileSync(file, 'utf8')).queries.map(({ text }) => ({ scope: { agent: `space-${index}` }, prompt: text })));
const questions = all.filter((_, index) => index % Math.max(1, Math.floor(all.length / QUESTIONS)) === 0);

const out = process.argv[2];
if (out) {
  const lines = [...calls.map((call) => ({ call: 'agent-end', with: call })), ...questions.map((event) => ({ call: 'before-prompt-build', with: event }))];
  writeFileSync(out, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

const dir = mkdtempSync(join(tmpdir(), 'strata-throughput-'));
let memory = await openMemory({ dir });
let started = performance.now();
const before = process.cpuUsage();
let messages = 0;
for (const call of calls) messages += (await memory.agentEnd(call)).stored.length;
await memory.idle();
const imported = performance.now() - started;
// On a machine that others use too, the time of the processor says more than the clock.
const used = process.cpuUsage(before);

started = performance.now();
await memory.close();
memory = await openMemory({ dir });
const opened = performance.now() - started;
const times = [];
for (const question of questions) {
  const asked = performance.now();
  await memory.beforePromptBuild(question);
  times.push(performance.now() - asked);
}
times.sort((a, b) => a - b);
const status = await memory.status();
await memory.close();
rmSync(dir, { recursive: true });

console.log(
  JSON.stringify({
    host: `node ${process.version}`,
    messages,
    atoms: status.atoms,
    'messages-per-second': Math.round((messages / imported) * 1000),
    'cpu-us-per-message': Math.round((used.user + used.system) / messages),
    'reopen-ms': Math.round(opened),
    'recall-p50-ms': Number(times[Math.floor(times.length / 2)].toFixed(2)),
    'recall-p95-ms': Number(times[Math.floor(times.length * 0.95)].toFixed(2)),
    'peak-rss-mb': Math.round(process.resourceUsage().maxRSS / 1024),
  }),
);
