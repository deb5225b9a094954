/**
 * Sets headroom-ai, context-mode and this engine on the tool outputs of the same recorded sessions.
 *
 * Usage: node compare.mjs STRATA_BINARY PYTHON SESSION.json ...
 * Prints a row a session: tokens (o200k_base) of the tool outputs as recorded, and of what stands for them in the last
 * list; outputs that come back exactly; milliseconds. context-mode puts outputs into an index and gives a receipt
 * for each; what a search for an output's first line gives back is compared with the output.
 */

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';

const HERE = dirname(fileURLToPath(import.meta.url));
/** An answer that takes longer is none. */
const ANSWER_MS = 20_000;
const ANSWER_BYTES = 1 << 30;

const tokens = (texts) => texts.reduce((sum, text) => sum + countTokens(text, { allowedSpecial: 'all' }), 0);
const outputsOf = (messages) => messages.filter((message) => message.role === 'tool').map((message) => String(message.content));

function strata(binary, file, unread) {
  const started = performance.now();
  const document = JSON.parse(execFileSync(binary, ['replay', file, '--json', '--quiet'], { maxBuffer: ANSWER_BYTES }));
  const ms = performance.now() - started;
  // What stands for folded outputs is the message with the canvas.
  // Outputs behind the last answer were read by nobody yet; they stand as they are.
  const stands = document.last_list.filter((message) => message.role === 'tool' || String(message.content).startsWith('<current_task_context>'));
  return { after: [...stands.map((message) => String(message.content)), ...unread], exact: document.offloaded.filter((text) => text.exact).length, of: document.offloaded.length, ms };
}

function headroom(python, file) {
  const { outputs, exact, ms } = JSON.parse(execFileSync(python, [join(HERE, 'headroom_outputs.py'), file], { maxBuffer: ANSWER_BYTES, stdio: ['ignore', 'pipe', 'ignore'] }));
  return { after: outputs, exact, ms };
}

/** Runs `work` with a function that calls a tool of a fresh context-mode server. */
async function withContextMode(work) {
  const cwd = mkdtempSync(join(tmpdir(), 'context-mode-'));
  const entry = join(HERE, 'node_modules', 'context-mode', 'server.bundle.mjs');
  const env = { ...process.env, HOME: cwd, CLAUDE_PROJECT_DIR: cwd };
  const server = spawn(process.execPath, [entry], { cwd, env, stdio: ['pipe', 'pipe', 'ignore'] });
  const waiting = new Map();
  let next = 1;
  createInterface({ input: server.stdout }).on('line', (line) => {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return; // The server prints other lines too.
    }
    waiting.get(message.id)?.(message);
  });
  const ask = (method, params) =>
    new Promise((resolve, reject) => {
      const id = next++;
      const late = setTimeout(() => reject(new Error(`context-mode did not answer ${method} within ${ANSWER_MS} ms`)), ANSWER_MS);
      waiting.set(id, (message) => {
        clearTimeout(late);
        waiting.delete(id);
        resolve(message);
      });
      server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
  const call = async (name, args) => {
    const answer = await ask('tools/call', { name, arguments: args });
    return (answer.result?.content ?? []).map((part) => part.text ?? '').join('\n') || JSON.stringify(answer.error ?? {});
  };
  try {
    await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'side-by-side', version: '0' } });
    server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
    const names = (await ask('tools/list', {})).result.tools.map((tool) => tool.name);
    const named = (end) => names.find((name) => name.endsWith(end)) ?? names[0];
    return await work(call, named('index'), named('search'));
  } finally {
    const gone = new Promise((resolve) => server.once('exit', resolve));
    server.kill();
    await gone;
    rmSync(cwd, { recursive: true, force: true, maxRetries: 5 });
  }
}

function contextMode(outputs) {
  return withContextMode(async (call, index, search) => {
    const after = [];
    const started = performance.now();
    for (const [at, content] of outputs.entries()) after.push(await call(index, { content, source: `output ${at}` }));
    const ms = performance.now() - started;
    let exact = 0;
    for (const [at, content] of outputs.entries()) {
      const line = content.split('\n').find((text) => text.trim().length > 8) ?? content;
      exact += Number((await call(search, { queries: [line.slice(0, 200)], source: `output ${at}` })).includes(content));
    }
    return { after, exact, ms };
  });
}

const [binary, python, ...files] = process.argv.slice(2);
const share = (before, after) => `${after.toLocaleString('en')} (${((after / before - 1) * 100).toFixed(0)} %)`;
console.log('| session | outputs | tokens | strata | exact | ms, every turn | headroom | exact | ms | context-mode | exact | ms |');
console.log('| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |');
for (const file of files) {
  const { messages } = JSON.parse(readFileSync(file, 'utf8'));
  const outputs = outputsOf(messages);
  const unread = outputsOf(messages.slice(messages.findLastIndex((message) => message.role === 'assistant')));
  const before = tokens(outputs);
  const cells = [basename(file, '.json'), outputs.length, before.toLocaleString('en')];
  const ours = strata(binary, file, unread);
  cells.push(share(before, tokens(ours.after)), `${ours.exact} of ${ours.of}`, ours.ms.toFixed(0));
  const theirs = headroom(python, file);
  cells.push(share(before, tokens(theirs.after)), theirs.exact, theirs.ms.toFixed(0));
  const indexed = await contextMode(outputs).catch((error) => ({ error: error.message }));
  if (indexed.error) cells.push(indexed.error, '', '');
  else cells.push(share(before, tokens(indexed.after)), indexed.exact, indexed.ms.toFixed(0));
  console.log(`| ${cells.join(' | ')} |`);
}
