import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostModel } from '../../js-shim/openclaw/model.js';

const REQUEST = { purpose: 'l1-extract', system: 's', prompt: 'p', schemaJson: '{"type":"object"}', maxTokens: 100, timeoutMs: 1_000 };
const GOOD = { text: '{}', provider: 'p', model: 'm', stopReason: 'stop', usage: { inputTokens: 3, outputTokens: 4 } };
/** What OpenClaw 2026.9.6 resolves with when the service answers 503, or refuses the request. */
const NOTHING = { text: '', provider: 'p', model: 'm', stopReason: 'error' };

/** A host's model that answers by `answer(params)`, and what was sent to it. */
function stage(answer) {
  const sent = [];
  const states = [];
  const api = { runtime: { llm: { complete: async (params) => (sent.push(params), answer(params, sent.length)) } } };
  const settings = { model: { source: 'host', byLayer: {}, maxTokens: 4_096 } };
  const health = { set: (name, ok, note) => states.push([ok, note]) };
  const complete = hostModel(api, settings, health, () => {}, { run: (call) => call() });
  return { complete, sent, states };
}

test('an answer that is none is a failure, not an empty answer', async () => {
  const { complete, states } = stage(() => NOTHING);
  await assert.rejects(complete(REQUEST), /gave no answer/);
  assert.deepEqual(states.at(-1)[0], false);
  await assert.rejects(stage(() => ({ ...NOTHING, stopReason: 'aborted' })).complete(REQUEST), /gave no answer/);
});

test('an empty answer that a model did give is data', async () => {
  const { complete } = stage(() => ({ ...GOOD, text: '' }));
  assert.equal((await complete(REQUEST)).text, '');
});

test('a service that refuses schemas is asked without one, and after some refusals with none', async () => {
  const { complete, sent } = stage(({ responseFormat }) => (responseFormat ? NOTHING : GOOD));
  for (let n = 0; n < 5; n += 1) assert.equal((await complete(REQUEST)).text, '{}');
  assert.deepEqual(
    sent.map(({ responseFormat }) => Boolean(responseFormat)),
    [true, false, true, false, true, false, false, false],
  );
});

test('a service that was down for a moment goes on getting schemas', async () => {
  const { complete, sent } = stage((_, n) => (n === 1 || n === 4 || n === 7 ? NOTHING : GOOD));
  for (let n = 0; n < 6; n += 1) await complete(REQUEST);
  assert.equal(Boolean(sent.at(-1).responseFormat), true);
});

test('a call that was given up is not made again', async () => {
  const { complete, sent } = stage(() => NOTHING);
  await assert.rejects(complete(REQUEST, AbortSignal.abort()));
  assert.equal(sent.length, 1);
});
