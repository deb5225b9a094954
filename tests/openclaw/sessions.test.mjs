import assert from 'node:assert/strict';
import { test } from 'node:test';
import { excludedSession, excludedTurn, isSilentReply, matchesGlob } from '../../js-shim/openclaw/rules.js';
import { describeSession, memoryOwner } from '../../js-shim/openclaw/sessions.js';

const KEYS = [
  ['agent:main:main', 'main', '', '', 'owner'],
  ['agent:main:my-app-thread-7', 'main', '', '', 'owner'],
  ['agent:work:telegram:direct:4711', 'direct', 'telegram', '4711', 'telegram:4711'],
  ['agent:main:whatsapp:acct:direct:+351:99', 'direct', 'whatsapp', '+351:99', 'whatsapp:+351:99'],
  ['agent:main:direct:alice', 'direct', '', 'alice', 'alice'],
  ['agent:main:discord:channel:55:thread:9', 'channel', 'discord', '55', 'discord:channel:55'],
  ['agent:main:telegram:group:-100', 'group', 'telegram', '-100', 'telegram:group:-100'],
  ['agent:main:cron:nightly:run:3', 'cron', '', '', 'owner'],
  ['agent:main:subagent:abc', 'subagent', '', '', 'owner'],
  ['main', 'main', '', '', 'owner'],
  ['', 'main', '', '', 'owner'],
];

test('a session key says what kind of conversation it is and whose memory it belongs to', () => {
  for (const [key, kind, channel, peer, owner] of KEYS) {
    const session = describeSession(key);
    assert.deepEqual([session.kind, session.channel, session.peer, memoryOwner(session)], [kind, channel, peer, owner], key);
    assert.equal(session.incognito, false, key);
  }
  assert.equal(describeSession('agent:work:x').agentId, 'work');
  assert.equal(describeSession('agent:main:dashboard:incognito-1').incognito, true);
  assert.equal(describeSession('agent:main:dashboard:not-incognito-1').incognito, false);
});

test("the operator's own direct conversation is the operator's memory, a stranger's is not", () => {
  const session = describeSession('agent:main:telegram:direct:4711');
  assert.equal(memoryOwner(session, true), 'owner');
  assert.equal(memoryOwner(session, false), 'telegram:4711');
  assert.equal(memoryOwner(describeSession('agent:main:telegram:group:1'), true), 'telegram:group:1');
});

const OPEN = { excludeAgents: [], excludeChatTypes: [], excludeSenders: [], cron: false, heartbeat: false, subagents: false };

test('runs that no person started are left alone unless asked for', () => {
  const left = [
    ['agent:main:cron:n:run:1'],
    ['agent:main:main', 'cron'],
    ['agent:main:main', 'heartbeat'],
    ['agent:main:subagent:x'],
    ['agent:main:acp:x'],
    ['agent:main:dashboard:incognito-1'],
  ];
  for (const [key, trigger] of left) assert.ok(excludedSession(OPEN, key, trigger), `${key} ${trigger}`);
  const all = { ...OPEN, cron: true, heartbeat: true, subagents: true };
  for (const [key, trigger] of left.slice(0, -1)) assert.equal(excludedSession(all, key, trigger), undefined, `${key} ${trigger}`);
  assert.ok(excludedSession(all, 'agent:main:dashboard:incognito-1'), 'incognito cannot be asked for');
  for (const key of ['agent:main:main', 'agent:main:telegram:direct:1', 'agent:main:telegram:group:1', 'agent:cronus:main'])
    assert.equal(excludedSession(OPEN, key, 'user'), undefined, key);
});

test('agents, chat types and senders can be left out, and only those', () => {
  const rules = { ...OPEN, excludeAgents: ['test-*'], excludeChatTypes: ['group'], excludeSenders: ['bot*'] };
  assert.ok(excludedSession(rules, 'agent:test-7:main', 'user'));
  assert.equal(excludedSession(rules, 'agent:latest-7:main', 'user'), undefined);
  assert.ok(excludedSession(rules, 'agent:main:telegram:group:1', 'user'));
  assert.equal(excludedSession(rules, 'agent:main:telegram:channel:1', 'user'), undefined);
  const from = (senderName) => ({ role: 'user', content: 'x', __openclaw: { senderName } });
  assert.ok(excludedTurn(rules, from('BotWeather')));
  assert.equal(excludedTurn(rules, from('Robot')), undefined);
});

test('a turn is left out by where its message came from, not by what it says', () => {
  const said = (provenance, more = {}) => ({ role: 'user', content: 'HEARTBEAT check the cron job', ...(provenance ? { provenance } : {}), ...more });
  assert.equal(excludedTurn(OPEN, said()), undefined, 'a person may talk about heartbeats');
  assert.equal(excludedTurn(OPEN, said({ kind: 'external_user' })), undefined);
  assert.ok(excludedTurn(OPEN, said({ kind: 'internal_system', sourceTool: 'heartbeat' })));
  assert.equal(excludedTurn({ ...OPEN, heartbeat: true }, said({ kind: 'internal_system', sourceTool: 'heartbeat' })), undefined);
  assert.ok(
    excludedTurn({ ...OPEN, heartbeat: true, cron: true, subagents: true }, said({ kind: 'internal_system', sourceTool: 'memory_search' })),
    "recalled memory is nobody's words",
  );
  assert.ok(excludedTurn(OPEN, said({ kind: 'inter_session' })));
  assert.ok(excludedTurn(OPEN, said(undefined, { excludeFromContext: true })), 'a command');
});

test('globs match whole names and nothing is a pattern but * and ?', () => {
  for (const [glob, text, is] of [
    ['a*', 'abc', true],
    ['a*', 'bac', false],
    ['a.c', 'abc', false],
    ['a?c', 'abc', true],
    ['(x', '(x', true],
    ['*', 'anything', true],
    ['', 'a', false],
  ])
    assert.equal(matchesGlob(glob, text), is, `${glob} ${text}`);
});

test('silent replies are the exact words only', () => {
  assert.ok(isSilentReply(' NO_REPLY\n'));
  assert.equal(isSilentReply('NO_REPLY is what I would send'), false);
});
