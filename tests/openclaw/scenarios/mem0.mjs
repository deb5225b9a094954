// The same thirty facts, stated and asked, with this plugin and with @mem0/openclaw-mem0 (self-hosted).
//
// Both get the same OpenClaw, the same mock model, and a perfect extractor: whatever fact is in the messages
// that a plugin sends to the model comes back as one memory, word for word. What differs is what each does
// with it. mem0's embeddings come from the mock (bags of words); ours are built in.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { cacheDir } from '../deps.mjs';
import { OpenClaw } from '../gateway.mjs';
import { startMockModel, textOf } from '../mock-model.mjs';
import { acknowledge, hostChores, memoryWork, purposeOf } from '../replies.mjs';
import { ask, stage } from '../stage.mjs';

const FACTS = JSON.parse(fs.readFileSync(new URL('../facts.json', import.meta.url), 'utf8'));
const MEM0 = '@mem0/openclaw-mem0@1.0.16';
const NONE = 'no memory';
const OURS = 'strata';
const MEM0_NAME = 'mem0 1.0.16';
/** The rule of thumb by which injected text is given in tokens. */
const CHARS_PER_TOKEN = 4;
/** The size of vectors that mem0 asks of an embedder when it is not told otherwise. */
const MEM0_DIMENSIONS = 1536;
/** Longest that npm may take for mem0 and what it needs; 173 s were measured at a load of 10. */
const INSTALL_TIMEOUT_MS = 900_000;
/** Longest wait for background work after everything was said. */
const SETTLE_MS = 120_000;

/**
 * States every fact in one session of an OpenClaw without a memory, of one with ours and of one with mem0, and waits for
 * their background work. Returns those that it worked with, running.
 */
export async function tell30(checks, { tgz, root }) {
  const peers = [];
  for (const [name, open] of [
    [NONE, () => bare(root)],
    [OURS, () => ours(tgz, root)],
    [MEM0_NAME, () => mem0(root)],
  ]) {
    await checks.scenario(`thirty facts: ${name} is told`, async () => {
      const place = await open();
      try {
        await place.host.start();
        for (const { says } of FACTS) await place.host.turn('agent:main:stating', says);
        await place.settled(place.host, place.model);
      } catch (error) {
        await place.end();
        throw error;
      }
      peers.push({ name, ...place });
    });
  }
  return peers;
}

/** Asks each for every fact, in turn, so that all are timed on the same machine at the same time. */
export async function ask30(checks, peers) {
  await checks.scenario('thirty facts: asked', async () => {
    const results = new Map(peers.map(({ name }) => [name, { name, found: 0, inject: 0, durations: [], missed: [] }]));
    for (const [n, fact] of FACTS.entries()) for (const peer of peers) await askFor(fact, n, peer, results.get(peer.name));
    for (const result of results.values()) {
      result.inject = Math.round(result.inject / FACTS.length);
      result.durations.sort((a, b) => a - b);
      result.turnMs = Math.round(result.durations[Math.floor(FACTS.length / 2)]);
      checks.figure(
        result.name,
        `${result.found} of ${FACTS.length} facts in the request that asks; ${result.inject} characters of prompt; median turn ${result.turnMs} ms`,
      );
    }
    const [plain, strata, other] = [NONE, OURS, MEM0_NAME].map((name) => results.get(name));
    if (!plain || !strata || !other) throw new Error(`only ${[...results.keys()].join(', ')} could be asked`);
    for (const { name, inject, turnMs } of [strata, other]) {
      checks.figure(`${name} adds`, `about ${Math.round((inject - plain.inject) / CHARS_PER_TOKEN)} tokens and ${turnMs - plain.turnMs} ms a turn`);
    }
    if (strata.missed.length) checks.figure('missed by ours', strata.missed.join(' | '));
    checks.that('strata brings at least as many facts as mem0', strata.found >= other.found, { found: strata.found, other: other.found, missed: strata.missed });
  });
}

async function askFor({ asks, word }, n, { host, model }, result) {
  const turn = await host.turn(`agent:main:asking-${n}`, asks);
  result.durations.push(turn.ms);
  const request = model.requests.filter((r) => r.kind === 'agent' && r.question.includes(asks)).at(0);
  if (!request) throw new Error(`the model was not asked ${asks}: ${JSON.stringify(turn.body)}`);
  const prompt = request.body.messages.map((m) => textOf(m.content)).join('\n');
  result.inject += prompt.length;
  if (prompt.includes(word)) result.found += 1;
  else result.missed.push(asks);
}

/** A perfect extractor for either plugin's prompt: the facts that stand in its new messages. */
function factsIn(text) {
  return FACTS.map(({ says }) => says).filter((says) => text.includes(says));
}

