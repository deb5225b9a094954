/** Three kills in the middle of an import; `npm run proof:kill` does fifty on a real conversation. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { temporaryDirectory } from './temporary.js';

const ROUNDS = 3;
const python = spawnSync('python3', ['-c', 'import sqlite3']).status === 0;

test('an import that is killed is finished without a loss or a double', { skip: python ? false : 'SKIPPED: there is no python3 with sqlite3' }, () => {
  const file = join(temporaryDirectory(), 'conversation.json');
  const messages = Array.from({ length: 120 }, (_, index) => ({
    id: `m${index}`,
    session: `s${Math.floor(index / 30)}`,
    role: index % 2 ? 'assistant' : 'user',
    text: `I like number ${index}, and on day ${index % 28} I walked ${index} steps.`,
  }));
  writeFileSync(file, JSON.stringify({ messages }));
  const seed = Date.now() % 1_000_000;
  const run = spawnSync(process.execPath, [fileURLToPath(new URL('../proofs/kill.js', import.meta.url)), String(ROUNDS), String(seed), file], { encoding: 'utf8' });
  assert.equal(run.status, 0, `seed ${seed}\n${run.stdout}${run.stderr}`);
  assert.match(run.stdout, /3 rounds, \d killed before the end of the import, 0 bad/);
});
