/** What happens when the guest runs away, traps, or its process is killed. */

import assert from 'node:assert/strict';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openMemory } from '../src/index.js';
import { isDead, newHolder } from '../src/holder.js';
import { startChild } from './child.js';
import { temporaryDirectory } from './temporary.js';

const MIB = 1 << 20;
/** For calls that must end by themselves, however busy the machine is. */
const PATIENT_MS = 600_000;
const said = (content) => ({ messages: [{ role: 'user', content }] });
/** Far over the memory that the guests of these tests may use: it cannot even be handed over. */
const OVER_THE_LIMIT = { messages: Array.from({ length: 8 }, () => ({ role: 'user', content: 'x'.repeat(10 * MIB) })) };

test('a call over its deadline is stopped, the space opens again, waiting calls go on', async () => {
  const dir = temporaryDirectory();
  const memory = await openMemory({ dir, callTimeoutMs: 3000 });
  assert.equal((await memory.agentEnd(said('acknowledged before'))).stored.length, 1);
  // 100,000 messages in one call take many seconds.
  const many = { messages: Array.from({ length: 100_000 }, (_, index) => ({ role: 'user', content: `message number ${index} `.repeat(40) })) };
  const [runaway, waiting] = await Promise.allSettled([memory.agentEnd(many), memory.status()]);
  assert.equal(runaway.reason?.code, 'deadline');
  assert.match(runaway.reason.message, /agent-end did not end within 3000 ms/);
  assert.equal(waiting.value?.messages, 1, 'what was acknowledged is there, the stopped call left nothing');
  assert.equal((await memory.agentEnd(said('acknowledged after'))).stored.length, 1);
  await memory.close();
  assert.deepEqual(readdirSync(join(dir, 'lock')), []);
});

test('a trap is a typed error, and the space opens again', async () => {
  const dir = temporaryDirectory();
  const memory = await openMemory({ dir, memoryLimitBytes: 64 * MIB, callTimeoutMs: PATIENT_MS });
  assert.equal((await memory.agentEnd(said('acknowledged before'))).stored.length, 1);
  const [trapped, waiting] = await Promise.allSettled([memory.agentEnd(OVER_THE_LIMIT), memory.status()]);
  assert.equal(trapped.reason?.code, 'trap');
  assert.match(trapped.reason.message, /^the engine stopped: /);
  assert.equal(waiting.value?.messages, 1);
  await memory.close();
});

test('the memory of the guest is bounded', async () => {
  const before = process.memoryUsage().rss;
  const memory = await openMemory({ dir: temporaryDirectory(), memoryLimitBytes: 64 * MIB, callTimeoutMs: PATIENT_MS });
  for (let round = 0; round < 3; round++) await memory.agentEnd(OVER_THE_LIMIT).catch((error) => assert.equal(error.code, 'trap'));
  assert.ok(process.memoryUsage().rss - before < 600 * MIB);
  await memory.close();
});

const HOLD = `
  const memory = await openMemory({ dir });
  await memory.agentEnd({ messages: [{ role: 'user', content: 'told by the child' }] });
  console.log('in');
  process.stdin.resume();
`;

test('a living process keeps others out, a killed one does not', async () => {
  const dir = temporaryDirectory();
  const { child, nextLine, ended } = startChild(HOLD, dir);
  assert.equal(await nextLine(), 'in');
  const error = await openMemory({ dir }).catch((reason) => reason);
  assert.equal(error.code, 'busy');
  assert.match(error.message, new RegExp(`"pid":${child.pid}`));
  child.kill('SIGKILL');
  await ended;
  const memory = await openMemory({ dir });
  assert.equal((await memory.status()).messages, 1, 'what it had acknowledged is there');
  await memory.close();
});

test('a process may end without closing, and an idle memory does not keep it alive', async () => {
  const dir = temporaryDirectory();
  const { child, nextLine, ended } = startChild(HOLD.replace('process.stdin.resume();', ''), dir);
  child.stdin.end();
  assert.equal(await nextLine(), 'in');
  assert.deepEqual(await ended, [0, null]);
  const memory = await openMemory({ dir });
  assert.equal((await memory.status()).messages, 1);
  await memory.close();
});

test('who waits for rest or for closing is not left behind by the end of the process', async () => {
  const program = `
    const memory = await openMemory({ dir });
    const messages = Array.from({ length: 40 }, (_, index) => ({ role: 'user', content: 'I like number ' + index + '. I live in town ' + index + '.' }));
    for (const [index, message] of messages.entries()) await memory.agentEnd({ messages: [message], scope: { session: 's' + index } });
    await memory.idle();
    await memory.close();
    console.log('closed');
  `;
  const { child, nextLine, ended } = startChild(program, temporaryDirectory());
  child.stdin.end();
  assert.equal(await nextLine(), 'closed');
  assert.deepEqual(await ended, [0, null]);
});

test('a holder names the process namespace, as the native runner does, so that each evicts what the other left', { skip: process.platform !== 'linux' }, () => {
  assert.ok(newHolder().host.endsWith(` ${readlinkSync('/proc/self/ns/pid')}`));
});

test('a holder is called dead only when that is certain', () => {
  const machine = { host: 'h', boot: 'b', pid: 9, startOf: (pid) => (pid === 7 ? 100 : 0) };
  const holder = { id: 'x', pid: 8, host: 'h', boot: 'b', start: 50 };
  assert.equal(isDead(holder, machine), true, 'no such process');
  assert.equal(isDead({ ...holder, pid: 7 }, machine), true, 'the number was given to another process');
  assert.equal(isDead({ ...holder, boot: 'earlier' }, machine), true, 'the machine was started anew');
  assert.equal(isDead({ ...holder, pid: 7, start: 100 }, machine), false, 'it lives');
  assert.equal(isDead({ ...holder, pid: 7, start: 0 }, machine), false, 'it may live');
  assert.equal(isDead({ ...holder, pid: 9 }, machine), false, 'ourselves');
  assert.equal(isDead({ ...holder, host: 'other' }, machine), false, 'another machine');
  assert.equal(isDead({ ...holder, host: '' }, { ...machine, host: '' }), false, 'an unknown machine');
  assert.equal(isDead({ ...holder, boot: 'b' }, { ...machine, boot: '' }), false, 'an unknown boot');
  assert.equal(isDead({}, machine), false);
  assert.equal(isDead(newHolder()), false);
});
