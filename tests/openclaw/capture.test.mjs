import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { Capture } from '../../js-shim/openclaw/capture.js';
import { Health } from '../../js-shim/openclaw/health.js';
import { readSettings } from '../../js-shim/openclaw/settings.js';
import { leaseSpace } from '../../js-shim/openclaw/space.js';

const CTX = { agentId: 'main', sessionKey: 'agent:main:main', sessionId: 's', runId: 'r1', trigger: 'user' };
const said = (entryId, role, content, more = {}) => ({
  entryId,
  role,
  createdAt: new Date().toISOString(),
  message: { role, content, timestamp: Date.now(), ...more },
});

/** An engine that takes what it is given, but for what `refuse` refuses, and a host transcript of `rows`. */
function stage({ rows, refuse = () => undefined, granted = true, config }) {
  const settings = readSettings(config, fs.mkdtempSync(path.join(os.tmpdir(), 'capture-')));
  const stored = [];
  const lines = [];
  const open = async () => ({
    call: async (method, [event]) => {
      assert.equal(method, 'agentEnd');
      const refusal = refuse(event);
      if (refusal) throw Object.assign(new Error(`refused: ${refusal}`), { code: refusal });
      stored.push(...event.messages.map((message) => ({ ...message, user: event.scope.user })));
      return { stored: [], known: 0, dropped: [] };
    },
    close: async () => undefined,
  });
  const health = new Health('test');
  const log = (_level, line) => lines.push(line);
  const lease = leaseSpace({ settings, version: '1', open, client: { logger: { info() {}, warn() {}, error() {}, debug() {} } } });
  const read = async ({ cursor }) => {
    const at = Number(cursor ?? 0);
    return { kind: 'page', entries: rows.slice(at), cursor: String(rows.length), hasMore: false };
  };
  const make = (more = {}) => {
    const now = { config, granted, ...more };
    return new Capture({ space: lease.space, settings: readSettings(now.config, ''), health, log, reader: Promise.resolve(read), granted: now.granted, lifecycle: true });
  };
  return { capture: make(), make, rows, stored, lines, health, end: () => lease.release() };
}

test('without the grant nothing is read, whatever event comes', async () => {
  const { capture, stored, health, end } = stage({ rows: [said('1', 'user', 'secret')], granted: false });
  capture.onRun(CTX);
  capture.onStored({ target: CTX, message: {} });
  await capture.read(CTX);
  await capture.readBeforeReset(CTX, [{ role: 'user', content: 'secret', __openclaw: { id: '1' } }]);
  await capture.readAll();
  await capture.stop();
  assert.deepEqual(stored, []);
  assert.match(health.report().features.capture.note, /openclaw strata setup/);
  await end();
});

test('a message that the engine will never take does not hold up the ones around it', async () => {
  const rows = [said('1', 'user', 'before'), said('2', 'user', 'HUGE'), said('3', 'assistant', 'after')];
  const { capture, stored, lines, end } = stage({
    rows,
    refuse: ({ messages }) => (messages.some(({ content }) => content === 'HUGE') ? 'too-large' : undefined),
  });
  capture.onRun(CTX);
  await capture.read(CTX);
  assert.deepEqual(
    stored.map(({ id }) => id),
    ['1', '3'],
  );
  assert.equal(lines.filter((line) => line.includes('not stored')).length, 1);
  await capture.read(CTX);
  assert.equal(stored.length, 2, 'and it is not tried again and again');
  await end();
});

test('a full disk is told once, and everything is there when it has room', async () => {
  let full = true;
  const { capture, stored, lines, health, end } = stage({ rows: [said('1', 'user', 'hello')], refuse: () => (full ? 'storage-full' : undefined) });
  capture.onRun(CTX);
  await capture.read(CTX);
  await capture.read(CTX);
  assert.equal(lines.length, 1);
  assert.match(health.promptLine(), /storage-full/);
  full = false;
  await capture.read(CTX);
  assert.deepEqual(
    stored.map(({ content }) => content),
    ['hello'],
  );
  assert.equal(health.promptLine(), '');
  await end();
});

test('a direct conversation belongs to who speaks in it', async () => {
  const ctx = { ...CTX, sessionKey: 'agent:main:telegram:direct:7' };
  const rows = [
    said('1', 'user', 'hi', { __openclaw: { senderIsOwner: false } }),
    said('2', 'assistant', 'hello'),
    said('3', 'user', 'it is me', { __openclaw: { senderIsOwner: true } }),
    said('4', 'assistant', 'welcome'),
  ];
  const { capture, stored, end } = stage({ rows });
  capture.onRun(ctx);
  await capture.read(ctx);
  assert.deepEqual(
    stored.map(({ id, user }) => [id, user]),
    [
      ['1', 'telegram:7'],
      ['2', 'telegram:7'],
      ['3', 'owner'],
      ['4', 'owner'],
    ],
  );
  await end();
});

