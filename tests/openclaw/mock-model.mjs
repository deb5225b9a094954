// An OpenAI-compatible model on loopback whose answers the test writes down beforehand.
//
// It is strict: a request that no rule covers is answered with HTTP 500 and kept in `unexpected`, and
// the test that caused it fails. Every request is kept, because what the model was actually sent is what
// these tests are about.
import http from 'node:http';

/** Returns the text of an OpenAI message's content, whichever of the two shapes it has. */
export function textOf(content) {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? content.map((part) => part.text ?? '').join('') : '';
}

/**
 * Starts the server and returns it.
 *
 * `rules` is an ordered array of functions `(request) => answer | undefined`; the first answer wins. An
 * answer is `{ text }`, `{ calls: [{ name, args }] }`, `{ status, body }` for a failure, or any of these
 * with `delayMs`. A request is `{ body, system, users, lastUser, tools, kind }`, where `lastUser` is all
 * user text after the last assistant message and `kind` is "agent" when tools were offered, else "plain".
 */
export async function startMockModel({ embeddingDimensions = 64 } = {}) {
  const model = { requests: [], unexpected: [], embeddings: 0, rules: [], port: 0, baseUrl: '' };
  const sockets = new Set();
  const server = http.createServer((req, res) => {
    const chunks = [];
    req.on('data', (chunk) => chunks.push(chunk));
    req.on('end', () => answer(model, req, res, Buffer.concat(chunks).toString('utf8'), embeddingDimensions));
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  model.port = server.address().port;
  model.baseUrl = `http://127.0.0.1:${model.port}/v1`;
  model.close = () => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  };
  /** Returns the agent requests whose newest user text contains `text`. */
  model.agentRequests = (text) => model.requests.filter((r) => r.kind === 'agent' && r.lastUser.includes(text));
  return model;
}

function answer(model, req, res, data, embeddingDimensions) {
  if (req.method === 'GET' && req.url.endsWith('/models')) {
    return json(res, 200, { object: 'list', data: [{ id: 'mock-1', object: 'model' }] });
  }
  let body;
  try {
    body = JSON.parse(data || '{}');
  } catch {
    return json(res, 400, { error: { message: 'not JSON' } });
  }
  if (req.url.endsWith('/embeddings')) {
    const inputs = Array.isArray(body.input) ? body.input : [body.input];
    model.embeddings += inputs.length;
    const data = inputs.map((text, index) => ({ object: 'embedding', index, embedding: hashedWords(String(text), embeddingDimensions) }));
    return json(res, 200, { object: 'list', model: body.model, data, usage: { prompt_tokens: 1, total_tokens: 1 } });
  }
  const request = describe(body);
  model.requests.push(request);
  let reply;
  for (const rule of model.rules) {
    reply = rule(request);
    if (reply) break;
  }
  if (!reply) {
    model.unexpected.push(request);
    reply = { status: 500, body: { error: { message: 'the mock model was not told of this request' } } };
  }
  request.reply = reply;
  const send = () =>
    reply.status ? json(res, reply.status, reply.body ?? { error: { message: 'mock failure' } }) : complete(res, body, reply, model.requests.length);
  reply.delayMs ? setTimeout(send, reply.delayMs) : send();
}

function describe(body) {
  const messages = body.messages ?? [];
  const lastAssistant = messages.map((m) => m.role).lastIndexOf('assistant');
  const users = messages.filter((m) => m.role === 'user').map((m) => textOf(m.content));
  const tail = messages.slice(lastAssistant + 1);
  return {
    at: Date.now(),
    body,
    kind: (body.tools ?? []).length > 0 ? 'agent' : 'plain',
    system: messages
      .filter((m) => m.role === 'system' || m.role === 'developer')
      .map((m) => textOf(m.content))
      .join('\n'),
    users,
    lastUser: tail
      .filter((m) => m.role === 'user')
      .map((m) => textOf(m.content))
      .join('\n'),
    // The newest words of the person; OpenClaw adds user messages of its own.
    question: users.filter((text) => !text.startsWith('<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT')).at(-1) ?? '',
    toolCount: messages
      .slice(messages.findLastIndex((m) => m.role === 'user' && !textOf(m.content).startsWith('<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT')))
      .filter((m) => m.role === 'tool').length,
    // OpenClaw may put an internal user message after a tool's result, so look at all that follows the assistant.
    toolResults: tail.filter((m) => m.role === 'tool').map((m) => textOf(m.content)),
    tools: (body.tools ?? []).map((t) => t.function?.name ?? t.name),
  };
}

function complete(res, body, reply, serial) {
  const id = `chatcmpl-mock-${serial}`;
  const usage = reply.usage ?? { prompt_tokens: Math.ceil(JSON.stringify(body.messages ?? []).length / 4), completion_tokens: 10, total_tokens: 0 };
  usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
  const calls = (reply.calls ?? []).map((call, index) => ({
    index,
    id: call.id ?? `call_${serial}_${index}`,
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.args ?? {}) },
  }));
  const finish = calls.length ? 'tool_calls' : 'stop';
  if (!body.stream) {
    const message = { role: 'assistant', content: reply.text ?? null, ...(calls.length ? { tool_calls: calls } : {}) };
    return json(res, 200, { id, object: 'chat.completion', created: 1, model: body.model, choices: [{ index: 0, message, finish_reason: finish }], usage });
  }
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const chunk = (delta, finish_reason, extra = {}) =>
    res.write(
      `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 1, model: body.model, choices: [{ index: 0, delta, finish_reason }], ...extra })}\n\n`,
    );
  chunk({ role: 'assistant', content: '' }, null);
  if (reply.text) chunk({ content: reply.text }, null);
  if (calls.length) chunk({ tool_calls: calls }, null);
  chunk({}, finish);
  res.write(`data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 1, model: body.model, choices: [], usage })}\n\n`);
  res.end('data: [DONE]\n\n');
}

/** A bag-of-words vector: texts that share words are near. Deterministic, and good enough to rank by. */
function hashedWords(text, dimensions) {
  const vector = new Array(dimensions).fill(0);
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []) {
    let hash = 2166136261;
    for (const c of word) hash = Math.imul(hash ^ c.codePointAt(0), 16777619);
    vector[(hash >>> 0) % dimensions] += 1;
  }
  const norm = Math.hypot(...vector) || 1;
  return vector.map((x) => x / norm);
}

function json(res, status, value) {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(JSON.stringify(value));
}
