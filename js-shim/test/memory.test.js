/** The Node API on a real space. */

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { StrataError, beforeMessageWriteSync, configSchemaSync, listToolsSync, openMemory, queryTextSync } from '../src/index.js';
import { temporaryDirectory } from './temporary.js';

/** Returns what `promise` rejects with; it must be a StrataError with `code`. */
async function refusal(code, promise) {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof StrataError, String(error?.stack));
    assert.equal(error.code, code);
    return error;
  }
  assert.fail(`expected ${code}`);
}

const said = (content, more = {}) => ({ messages: [{ role: 'user', content, ...more }] });

test('messages are stored once and are there after closing and opening', async () => {
  const dir = join(temporaryDirectory(), 'made/when/opened');
  let memory = await openMemory({ dir });
  const session = { messages: [{ role: 'user', content: 'I moved to Oslo.' }, { role: 'assistant', content: [{ type: 'text', text: 'Noted.' }] }] };
  const first = await memory.agentEnd(session);
  assert.equal(first.stored.length, 2);
  assert.deepEqual(await memory.agentEnd(session), { stored: [], known: 2, dropped: [] });
  await memory.close();
  assert.ok(!readdirSync(dir).some((name) => name.endsWith('-wal')), 'closing folds the log in');
  memory = await openMemory({ dir });
  assert.equal((await memory.status()).messages, 2);
  await memory.close();
});

test('a scope of the handle fills what a call leaves out', async () => {
  const memory = await openMemory({ dir: temporaryDirectory(), scope: { user: 'ann', session: 's1' } });
  await memory.agentEnd(said('One sentence about tea.'));
  // The same text in another session is another message; in the same one it is known.
  assert.equal((await memory.agentEnd({ ...said('One sentence about tea.'), scope: { session: 's2' } })).stored.length, 1);
  assert.equal((await memory.agentEnd({ ...said('One sentence about tea.'), scope: { session: 's1' } })).known, 1);
  assert.equal((await memory.status()).sessions, 2);
  await memory.close();
});

test('wrong arguments are named and change nothing', async () => {
  const memory = await openMemory({ dir: temporaryDirectory() });
  assert.match((await refusal('invalid-argument', memory.agentEnd({}))).message, /messages/);
  assert.match((await refusal('invalid-argument', memory.agentEnd({ messages: [{ role: 'user' }] }))).message, /messages\[0\]\.content is missing/);
  assert.match((await refusal('invalid-argument', memory.agentEnd(said('x', { roll: 1 })))).message, /roll is not known/);
  assert.match((await refusal('invalid-argument', memory.agentEnd(said('x', { saidAt: -1 })))).message, /saidAt/);
  assert.match((await refusal('invalid-argument', memory.agentEnd({ ...said('x'), at: 1.5 }))).message, /at must be/);
  assert.match((await refusal('invalid-argument', memory.beforePromptBuild(undefined))).message, /prompt is missing/);
  assert.match((await refusal('invalid-argument', memory.agentEnd({ ...said('x'), scope: { sesion: 's' } }))).message, /sesion/);
  assert.equal((await memory.status()).messages, 0);
  await memory.close();
});

test('opening refuses what it cannot use', async () => {
  const dir = temporaryDirectory();
  await refusal('invalid-argument', openMemory());
  await refusal('invalid-argument', openMemory({}));
  await refusal('invalid-argument', openMemory({ dir, llm: {} }));
  await refusal('invalid-argument', openMemory({ dir, llm: { url: 'file:///etc', model: 'm' } }));
  await refusal('invalid-argument', openMemory({ dir, embed: { url: 'http://127.0.0.1:1' } }));
  await refusal('invalid-argument', openMemory({ dir, memoryLimitBytes: 1 }));
  await refusal('invalid-argument', openMemory({ dir, settings: { noSuchSetting: true } }));
  writeFileSync(join(dir, 'file'), '');
  await refusal('io', openMemory({ dir: join(dir, 'file') }));
  // After all of that the directory is free.
  await (await openMemory({ dir })).close();
});

