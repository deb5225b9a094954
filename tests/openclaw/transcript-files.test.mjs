import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { importSessions } from '../../js-shim/openclaw/cli/sessions.js';
import { drainSession } from '../../js-shim/openclaw/transcript.js';
import { byOwner } from '../../js-shim/openclaw/transcript.js';
import { isTranscriptFile } from '../../js-shim/openclaw/transcript-files.js';
import { scopeOf } from '../../js-shim/openclaw/sessions.js';

const RULES = { excludeAgents: [], excludeChatTypes: [], excludeSenders: [], cron: false, heartbeat: false, subagents: false, tools: false };

const entry = (id, role, content, more = {}) => ({
  type: 'message',
  id,
  parentId: null,
  timestamp: '2026-03-01T10:00:00.000Z',
  message: { role, content, timestamp: Date.parse('2026-03-01T10:00:00Z'), ...more },
});

const DIRECT = [
  entry('1', 'user', 'hi', { __openclaw: { senderIsOwner: false } }),
  entry('2', 'assistant', 'hello'),
  entry('3', 'user', 'it is me', { __openclaw: { senderIsOwner: true } }),
  entry('4', 'assistant', [{ type: 'text', text: 'welcome' }]),
];

/** A space that keeps what it was told, once by session and id, as the engine does. */
function memory(known = []) {
  const rows = new Map();
  return {
    rows,
    book: { all: () => known },
    async call(_method, [{ scope, messages }]) {
      const fresh = messages.filter(({ id }) => !rows.has(`${scope.user} ${scope.agent} ${scope.session} ${id}`));
      for (const { id, content } of fresh) rows.set(`${scope.user} ${scope.agent} ${scope.session} ${id}`, content);
      return { stored: fresh.map(({ id }) => id), known: messages.length - fresh.length };
    },
  };
}

/** OpenClaw's folder of transcripts, as versions before SQLite and archives have it. */
function folder(files, index) {
  const dir = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'openclaw-')), 'agents', 'work', 'sessions');
  fs.mkdirSync(dir, { recursive: true });
  for (const [name, entries] of Object.entries(files)) fs.writeFileSync(path.join(dir, name), entries.map((e) => JSON.stringify(e)).join('\n'));
  if (index) fs.writeFileSync(path.join(dir, 'sessions.json'), JSON.stringify(index));
  return dir;
}

/** What the running capture hands to the engine for these rows. */
async function captured(space, entries, identity) {
  const rows = entries.map(({ id, message, timestamp }) => ({ entryId: id, message, createdAt: timestamp }));
  const read = async () => ({ kind: 'page', entries: rows, cursor: 'end', hasMore: false });
  const book = { entry: () => ({}), advance() {} };
  const deliver = async (messages) => {
    for (const batch of byOwner(messages, undefined))
      await space.call('agentEnd', [{ scope: scopeOf(identity.sessionKey, identity.agentId, batch.owner), messages: batch.messages }]);
  };
  await drainSession(read, book, identity, { rules: RULES, floorMs: 0, deliver });
}

const run = (space, place) => importSessions(space, { capture: RULES }, place, { agent: 'main', json: false });

test('a session that was captured while it ran is known when its transcript comes from a file', async () => {
  const identity = { agentId: 'work', sessionKey: 'agent:work:telegram:direct:7', sessionId: '5f0c' };
  const header = { type: 'session', version: 3, id: '5f0c' };
  for (const [files, known, index] of [
    [{ '5f0c.jsonl': [header, ...DIRECT] }, [], { [identity.sessionKey]: { sessionId: '5f0c' } }],
    [{ '5f0c.jsonl.reset.2026-03-02T00-00-00.000Z': [header, ...DIRECT] }, [identity], undefined],
    [{ '5f0c.jsonl': DIRECT }, [identity], undefined],
  ]) {
    const space = memory(known);
    await captured(space, DIRECT, identity);
    const before = new Map(space.rows);
    await run(space, folder(files, index));
    assert.deepEqual(space.rows, before, Object.keys(files)[0]);
    assert.equal(space.rows.size, 4);
  }
});

test('a session that nobody knows keeps its id as its name, and the folder says whose it is', async () => {
  const space = memory();
  await run(space, folder({ 'abc.jsonl': [{ type: 'session', id: 'abc' }, entry('1', 'user', 'old')] }));
  assert.deepEqual([...space.rows], [['owner work abc 1', 'old']]);
});

test('the rules hold for files too, and a broken line is skipped alone', async () => {
  const space = memory();
  const dir = folder(
    { 'a.jsonl': [{ type: 'session', id: 'a' }, entry('1', 'user', 'x')], 'b.jsonl': [{ type: 'session', id: 'b' }, entry('1', 'user', 'kept')] },
    { 'agent:work:cron:nightly': { sessionId: 'a' }, 'agent:work:main': { sessionId: 'b' } },
  );
  fs.appendFileSync(path.join(dir, 'b.jsonl'), `\n{"type":"message","id":"2"\n${JSON.stringify(entry('3', 'user', 'too'))}\n`);
  assert.equal(await run(space, dir), 1, 'and is reported');
  assert.deepEqual([...space.rows.values()], ['kept', 'too']);
});

test('a folder without transcripts is an error, and other files in one are left', async () => {
  await assert.rejects(run(memory(), fs.mkdtempSync(path.join(os.tmpdir(), 'empty-'))), /no transcript/);
  for (const name of ['a.jsonl', 'a.jsonl.reset.2026-03-02T00-00-00.000Z', 'a.jsonl.deleted.2026-03-02T00-00-00.000Z']) assert.ok(isTranscriptFile(name), name);
  for (const name of ['sessions.json', 'a.jsonl.zst', 'a.jsonl.bak', 'a.txt']) assert.ok(!isTranscriptFile(name), name);
});
