import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { stripInjected, stripMessage } from '../../js-shim/openclaw/strip.js';

const VECTORS = JSON.parse(fs.readFileSync(new URL('./strip-vectors.json', import.meta.url), 'utf8'));

/** Pieces from which every shape of a block, a half block and a harmless tag can be put together. */
const PIECES = [
  '<relevant-memories>',
  '</relevant-memories>',
  '\n',
  ' ',
  'x',
  '<',
  'Recalled from earlier sessions',
  '<user-persona>\n',
  '</user-persona>',
  '<history_task_context f>\n',
  '</history_task_context>',
  '你好',
  '\r\n',
  '\t',
  '😀',
];

/** Returns `count` texts of up to 30 pieces; the same for the same seed. */
function generated(count, seed) {
  let state = seed;
  const next = (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  return Array.from({ length: count }, () => Array.from({ length: next(30) }, () => PIECES[next(PIECES.length)]).join(''));
}

test('what memory put in goes, and nothing else', () => {
  for (const { about, text, kept } of VECTORS) assert.equal(stripInjected(text), kept, about);
});

test('stripping twice is stripping once', () => {
  for (const text of generated(3_000, 7)) assert.equal(stripInjected(stripInjected(text)), stripInjected(text), JSON.stringify(text));
});

test('a text of opening tags is not searched again and again', () => {
  const text = '<relevant-memories>\n'.repeat(20_000);
  const started = performance.now();
  assert.equal(stripInjected(text), text);
  assert.ok(performance.now() - started < 5_000);
});

test('only user messages change, and only their text', () => {
  const block = VECTORS[0].text;
  assert.deepEqual(stripMessage({ role: 'user', content: block, timestamp: 1 }), { role: 'user', content: 'What now?', timestamp: 1 });
  const image = { type: 'image', data: 'x' };
  assert.deepEqual(stripMessage({ role: 'user', content: [image, { type: 'text', text: block }] }).content, [image, { type: 'text', text: 'What now?' }]);
  for (const message of [
    { role: 'assistant', content: block },
    { role: 'user', content: 'plain' },
    { role: 'user' },
    undefined,
    { role: 'user', content: [{ type: 'text' }, null] },
  ])
    assert.equal(stripMessage(message), undefined);
});

test('the engine gives the same bytes', async (t) => {
  const built = fs.existsSync(new URL('../../js-shim/dist/engine.js', import.meta.url));
  if (!built) return t.skip('the Node package is not built');
  const { beforeMessageWriteSync } = await import('../../js-shim/src/index.js');
  for (const text of [...VECTORS.map((vector) => vector.text), ...generated(3_000, 11)]) {
    assert.equal(stripInjected(text), beforeMessageWriteSync({ content: text }), JSON.stringify(text));
  }
});
