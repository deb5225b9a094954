/** Requests: they are performed on the caller's thread, never hold up a call, and always end. */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { openMemory } from '../src/index.js';
import { EmbeddingModel } from '../src/models.js';
import { temporaryDirectory } from './temporary.js';

const TURN = { messages: [{ role: 'user', content: 'I have lived in Oslo since May.' }, { role: 'assistant', content: 'How nice.' }] };

/** An extraction of one fact from `TURN`. */
const EXTRACTED = JSON.stringify({
  scenes: [{ scene: 'Where the user lives', memories: [{ content: 'The user lives in Oslo.', type: 'persona', priority: 80, sources: [{ id: 'm1', quote: 'lived in Oslo' }], start: '', end: '' }] }],
});

/** Returns the model answer that is right for a request. */
function answer(request) {
  return request.purpose === 'l1-extract' ? EXTRACTED : '{}';
}

/** A promise and its two ends. */
function deferred() {
  let resolve;
  let reject;
  const promise = new Promise((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
}

/** Starts a service that answers with `handle(body, request)`; `undefined` is never answered. */
async function service(handle) {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const [status, body] = (await handle(JSON.parse(Buffer.concat(chunks)), request)) ?? [];
    if (status === undefined) return;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}/v1`;
}

test('a model function makes memories that come back in a later prompt', async () => {
  const requests = [];
  const memory = await openMemory({
    dir: temporaryDirectory(),
    llm: async (request) => {
      requests.push(request);
      return { text: answer(request), model: 'scripted', inputTokens: 7, outputTokens: 3 };
    },
  });
  await memory.agentEnd(TURN);
  await memory.idle();
  assert.equal(requests[0].purpose, 'l1-extract');
  assert.match(requests[0].prompt, /lived in Oslo/);
  assert.ok(requests[0].timeoutMs > 0 && requests[0].maxTokens > 0);
  const injection = await memory.beforePromptBuild({ prompt: 'Where do I live? Oslo?' });
  assert.match(injection.dynamic, /The user lives in Oslo\./);
  assert.equal(memory.beforeMessageWriteSync({ content: `${injection.dynamic}Where do I live?` }), 'Where do I live?');
  const found = await memory.callTool({ name: 'memory_search', argumentsJson: '{"query": "Oslo"}' });
  assert.match(found.text, /The user lives in Oslo\./);
  const [atom] = JSON.parse(found.structuredJson).results;
  assert.match(JSON.stringify(await memory.memory.trace(atom.id)), /I have lived in Oslo since May/);
  await memory.close();
});

test('a request that is never answered holds nothing up', async () => {
  const asked = deferred();
  const memory = await openMemory({
    dir: temporaryDirectory(),
    llm: (request, signal) => {
      asked.resolve(signal);
      return new Promise(() => {});
    },
  });
  await memory.agentEnd(TURN);
  const signal = await asked.promise;
  await memory.beforePromptBuild({ prompt: 'Where do I live?' });
  await memory.agentEnd({ messages: [{ role: 'user', content: 'Something else.' }], scope: { session: 'other' } });
  await memory.status();
  assert.equal(signal.aborted, false);
  await memory.close();
  assert.equal(signal.aborted, true, 'closing aborts what is under way');
});

test('a request of a closed memory is asked again by the next one', async () => {
  const dir = temporaryDirectory();
  const asked = deferred();
  const first = await openMemory({
    dir,
    llm: () => {
      asked.resolve();
      return new Promise(() => {});
    },
  });
  await first.agentEnd(TURN);
  await asked.promise;
  await first.close();
  const second = await openMemory({ dir, llm: answer });
  await second.idle();
  assert.equal((await second.status()).atoms, 1);
  await second.close();
});

test('a model that fails, in whatever way, loses no message', async () => {
  const failures = [
    () => {
      throw new Error('at once');
    },
    async () => {
      throw new Error('later');
    },
    async () => Promise.reject('no error object'),
    async () => undefined,
    async () => ({ text: 7 }),
    async () => 'not JSON',
  ];
  for (const llm of failures) {
    const memory = await openMemory({ dir: temporaryDirectory(), llm });
    await memory.agentEnd(TURN);
    await memory.idle();
    assert.equal((await memory.status()).messages, 2);
    await memory.close();
  }
});

test('an engine that traps while a request is out asks again', async () => {
  const asked = [];
  const twice = deferred();
  const memory = await openMemory({
    dir: temporaryDirectory(),
    memoryLimitBytes: 64 << 20,
    callTimeoutMs: 600_000,
    llm: (request, signal) => {
      asked.push(signal);
      if (asked.length === 2) twice.resolve();
      return asked.length === 1 ? new Promise(() => {}) : answer(request);
    },
  });
  await memory.agentEnd(TURN);
  while (asked.length === 0) await memory.status();
  const tooMuch = { messages: Array.from({ length: 8 }, () => ({ role: 'user', content: 'x'.repeat(10 << 20) })) };
  assert.equal((await memory.agentEnd(tooMuch).catch((error) => error)).code, 'trap');
  assert.equal(asked[0].aborted, true);
  await twice.promise;
  await memory.idle();
  assert.equal((await memory.status()).atoms, 1);
  await memory.close();
});

test('a service is asked as OpenAI defines it, with the key and the schema', async () => {
  const seen = [];
  const url = await service((body, request) => {
    seen.push({ body, path: request.url, authorization: request.headers.authorization });
    return [200, { model: 'served', choices: [{ message: { content: EXTRACTED } }], usage: { prompt_tokens: 5, completion_tokens: 2 } }];
  });
  const memory = await openMemory({ dir: temporaryDirectory(), llm: { url: `${url}/`, model: 'small', key: 'secret-key' } });
  await memory.agentEnd(TURN);
  await memory.idle();
  assert.equal(seen[0].path, '/v1/chat/completions');
  assert.equal(seen[0].authorization, 'Bearer secret-key');
  assert.equal(seen[0].body.model, 'small');
  assert.equal(seen[0].body.messages.at(-1).role, 'user');
  assert.ok(seen[0].body.max_tokens > 0);
  assert.equal(seen[0].body.response_format.type, 'json_schema');
  assert.equal(typeof seen[0].body.response_format.json_schema.schema, 'object');
  assert.equal((await memory.status()).atoms, 1);
  await memory.close();
});

test('the key of a service is in no reason of a failure', async () => {
  const url = await service(() => [401, 'no such key']);
  const lines = [];
  const memory = await openMemory({ dir: temporaryDirectory(), llm: { url, model: 'small', key: 'secret-key' }, log: (level, text) => lines.push(text) });
  await memory.agentEnd(TURN);
  await memory.idle();
  const status = JSON.stringify(await memory.status());
  assert.match(status, /401/);
  assert.doesNotMatch(status + lines.join(), /secret-key/);
  await memory.close();
});

test('closing aborts a request to a service', async () => {
  const asked = deferred();
  const gone = deferred();
  const url = await service((_, request) => {
    request.socket.on('close', gone.resolve);
    asked.resolve();
  });
  const memory = await openMemory({ dir: temporaryDirectory(), llm: { url, model: 'small' } });
  await memory.agentEnd(TURN);
  await asked.promise;
  await memory.close();
  await gone.promise;
});

test('an embedding model is asked for a prompt, and a silent one does not hold it', async () => {
  const texts = [];
  const embed = { model: 'three', dimensions: 3, embed: async (batch) => batch.map((text) => (texts.push(text), [text.length, 1, 0])) };
  const memory = await openMemory({ dir: temporaryDirectory(), embed });
  await memory.beforePromptBuild({ prompt: 'Where do I live?' });
  assert.ok(texts.includes('Where do I live?'));
  await memory.close();
  const silent = await openMemory({ dir: temporaryDirectory(), embed: { ...embed, embed: () => new Promise(() => {}) } });
  await silent.beforePromptBuild({ prompt: 'Where do I live?' });
  await silent.close();
});

test('an embedding service without dimensions is asked once for them', async () => {
  const seen = [];
  const learned = deferred();
  const url = await service((body, request) => {
    seen.push({ path: request.url, input: body.input });
    learned.resolve();
    return [200, { data: body.input.map((_, index) => ({ index, embedding: [1, 2, 3, 4] })).reverse() }];
  });
  const memory = await openMemory({ dir: temporaryDirectory(), embed: { url, model: 'vectors' } });
  await learned.promise;
  assert.deepEqual(seen[0], { path: '/v1/embeddings', input: ['memory'] });
  await memory.close();
});

test('an embedding service that is down at the start is asked again later and later, until it answers or is not needed', async () => {
  let down = 9;
  const model = new EmbeddingModel(async () => {
    if (down-- > 1) throw new Error('refused');
    return down === 0 ? [[]] : [[1, 2, 3]];
  });
  const [failures, pauses] = [[], []];
  await model.learn(new AbortController().signal, (error) => failures.push(error.message), async (ms) => void pauses.push(ms / 1000));
  assert.deepEqual(pauses, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
  assert.deepEqual(failures.slice(-2), ['refused', 'the embedding model returned no vector']);
  assert.deepEqual(model.model, { name: 'host', dimensions: 3, batch: 64 });

  const over = new AbortController();
  const other = new EmbeddingModel(async () => assert.fail('refused'));
  const learning = other.learn(over.signal, () => over.abort());
  await learning;
  assert.equal(other.model, undefined);
});

test('the newest handle that has a model serves; its leaving gives the place back', async () => {
  const dir = temporaryDirectory();
  const asked = [];
  const model = (name) => (request) => (asked.push(name), answer(request));
  const first = await openMemory({ dir, llm: model('first') });
  const second = await openMemory({ dir, llm: model('second') });
  await first.agentEnd({ ...TURN, scope: { session: 'a' } });
  await first.idle();
  await second.close();
  await first.agentEnd({ ...TURN, scope: { session: 'b' } });
  await first.idle();
  assert.equal(asked[0], 'second');
  assert.equal(asked.at(-1), 'first');
  await first.close();
});