test('an excluded session is counted and not read', async () => {
  const { capture, stored, end } = stage({ rows: [said('1', 'user', 'x')], config: { capture: { excludeAgents: ['main'] } } });
  capture.onRun(CTX);
  await capture.read(CTX);
  assert.deepEqual(stored, []);
  assert.deepEqual(capture.excluded, { 'agent main is excluded': 1 });
  await end();
});

/** One rule each: settings, a conversation that goes and one that stays (session key, more of the message), and settings that ask for it. */
const RULES = [
  ['an agent by glob', { excludeAgents: ['test-*'] }, ['agent:test-7:main'], ['agent:latest-7:main']],
  ['groups', { excludeChatTypes: ['group'] }, ['agent:main:telegram:group:1'], ['agent:main:telegram:channel:1']],
  ['channels', { excludeChatTypes: ['channel'] }, ['agent:main:discord:channel:1'], ['agent:main:telegram:group:1']],
  ['direct conversations', { excludeChatTypes: ['direct'] }, ['agent:main:telegram:direct:1'], ['agent:main:main']],
  ['the main conversation', { excludeChatTypes: ['main'] }, ['agent:main:main'], ['agent:main:telegram:direct:1']],
  [
    'a sender by glob',
    { excludeSenders: ['bot*'] },
    ['agent:main:telegram:group:1', { __openclaw: { senderName: 'BotWeather' } }],
    ['agent:main:telegram:group:1', { __openclaw: { senderName: 'Robot' } }],
  ],
  ['scheduled runs, unless asked for', {}, ['agent:main:cron:n'], ['agent:main:cron:n'], { cron: true }],
  ['subagents, unless asked for', {}, ['agent:main:subagent:x'], ['agent:main:subagent:x'], { subagents: true }],
  [
    'heartbeats, unless asked for',
    {},
    ['agent:main:main', { provenance: { kind: 'internal_system', sourceTool: 'heartbeat' } }],
    ['agent:main:main', { provenance: { kind: 'internal_system', sourceTool: 'heartbeat' } }],
    { heartbeat: true },
  ],
  ['incognito sessions, always', { cron: true, subagents: true }, ['agent:main:dashboard:incognito-1'], ['agent:main:dashboard:not-incognito-1']],
];

for (const [name, rule, [gone, goneMeta], [stays, staysMeta], asked] of RULES) {
  test(`left alone: ${name}`, async () => {
    const read = async (capture, sessionKey, meta) => {
      const one = stage({ rows: [said('1', 'user', 'hello', meta), said('2', 'assistant', 'hi')], config: { capture } });
      const ctx = { ...CTX, agentId: undefined, sessionKey };
      one.capture.onRun(ctx);
      await one.capture.read(ctx);
      await one.end();
      return one.stored.map(({ id }) => id);
    };
    assert.deepEqual(await read(rule, gone, goneMeta), []);
    assert.deepEqual(await read(asked ?? rule, stays, staysMeta), ['1', '2']);
  });
}

for (const [name, off] of [
  ['the grant is taken back', { granted: false }],
  ['capture is switched off', { config: { capture: { enabled: false } } }],
  ['the agent is left out', { config: { capture: { excludeAgents: ['main'] } } }],
  ['the chat type is left out', { config: { capture: { excludeChatTypes: ['main'] } } }],
]) {
  test(`what is said while ${name} stays out afterwards too`, async () => {
    const { capture, make, rows, stored, end } = stage({ rows: [said('1', 'user', 'before')] });
    const turn = async (one, id, text) => {
      one.onRun(CTX);
      // Stored a second ago: before memory is switched on again, and after the last reading.
      if (id) rows.push({ ...said(id, 'user', text), createdAt: new Date(Date.now() - (text === 'meanwhile' ? 1_000 : 0)).toISOString() });
      await one.read(CTX);
    };
    await turn(capture);
    await turn(make(off), '2', 'meanwhile');
    await turn(make(), '3', 'after');
    assert.deepEqual(
      stored.map(({ content }) => content),
      ['before', 'after'],
    );
    await end();
  });
}

test('a group keeps who said what, and a conversation of two does not', async () => {
  const rows = [said('1', 'user', 'hi', { __openclaw: { senderName: 'Ana' } }), said('2', 'user', 'hi', { __openclaw: { senderUsername: 'bo' } })];
  for (const [sessionKey, speakers] of [
    ['agent:main:telegram:group:1', ['Ana', 'bo']],
    ['agent:main:main', [undefined, undefined]],
  ]) {
    const { capture, stored, end } = stage({ rows });
    const ctx = { ...CTX, sessionKey };
    capture.onRun(ctx);
    await capture.read(ctx);
    assert.deepEqual(
      stored.map(({ speaker }) => speaker),
      speakers,
    );
    await end();
  }
});
