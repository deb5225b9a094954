import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readCount, registerUsage } from '../../js-shim/openclaw/usage.js';

/** A plugin API that keeps its handlers, and a space that keeps its calls. */
function stage() {
  const handlers = {};
  const calls = [];
  const space = {
    overheads: new Map(),
    prompts: new Map(),
    assembled: new Map(),
    remember: (map, key, value) => map.set(key, value),
    call: async (method, ...args) => void calls.push([method, ...args.flat()]),
  };
  registerUsage({ on: (name, handler) => (handlers[name] = handler) }, { space, settings: { offload: { enabled: true } }, log() {} });
  const ctx = { sessionKey: 'agent:main:main' };
  const turn = (listTokens, wholeTokens, role = 'assistant') => {
    if (listTokens !== undefined) space.assembled.set(ctx.sessionKey, { model: 'm', tokens: listTokens });
    handlers.llm_input({ systemPrompt: 'x'.repeat(4_000), prompt: 'x'.repeat(400), tools: [] }, ctx);
    const rewritten = handlers.before_message_write({ message: { role, usage: { input: wholeTokens, cacheRead: 0, cacheWrite: 0 } } }, ctx);
    assert.equal(rewritten, undefined, 'the message is stored as it is');
  };
  return { calls, turn, overhead: () => space.overheads.get(ctx.sessionKey) };
}

test('a short list shows what the rest costs, and a long one is reported without it', () => {
  const { calls, turn, overhead } = stage();
  turn(0, 12_100);
  assert.deepEqual(overhead(), { tokens: 12_000, counted: true });
  assert.deepEqual(calls, []);
  turn(20_000, 37_100);
  assert.deepEqual(calls, [['reportUsage', 'm', 20_000, 25_000]]);
});

test('only the first answer after an assembly counts, and only a model counts', () => {
  const { calls, turn } = stage();
  turn(0, 12_100);
  turn(20_000, 37_100, 'user');
  turn(undefined, 37_100);
  turn(undefined, 60_000);
  assert.equal(calls.length, 1, 'the answer that follows the message of the user');
});

test('until a model has counted, the system prompt stands for the rest', () => {
  const { turn, overhead } = stage();
  turn(undefined, 5_000);
  assert.deepEqual(overhead(), { tokens: 1_000, counted: false });
});

test('a count says what it can, and nothing that it cannot', () => {
  const counted = { tokens: 10_000, counted: true };
  const read = (wholeTokens, listTokens, overhead) => readCount({ wholeTokens, listTokens, promptTokens: 100, overhead });
  assert.deepEqual(read(40_000, 20_000, undefined), { overhead: { tokens: 19_900, counted: false } }, 'a session that was long when the process began');
  assert.deepEqual(read(40_000, 20_000, { tokens: 1_000, counted: false }), { overhead: { tokens: 19_900, counted: false } });
  assert.deepEqual(read(15_000, 4_000, counted), {}, 'the list is the smaller part');
  assert.deepEqual(read(0, 20_000, counted), {}, 'no usage');
  assert.deepEqual(read(0, 0, counted), {}, 'no usage and no list');
  assert.deepEqual(read(13_100, 1_000, counted), { overhead: { tokens: 12_000, counted: true } }, 'the newest short list counts');
});
