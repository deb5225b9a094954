import assert from 'node:assert/strict';
import { test } from 'node:test';
import { registerUsage, reportFor } from '../../js-shim/openclaw/usage.js';

/** A plugin API that keeps its handlers, and a space that keeps its calls. */
function stage() {
  const handlers = {};
  const calls = [];
  const space = {
    overheads: new Map(),
    besides: new Map(),
    assembled: new Map(),
    remember: (map, key, value) => map.set(key, value),
    call: async (method, args) => void calls.push([method, ...args]),
  };
  registerUsage({ on: (name, handler) => (handlers[name] = handler) }, { space, settings: { offload: { enabled: true } }, log() {} });
  const ctx = { sessionKey: 'agent:main:main' };
  return {
    space,
    calls,
    assembled: (tokens) => space.assembled.set(ctx.sessionKey, { model: 'm', tokens }),
    asked: (systemPrompt, prompt) => handlers.llm_input({ systemPrompt, prompt, tools: [] }, ctx),
    answered: (input, role = 'assistant') => handlers.before_message_write({ message: { role, usage: { input, cacheRead: 0, cacheWrite: 0 } } }, ctx),
  };
}

const CHARS_1000 = 'x'.repeat(4_000);

test('the first answer after an assembly reports what is left for the list, and only the first', () => {
  const { calls, assembled, asked, answered } = stage();
  assembled(9_000);
  asked(CHARS_1000, CHARS_1000);
  assert.equal(answered(12_001), undefined, 'the message is stored as it is');
  answered(30_000);
  assert.deepEqual(calls, [['reportUsage', 'm', 9_000, 10_000]], 'the tools, `[]`, are one token');
});

test('without an assembly, or of a message that no model made, nothing is reported', () => {
  const { calls, assembled, asked, answered } = stage();
  asked(CHARS_1000, CHARS_1000);
  answered(12_000);
  assembled(9_000);
  asked(CHARS_1000, CHARS_1000);
  answered(12_000, 'user');
  answered(12_000, 'toolResult');
  assert.deepEqual(calls, []);
});

test('a report that says more about the rest than about the list is not made', () => {
  assert.equal(reportFor(1_001, { input: 2_000 }), undefined, 'less than half');
  assert.equal(reportFor(1_000, { input: 2_000 }), 1_000, 'half');
  assert.equal(reportFor(1_000, { input: 1_000, cacheRead: 700, cacheWrite: 300 }), 1_000, 'with what the cache held');
  assert.equal(reportFor(undefined, { input: 2_000 }), undefined, 'the rest is not known');
  assert.equal(reportFor(3_000, { input: 2_000 }), undefined, 'the rest is larger than the whole');
  assert.equal(reportFor(1_000, undefined), undefined, 'no usage');
});
