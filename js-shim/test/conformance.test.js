/** The scenarios on this host; and where other hosts have left their transcripts, the same bytes. */

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { runScenario, runScenarios } from '../src/conformance.js';
import { difference } from '../src/expect.js';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const scenarios = join(root, 'tests/scenarios');
const transcripts = join(process.env.CARGO_TARGET_DIR ?? join(root, 'target'), 'transcripts');

if (!existsSync(scenarios)) {
  test('scenarios', { skip: `SKIPPED: there is no ${scenarios}` }, () => {});
} else {
  const runs = runScenarios(scenarios);
  for (const run of runs) {
    test(`scenario ${run.name}`, { skip: run.skipped }, () => {
      assert.deepEqual(run.failures, []);
      for (const host of ['core', 'wasmtime']) {
        const path = join(transcripts, host, `${run.name}.jsonl`);
        if (existsSync(path)) assert.equal(run.transcript, readFileSync(path, 'utf8'), `the transcript of ${host} differs`);
      }
    });
  }
}

const HI = { call: 'agent-end', with: { messages: [{ role: 'user', content: 'Hi, I live in Oslo.' }], at: 1000 } };
const play = (...steps) => runScenario('test', { about: 'a test of the driver', llm: { available: true, model: 'm' }, steps }).failures;

test('the driver fails a scenario whose expectation is not met', () => {
  assert.deepEqual(play({ ...HI, expect: { known: 0, stored: { $count: 1 } } }), []);
  assert.match(play({ ...HI, expect: { known: 1 } })[0], /step 1 \(agent-end\)\.known: expected 1, got 0/);
  assert.match(play({ ...HI, expect: { $failure: 'busy' } })[0], /expected the failure busy/);
});

test('the driver fails a scenario with a refusal or a request that it does not name', () => {
  assert.match(play({ call: 'trace', with: { id: 'nothing' } })[0], /not-found/);
  assert.match(play(HI, { call: 'tick', with: { now: 2000 } })[0], /requests: expected 0 items, got 1/);
  assert.deepEqual(play(HI, { call: 'tick', with: { now: 2000 }, requests: [{ kind: 'llm', purpose: 'l1-extract', prompt: { $contains: 'Oslo' } }] }), []);
});

test('a scenario that is written wrongly is an error, not a failure', () => {
  assert.throws(() => play({ call: 'no-such-call' }), /step 1 \(no-such-call\): there is no call/);
  assert.throws(() => play({ ...HI, with: { ...HI.with, mesages: [] } }), /mesages is not known/);
  assert.throws(() => play({ call: 'trace', with: { it: 'x' } }), /trace takes no it/);
  assert.throws(() => play({ ...HI, expects: {} }), /a step has no expects/);
  assert.throws(() => play({ call: 'file', with: { path: '../../etc/passwd' } }), /not in the data directory/);
});

test('expectations', () => {
  const same = [
    [{ a: 1 }, { a: 1, b: 2 }],
    [[1, { b: 2 }], [1, { b: 2, c: 3 }]],
    [{ $contains: 'b' }, 'abc'],
    [{ $contains: { a: 1 } }, [{ a: 1, b: 2 }]],
    [{ '$not-contains': 'x' }, 'abc'],
    [{ $count: 2 }, [1, 2]],
    [{ $any: true }, null],
    [{ $json: { a: 1 } }, '{"a":1,"b":2}'],
    [{ $all: [{ $contains: 'a' }, { $contains: 'b' }] }, 'ab'],
    [null, null],
  ];
  for (const [expected, actual] of same) assert.equal(difference(expected, actual, ''), undefined);
  const other = [
    [{ a: 1 }, { b: 1 }],
    [{ a: 1 }, [1]],
    [[1], [1, 2]],
    [{ $contains: 'x' }, 'abc'],
    [{ $contains: 'x' }, null],
    [{ '$not-contains': 'b' }, 'abc'],
    [{ $count: 1 }, 'a'],
    [{ $json: { a: 1 } }, 'no JSON'],
    [{ $all: [{ $contains: 'a' }, { $contains: 'x' }] }, 'ab'],
    [{ $typo: 1 }, 1],
    [null, 0],
    ['1', 1],
  ];
  for (const [expected, actual] of other) assert.notEqual(difference(expected, actual, ''), undefined);
});
