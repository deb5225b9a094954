/**
 * `npm run proof:kill [-- ROUNDS [SEED [FILE]]]`: imports a corpus file in a process that is killed
 * (SIGKILL) at a random moment of it, then finishes the import. Another SQLite looks at the database after both:
 * what was acknowledged is there, the count is right, no message is there twice, the integrity check says ok.
 */

import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { corporaDirectory, corpusFiles, importCalls } from './corpora.js';

const importer = fileURLToPath(new URL('./import.js', import.meta.url));
const CHUNK = 5;
/** Rounds between two lines of progress. */
const PROGRESS = 10;
/** A kill comes so many milliseconds at most after the acknowledgement that it waits for: in the next calls. */
const LATEST_MS = 50;

/** Returns what a killed and a finished import left, as Python's SQLite sees it. */
const LOOK = `
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
one = lambda sql: db.execute(sql).fetchone()[0]
print(json.dumps({
  "messages": one("SELECT count(*) FROM messages"),
  "distinct": one("SELECT count(*) FROM (SELECT DISTINCT session, host_id FROM messages)"),
  "integrity": one("PRAGMA integrity_check"),
}))`;

const args = process.argv.slice(2);
const rounds = Number(args[0] ?? 50);
const seed = Number(args[1] ?? Date.now() % 1_000_000);
const corpora = corporaDirectory();
const file = args[2] ?? (corpora && corpusFiles(corpora)[0]);
if (!file) {
  console.log('SKIPPED: there are no corpora (set STRATA_SHARED)');
  process.exit(0);
}

const expected = importCalls(file, CHUNK).reduce((sum, call) => sum + call.messages.length, 0);
const random = generator(seed);
console.log(`seed ${seed}: ${expected} messages`);

let bad = 0;
let killedInTime = 0;
for (let round = 0; round < rounds; round++) {
  const dir = mkdtempSync(join(tmpdir(), 'strata-kill-'));
  const moment = { acknowledged: Math.floor(random() * expected), afterMs: Math.floor(random() * LATEST_MS) };
  const killed = await importInto(dir, moment);
  if (!killed.done) killedInTime += 1;
  const then = look(dir);
  const finished = await importInto(dir, undefined);
  const found = look(dir);
  const good = finished.done && then.messages >= killed.acknowledged && then.integrity === 'ok' && found.messages === expected && found.distinct === expected && found.integrity === 'ok';
  if (!good) {
    bad += 1;
    console.log(`round ${round}: killed with ${killed.acknowledged} acknowledged: ${JSON.stringify(then)}, finished ${JSON.stringify(found)} (left in ${dir})`);
  } else rmSync(dir, { recursive: true });
  if ((round + 1) % PROGRESS === 0 && round + 1 < rounds) console.log(`${round + 1} rounds, ${killedInTime} killed before the end of the import, ${bad} bad`);
}
console.log(`${rounds} rounds, ${killedInTime} killed before the end of the import, ${bad} bad`);
process.exitCode = bad === 0 ? 0 : 1;

/** Imports in a process of its own; with a moment it is killed then, if it has not ended. */
async function importInto(dir, moment) {
  const child = spawn(process.execPath, [importer, file, dir, String(CHUNK)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const result = { acknowledged: 0, done: false };
  let waiting = moment !== undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    const event = JSON.parse(line);
    result.acknowledged = event.acknowledged ?? result.acknowledged;
    result.done ||= event.done === true;
    if (waiting && result.acknowledged >= moment.acknowledged) {
      waiting = false;
      setTimeout(() => child.kill('SIGKILL'), moment.afterMs);
    }
  }
  const [code, signal] = await ended;
  if (moment === undefined && code !== 0) throw new Error(`the import ended with ${code ?? signal}`);
  return result;
}

/** Returns what is in the database; looks at a copy, since looking at a log of the killed would fold it in. */
function look(dir) {
  const copy = mkdtempSync(join(tmpdir(), 'strata-look-'));
  try {
    cpSync(dir, copy, { recursive: true });
    return JSON.parse(execFileSync('python3', ['-c', LOOK, join(copy, 'strata.db')], { encoding: 'utf8' }));
  } finally {
    rmSync(copy, { recursive: true });
  }
}

/** A small generator (mulberry32): the same seed, the same moments. */
function generator(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}