test('hostile text is stored and comes back: lone surrogates, NULs, marks, emoji', async () => {
  const memory = await openMemory({ dir: temporaryDirectory() });
  const texts = ['\ud800 lone', 'nul \0 inside', '\ufeffmark', '👩‍👩‍👧‍👦 💃', '</relevant-memories> <b>', '"quoted" AND (NEAR/2 x*) OR -y :col'];
  for (const text of texts) {
    await memory.agentEnd(said(`about: ${text}`));
    await memory.beforePromptBuild({ prompt: text });
  }
  await memory.beforePromptBuild({ prompt: '' });
  await memory.close();
});

test('a message of 10 MB is stored', async () => {
  const memory = await openMemory({ dir: temporaryDirectory(), callTimeoutMs: 600_000 });
  assert.equal((await memory.agentEnd(said('ten megabytes '.repeat(750_000)))).stored.length, 1);
  await memory.close();
});

test('the synchronous calls need no open space and keep every byte', () => {
  assert.equal(beforeMessageWriteSync({ content: '\ufeffkeep the mark' }), '\ufeffkeep the mark');
  assert.equal(beforeMessageWriteSync({ content: 'lone \ud800 surrogate' }), 'lone \ufffd surrogate');
  assert.equal(queryTextSync('What do I drink?'), 'What do I drink?');
  assert.ok(Array.isArray(listToolsSync()));
  assert.equal(configSchemaSync().type, 'object');
  assert.throws(() => beforeMessageWriteSync({}), (error) => error.code === 'invalid-argument');
});

test('handles on one directory share an engine; the last one closes it', async () => {
  const dir = temporaryDirectory();
  const link = `${dir}-link`;
  symlinkSync(dir, link);
  const [one, two] = await Promise.all([openMemory({ dir }), openMemory({ dir: link })]);
  await one.agentEnd(said('told to one'));
  assert.equal((await two.status()).messages, 1);
  await Promise.all([one.close(), one.close()]);
  await refusal('not-open', one.status());
  assert.equal((await two.status()).messages, 1);
  const closing = two.close();
  // Opened while the last handle is closing: waits, and gets a new engine.
  const three = await openMemory({ dir });
  await closing;
  assert.equal((await three.status()).messages, 1);
  await three.close();
  assert.equal(globalThis[Symbol.for('strata.engines')].size, 0);
});

test('calls that wait are finished before closing', async () => {
  const memory = await openMemory({ dir: temporaryDirectory() });
  const reports = Array.from({ length: 20 }, (_, index) => memory.agentEnd(said(`message ${index}`)));
  const closed = memory.close();
  assert.equal((await Promise.all(reports)).flatMap((report) => report.stored).length, 20);
  await closed;
  await refusal('not-open', memory.agentEnd(said('too late')));
});

test('a database that is no database is said to be corrupt and is left as it is', async () => {
  const dir = temporaryDirectory();
  writeFileSync(join(dir, 'strata.db'), 'this is not a database, '.repeat(1000));
  await refusal('corrupt', openMemory({ dir }));
  assert.ok(existsSync(join(dir, 'strata.db')));
});

test('the place of the database taken by a directory is a typed error', async () => {
  const dir = temporaryDirectory();
  mkdirSync(join(dir, 'strata.db'));
  const error = await openMemory({ dir }).catch((reason) => reason);
  assert.ok(error instanceof StrataError, String(error));
  assert.notEqual(error.code, 'trap');
});

test('errors of another copy of the module are recognized', async () => {
  const copy = await import(`../src/errors.js?copy=${Date.now()}`);
  assert.notEqual(copy.StrataError, StrataError);
  assert.ok(new copy.StrataError('busy', 'x') instanceof StrataError);
  assert.ok(!(new Error('x') instanceof StrataError));
});
