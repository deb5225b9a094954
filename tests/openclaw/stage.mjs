// The plugin as a user gets it, and an OpenClaw that has it.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { connect, socketPath } from '../../js-shim/openclaw/socket.js';
import { repositoryRoot } from './deps.mjs';
import { OpenClaw } from './gateway.mjs';
import { startMockModel } from './mock-model.mjs';

/** Returns the path of the packed npm package; `npm pack` on the built `js-shim`. */
export function packPlugin(into) {
  const run = spawnSync('npm', ['pack', '--silent', '--pack-destination', into], { cwd: path.join(repositoryRoot(), 'js-shim'), encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`npm pack failed: ${run.stderr}`);
  return path.join(into, run.stdout.trim().split('\n').at(-1));
}

/** Returns a temporary directory for everything of one run. */
export function runDirectory() {
  return fs.mkdtempSync(path.join(os.tmpdir(), 'strata-openclaw-'));
}

/**
 * Lays out an OpenClaw with a mock model, installs the package into it as a user would, and returns both.
 * `granted` runs the set-up too.
 */
export async function stage({ name, line, tgz, root, granted = true, contextWindow, config, pluginConfig, extraEnv }) {
  const model = await startMockModel();
  const host = await OpenClaw.create({ name, line, model, root, contextWindow, config, extraEnv });
  const install = await host.cli(['plugins', 'install', tgz, '--force', '--accept-capabilities']);
  if (install.code !== 0) throw new Error(`plugins install failed: ${install.stdout}\n${install.stderr}`);
  const setup = granted ? await host.cli(['strata', 'setup', '--yes']) : undefined;
  if (setup && setup.code !== 0) throw new Error(`strata setup failed: ${setup.stdout}\n${setup.stderr}`);
  if (pluginConfig) {
    host.editConfig((value) => {
      const entry = value.plugins.entries.strata;
      entry.config = { ...entry.config, ...pluginConfig };
    });
  }
  return {
    model,
    host,
    install,
    setup,
    end: async () => {
      await host.dispose();
      await model.close();
    },
  };
}

/** Returns what plugins added to the system prompt: what follows OpenClaw's own heading for it. */
export function injectedSystem(request) {
  const at = request.system.indexOf('OpenClaw plugin-injected system context');
  return at < 0 ? '' : request.system.slice(at);
}

/** Returns the memories that stand before the user's words in a request. */
export function recalled(request) {
  return /<relevant-memories[\s\S]*?<\/relevant-memories>/u.exec(request.lastUser)?.[0] ?? '';
}

/** Returns the plugin's status as JSON, through the command line as a user gets it. */
export async function status(host) {
  const run = await host.cli(['strata', 'status', '--json']);
  try {
    return JSON.parse(run.stdout);
  } catch {
    throw new Error(`strata status printed no JSON: ${run.stdout}\n${run.stderr}`);
  }
}

/** Calls the engine of a running gateway as any other process of the machine does: over its socket. */
export async function ask(host, method, ...args) {
  return askAt(path.join(host.stateDir, 'strata'), method, ...args);
}

/** The same for a memory that is not at its usual place. */
export async function askAt(root, method, ...args) {
  const line = await connect(socketPath(root));
  if (!line) throw Object.assign(new Error('no process holds the memory'), { code: 'not-open' });
  try {
    return await line.call(method, args);
  } finally {
    line.close();
  }
}

/**
 * Keeps count of what was said, so that "exactly once" is a comparison: a turn that succeeded is one message
 * of the user and one of the assistant.
 */
export class Ledger {
  constructor(host) {
    this.host = host;
    this.said = [];
  }

  /** Runs a turn and notes it. */
  async turn(sessionKey, text) {
    const turn = await this.host.turn(sessionKey, text);
    this.note(text, turn.status === 200 ? 1 : 0);
    return turn;
  }

  /** Notes a user message that OpenClaw stored, and how many answers it got; undefined where nobody can know. */
  note(text, answers) {
    this.said.push({ text, answers });
  }

  /** Takes out what was forgotten on purpose. */
  forget(which) {
    this.said = this.said.filter((entry) => !which(entry));
  }

  /**
   * Waits until the engine holds what was said, and returns `{ ok, messages, least, most, twice }`: the rows
   * that there are, the bounds that the ledger gives, and user texts that are there too often.
   */
  async compare() {
    const least = this.said.reduce((sum, { answers = 0 }) => sum + 1 + answers, 0);
    const most = this.said.reduce((sum, { answers = 1 }) => sum + 1 + answers, 0);
    let messages = 0;
    await this.host
      .until('everything that was said is stored', async () => ({ messages } = await ask(this.host, 'status')).messages >= least, 60_000)
      .catch(() => undefined);
    const twice = await this.#twice();
    return { ok: messages >= least && messages <= most && twice.length === 0, messages, least, most, twice };
  }

  async #twice() {
    const expected = new Map();
    for (const { text } of this.said) expected.set(text, (expected.get(text) ?? 0) + 1);
    const stored = rowsOf(this.host, "SELECT text, count(*) AS n FROM messages WHERE role = 'user' GROUP BY text");
    return stored.filter(({ text, n }) => n > (expected.get(text) ?? 0));
  }
}

/** Returns the rows of a query on a copy of the memory's database, so that the engine is not asked about itself. */
export function rowsOf(host, sql) {
  const copy = fs.mkdtempSync(path.join(host.dir, 'copy-'));
  const data = path.join(host.stateDir, 'strata', 'memory');
  for (const name of fs.readdirSync(data)) if (name.startsWith('strata.db')) fs.copyFileSync(path.join(data, name), path.join(copy, name));
  const script = `
    const { DatabaseSync } = require('node:sqlite');
    console.log(JSON.stringify(new DatabaseSync(process.argv[1]).prepare(process.argv[2]).all()));`;
  const run = spawnSync(path.join(host.nodeBin, 'node'), ['--no-warnings', '-e', script, path.join(copy, 'strata.db'), sql], { encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`cannot read the database: ${run.stderr}`);
  return JSON.parse(run.stdout);
}
