import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { CaptureBook } from '../../js-shim/openclaw/book.js';
import { drainSession, textOf } from '../../js-shim/openclaw/transcript.js';

const RULES = { excludeAgents: [], excludeChatTypes: [], excludeSenders: [], cron: false, heartbeat: false, subagents: false, tools: false };
const IDENTITY = { agentId: 'main', sessionKey: 'agent:main:telegram:group:7', sessionId: 's1' };
const row = (entryId, role, content, more = {}) => ({
  entryId,
  role,
  createdAt: '2026-03-01T10:00:00.000Z',
  message: { role, content, timestamp: 1_772_359_200_000, ...more },
});

/** OpenClaw's reader over rows: pages of `size`, opaque cursors, and a reset for a cursor of another life. */
function reader(rows, size = 2, life = 1) {
  return async ({ cursor }) => {
    const [born, at] = cursor ? cursor.split(':').map(Number) : [life, 0];
    if (born !== life) return { kind: 'reset', cursor: `${life}:0` };
    const entries = rows.slice(at, at + size);
    return { kind: 'page', entries, cursor: `${life}:${at + entries.length}`, hasMore: at + entries.length < rows.length };
  };
}

function book() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'book-'));
  const file = path.join(dir, 'sessions.json');
  return { file, open: () => new CaptureBook(file, (line) => assert.fail(line)) };
}

const ROWS = [
  row('1', 'user', 'hello', { __openclaw: { senderName: 'Ana' } }),
  row('2', 'assistant', [{ type: 'toolCall', id: 'c', name: 'read' }]),
  row('3', 'toolResult', [{ type: 'text', text: 'file' }], { toolCallId: 'c', toolName: 'read' }),
  row('4', 'assistant', [{ type: 'text', text: 'hi' }]),
  row('5', 'user', 'beat', { provenance: { kind: 'internal_system', sourceTool: 'heartbeat' } }),
  row('6', 'assistant', 'HEARTBEAT noted'),
  row('7', 'user', 'and you?', { __openclaw: { senderUsername: 'bo' } }),
  row('8', 'assistant', 'NO_REPLY'),
];

test('messages come once, in order, with ids and speakers, however often the session is read', async () => {
  const { open } = book();
  const seen = [];
  const drain = (b) => drainSession(reader(ROWS), b, IDENTITY, { rules: RULES, floorMs: 0, deliver: async (list) => seen.push(...list) });
  const tally = await drain(open());
  assert.deepEqual(
    seen.map(({ id, role, text, speaker }) => [id, role, text, speaker]),
    [
      ['1', 'user', 'hello', 'Ana'],
      ['4', 'assistant', 'hi', undefined],
      ['7', 'user', 'and you?', 'bo'],
    ],
  );
  assert.deepEqual(tally, { delivered: 3, excluded: { 'heartbeat run': 2 } });
  assert.equal((await drain(open())).delivered, 0, 'the next process goes on where this one stopped');
});

test('a delivery that fails is made again, and the cursor stays', async () => {
  const { open } = book();
  const b = open();
  await assert.rejects(drainSession(reader(ROWS), b, IDENTITY, { rules: RULES, floorMs: 0, deliver: async () => Promise.reject(new Error('full disk')) }));
  const seen = [];
  await drainSession(reader(ROWS), open(), IDENTITY, { rules: RULES, floorMs: 0, deliver: async (list) => seen.push(...list) });
  assert.equal(seen.length, 3);
});

test('a turn that is left out stays out when a page ends in its middle', async () => {
  const seen = [];
  await drainSession(reader(ROWS, 1), book().open(), IDENTITY, { rules: RULES, floorMs: 0, deliver: async (list) => seen.push(...list) });
  assert.deepEqual(
    seen.map(({ id }) => id),
    ['1', '4', '7'],
  );
});

test('the answer to a person is kept when a restart cut the run off and OpenClaw had it go on', async () => {
  const rows = [
    row('1', 'user', 'how far is it?'),
    row('2', 'user', 'Continue.', { provenance: { kind: 'internal_system', sourceTool: 'main_session_restart_recovery' } }),
    row('3', 'assistant', 'two miles'),
  ];
  const seen = [];
  await drainSession(reader(rows), book().open(), IDENTITY, { rules: RULES, floorMs: 0, deliver: async (list) => seen.push(...list) });
  assert.deepEqual(
    seen.map(({ id }) => id),
    ['1', '3'],
  );
});

test('a transcript that was replaced is read from its start, with the same ids', async () => {
  const { open } = book();
  const b = open();
  const deliver = async () => undefined;
  await drainSession(reader(ROWS, 2, 1), b, IDENTITY, { rules: RULES, floorMs: 0, deliver });
  const seen = [];
  await drainSession(reader(ROWS.slice(6), 2, 2), b, IDENTITY, { rules: RULES, floorMs: 0, deliver: async (list) => seen.push(...list) });
  assert.deepEqual(
    seen.map(({ id }) => id),
    ['7'],
  );
});

test('what was said before memory was switched on stays out', async () => {
  const seen = [];
  const tally = await drainSession(reader(ROWS), book().open(), IDENTITY, {
    rules: RULES,
    floorMs: Date.parse('2026-03-02'),
    deliver: async (list) => seen.push(...list),
  });
  assert.deepEqual(seen, []);
  assert.equal(tally.excluded['said before memory was switched on'], 3);
});

test('tool results are conversation only when asked for', async () => {
  const seen = [];
  await drainSession(reader(ROWS), book().open(), IDENTITY, { rules: { ...RULES, tools: true }, floorMs: 0, deliver: async (list) => seen.push(...list) });
  assert.deepEqual(
    seen.filter(({ role }) => role === 'tool').map(({ text, toolName }) => [text, toolName]),
    [['file', 'read']],
  );
});

test('a missing, rebuilding or unreadable transcript ends the reading without harm', async () => {
  for (const kind of ['missing', 'unavailable']) {
    const tally = await drainSession(async () => ({ kind }), book().open(), IDENTITY, { rules: RULES, floorMs: 0, deliver: () => assert.fail() });
    assert.equal(tally.delivered, 0);
  }
});

test('a message larger than a page is asked for with the bytes that it needs', async () => {
  const asked = [];
  const read = async ({ maxBytes, cursor }) => {
    asked.push(maxBytes);
    if (cursor === 'end') return { kind: 'page', entries: [], cursor, hasMore: false };
    return maxBytes < 9_000_000
      ? { kind: 'page', entries: [], requiredBytes: 9_000_000, cursor: '', hasMore: true }
      : { kind: 'page', entries: [row('1', 'user', 'big')], cursor: 'end', hasMore: false };
  };
  const seen = [];
  await drainSession(read, book().open(), IDENTITY, { rules: RULES, floorMs: 0, deliver: async (list) => seen.push(...list) });
  assert.equal(seen.length, 1);
  assert.equal(asked.at(-1), 9_000_000);
});

test('a broken book is an empty one and says so', () => {
  const { file } = book();
  fs.writeFileSync(file, '{ not json');
  const lines = [];
  assert.deepEqual(new CaptureBook(file, (line) => lines.push(line)).all(), []);
  assert.match(lines[0], /not a capture book/);
});

test('the text of a message is its text parts', () => {
  assert.equal(textOf([{ type: 'text', text: 'a' }, { type: 'image' }, { type: 'text', text: 'b' }]), 'a\nb');
  assert.equal(textOf(undefined), '');
});