const strataExtractor = (request) => {
  if (purposeOf(request) !== 'l1-extract') return undefined;
  const prompt = textOf(request.body.messages.at(-1).content);
  const fresh = prompt.slice(Math.max(prompt.lastIndexOf('New messages'), 0));
  const lines = fresh.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line)];
    } catch {
      return [];
    }
  });
  const memories = factsIn(fresh).map((says) => ({
    content: says,
    type: 'persona',
    priority: 90,
    sources: [{ id: lines.find(({ text }) => text === says)?.id, quote: says }],
    start: '',
    end: '',
  }));
  return { text: JSON.stringify({ scenes: memories.length ? [{ scene: 'the user tells about themselves', memories }] : [] }) };
};

const mem0Extractor = (request) => {
  if (!request.system.includes('Memory Extractor')) return undefined;
  const prompt = textOf(request.body.messages.at(-1).content);
  const fresh = prompt.slice(prompt.indexOf('## New Messages'));
  return { text: JSON.stringify({ memory: factsIn(fresh).map((text, n) => ({ id: String(n), text })) }) };
};

async function bare(root) {
  const model = await startMockModel();
  model.rules.push(hostChores, acknowledge);
  const host = await OpenClaw.create({ name: 'bare', model, root, plugins: { slots: { memory: 'none' } } });
  return { host, model, settled: async () => undefined, end: () => ended(host, model) };
}

async function ours(tgz, root) {
  const place = await stage({ name: 'strata', line: '24', tgz, root });
  place.model.rules.push(strataExtractor, memoryWork, hostChores, acknowledge);
  const settled = async (host) => {
    await ask(host, 'flush');
    await host.until('all facts are distilled', async () => (await ask(host, 'status')).atoms >= FACTS.length, SETTLE_MS).catch(() => undefined);
  };
  return { ...place, settled };
}

async function mem0(root) {
  const model = await startMockModel({ embeddingDimensions: MEM0_DIMENSIONS });
  model.rules.push(mem0Extractor, hostChores, acknowledge);
  const host = await OpenClaw.create({ name: 'mem0', model, root, extraEnv: npmSettings() });
  const install = await host.cli(['plugins', 'install', MEM0, '--force', '--accept-capabilities'], { timeoutMs: INSTALL_TIMEOUT_MS });
  if (install.code !== 0) throw new Error(`mem0 does not install: ${install.stdout}\n${install.stderr}`);
  replaceNativeStore(host.stateDir);
  const service = { apiKey: 'mock-key', baseURL: model.baseUrl };
  host.editConfig((config) => {
    config.plugins.slots = { ...config.plugins.slots, memory: 'openclaw-mem0' };
    config.plugins.entries['openclaw-mem0'] = {
      enabled: true,
      hooks: { allowConversationAccess: true },
      config: {
        mode: 'open-source',
        userId: 'owner',
        autoCapture: true,
        autoRecall: true,
        oss: {
          embedder: { provider: 'openai', config: { ...service, model: 'mock-embedding' } },
          llm: { provider: 'openai', config: { ...service, model: 'mock-1' } },
          vectorStore: { provider: 'memory', config: { dimension: MEM0_DIMENSIONS, dbPath: path.join(host.dir, 'mem0.db') } },
          historyDbPath: path.join(host.dir, 'mem0-history.db'),
        },
      },
    };
  });
  // It captures in the background without saying when it is done; half a minute after the last turn it is.
  const settled = () => new Promise((resolve) => setTimeout(resolve, 30_000));
  return { host, model, settled, end: () => ended(host, model) };
}

/** OpenClaw gets mem0 from npm; behind a proxy it needs this machine's settings for that, and its home is not this one. */
function npmSettings() {
  const file = process.env.NPM_CONFIG_USERCONFIG ?? path.join(os.homedir(), '.npmrc');
  return {
    ...(fs.existsSync(file) ? { NPM_CONFIG_USERCONFIG: file } : {}),
    // Its home is new every time, and npm's cache would be.
    NPM_CONFIG_CACHE: path.join(cacheDir(), 'npm'),
    ...(process.env.NODE_EXTRA_CA_CERTS ? { NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS } : {}),
  };
}

/**
 * mem0's own vector store needs a native module, and OpenClaw installs plugins without install scripts, so it
 * cannot open. Node's own SQLite in its place lets it work here.
 */
function replaceNativeStore(stateDir) {
  const found = spawnSync('find', [stateDir, '-type', 'd', '-path', '*/node_modules/better-sqlite3', '-not', '-path', path.join(stateDir, 'tmp', '*')], { encoding: 'utf8' });
  const dirs = found.stdout.trim().split('\n').filter(Boolean);
  if (dirs.length === 0) throw new Error('mem0 brings no better-sqlite3 any more; look how it opens its store');
  for (const dir of dirs) {
    fs.writeFileSync(
      path.join(dir, 'lib', 'index.js'),
      `const { DatabaseSync } = require('node:sqlite');
module.exports = class Database extends DatabaseSync {
  pragma(text) { return this.prepare('PRAGMA ' + text).all(); }
  transaction(work) {
    return (...values) => {
      this.exec('BEGIN');
      try { const result = work(...values); this.exec('COMMIT'); return result; } catch (error) { this.exec('ROLLBACK'); throw error; }
    };
  }
};
`,
    );
  }
}

async function ended(host, model) {
  await host.dispose();
  await model.close();
}
