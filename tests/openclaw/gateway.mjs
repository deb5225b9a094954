// One real OpenClaw with its own state directory, driven from outside as a user's machine would be:
// by its command line and by the HTTP endpoint that runs the same agent path.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { ensureOpenClaw } from './deps.mjs';

/** Longest wait for a gateway to become ready; measured 23 s on two idle cores, 90 s with a load of 20. */
const READY_TIMEOUT_MS = 300_000;
/** Longest wait for one command of OpenClaw's command line. */
const CLI_TIMEOUT_MS = 300_000;
/** Longest wait for one agent turn. */
const TURN_TIMEOUT_MS = 300_000;
/** Longest wait for an orderly stop before the process is killed. */
const STOP_TIMEOUT_MS = 30_000;

/** Longest wait until a running gateway has taken a changed configuration over. */
const CHANGE_TIMEOUT_MS = 180_000;

/** Starts that are tried on a busy machine. */
const START_ATTEMPTS = 4;

const TOKEN = 'e2e-token';

/** Returns a port that was free a moment ago. */
export async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export class OpenClaw {
  /**
   * Lays out a fresh state directory. `plugins` and `config` are merged into OpenClaw's configuration;
   * `extraEnv` is added to the environment of every process that is started.
   */
  static async create({ name, line = '24', model, plugins = {}, config = {}, root, contextWindow = 128_000, extraEnv = {} }) {
    const self = new OpenClaw();
    Object.assign(self, ensureOpenClaw(line));
    self.line = line;
    self.name = name;
    self.dir = fs.mkdtempSync(path.join(root ?? os.tmpdir(), `oc-${name}-`));
    self.stateDir = path.join(self.dir, 'state');
    self.workspace = path.join(self.dir, 'ws');
    self.configPath = path.join(self.stateDir, 'openclaw.json');
    self.logPath = path.join(self.dir, 'gateway.log');
    self.port = await freePort();
    for (const dir of [self.stateDir, self.workspace, path.join(self.dir, 'home')]) fs.mkdirSync(dir, { recursive: true });
    self.env = {
      PATH: `${self.nodeBin}:${process.env.PATH}`,
      HOME: path.join(self.dir, 'home'),
      TMPDIR: os.tmpdir(),
      OPENCLAW_STATE_DIR: self.stateDir,
      OPENCLAW_CONFIG_PATH: self.configPath,
      NO_COLOR: '1',
      ...extraEnv,
    };
    const mockModel = {
      id: 'mock-1',
      name: 'Mock 1',
      reasoning: false,
      input: ['text'],
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
      contextWindow,
      maxTokens: 4096,
    };
    fs.writeFileSync(
      self.configPath,
      JSON.stringify(
        {
          gateway: {
            mode: 'local',
            bind: 'loopback',
            port: self.port,
            auth: { mode: 'token', token: TOKEN },
            http: { endpoints: { chatCompletions: { enabled: true } } },
          },
          models: { mode: 'replace', providers: { mock: { baseUrl: model.baseUrl, apiKey: 'mock-key', api: 'openai-completions', models: [mockModel] } } },
          agents: { defaults: { model: { primary: 'mock/mock-1' }, workspace: self.workspace, skipBootstrap: true } },
          plugins,
          ...config,
        },
        null,
        2,
      ),
    );
    return self;
  }

  /** Returns OpenClaw's configuration as it is on disk now. */
  readConfig() {
    return JSON.parse(fs.readFileSync(this.configPath, 'utf8'));
  }

  /** Changes the configuration file in place; a running gateway picks it up by itself. */
  editConfig(change) {
    const config = this.readConfig();
    change(config);
    fs.writeFileSync(this.configPath, JSON.stringify(config, null, 2));
  }

  /**
   * Edits the configuration and waits until the gateway has taken it over. OpenClaw refuses a reload while a call of a
   * plugin is under way (a model request, say) and does not come back to it by itself; the file is written again then.
   */
  async changeConfig(change) {
    let from = this.log().length;
    this.editConfig(change);
    await this.until(
      'the gateway takes the change over',
      () => {
        const since = this.log().slice(from);
        if (since.includes('config reload failed')) {
          from = this.log().length;
          this.editConfig(() => undefined);
        }
        return /hot reload applied|restart/iu.test(since);
      },
      CHANGE_TIMEOUT_MS,
    );
  }

  /** Runs `openclaw ARGS` and returns `{ code, stdout, stderr, ms }`. Never throws on a failing command. */
  cli(args, { input, timeoutMs = CLI_TIMEOUT_MS, env = {} } = {}) {
    const started = performance.now();
    return new Promise((resolve, reject) => {
      const child = spawn(path.join(this.nodeBin, 'node'), [this.entry, ...args], {
        env: { ...this.env, ...env },
        cwd: this.workspace,
        stdio: ['pipe', 'pipe', 'pipe'],
      });
      const out = { code: null, stdout: '', stderr: '', ms: 0 };
      child.stdout.on('data', (d) => (out.stdout += d));
      child.stderr.on('data', (d) => (out.stderr += d));
      const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
      child.on('error', reject);
      child.on('close', (code) => {
        clearTimeout(timer);
        out.code = code;
        out.ms = Math.round(performance.now() - started);
        resolve(out);
      });
      child.stdin.end(input ?? '');
    });
  }

  /**
   * Starts the gateway and returns the seconds until it said that it is ready. OpenClaw gives up its own start when
   * the machine is too busy to answer a lease within 5 s; that is tried again, anything else is not.
   */
  async start(options) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#start(options);
      } catch (error) {
        if (attempt === START_ATTEMPTS || !error.message.includes('lease heartbeat did not become ready')) throw error;
      }
    }
  }

  async #start({ nodeArgs = [] } = {}) {
    if (this.child) throw new Error('the gateway is already running');
    const started = performance.now();
    const log = fs.openSync(this.logPath, 'a');
    const from = fs.fstatSync(log).size;
    this.child = spawn(path.join(this.nodeBin, 'node'), [...nodeArgs, this.entry, 'gateway', 'run', '--port', String(this.port), '--bind', 'loopback'], {
      env: this.env,
      cwd: this.workspace,
      stdio: ['ignore', log, log],
    });
    fs.closeSync(log);
    this.exited = new Promise((resolve) => this.child.on('close', (code, signal) => resolve({ code, signal })));
    this.exited.then(() => (this.child = undefined));
    while (!this.log().slice(from).includes('[gateway] ready')) {
      if (!this.child) throw new Error(`gateway exited early:\n${this.log().slice(-3000)}`);
      if (performance.now() - started > READY_TIMEOUT_MS) throw new Error(`gateway not ready:\n${this.log().slice(-3000)}`);
      await pause(200);
    }
    return (performance.now() - started) / 1000;
  }

  /** Stops the gateway by `signal` and returns how it ended. */
  async stop(signal = 'SIGTERM') {
    if (!this.child) return undefined;
    this.child.kill(signal);
    const timer = setTimeout(() => this.child?.kill('SIGKILL'), STOP_TIMEOUT_MS);
    const end = await this.exited;
    clearTimeout(timer);
    return end;
  }

  /** Returns everything that the gateway has logged. */
  log() {
    return fs.existsSync(this.logPath) ? fs.readFileSync(this.logPath, 'utf8') : '';
  }

  /** Runs one agent turn in a session and returns `{ text, ms, status }`. */
  async turn(sessionKey, text, { headers = {} } = {}) {
    const started = performance.now();
    const response = await fetch(`http://127.0.0.1:${this.port}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', 'x-openclaw-session-key': sessionKey, ...headers },
      body: JSON.stringify({ model: 'openclaw/default', messages: [{ role: 'user', content: text }] }),
      signal: AbortSignal.timeout(TURN_TIMEOUT_MS),
    });
    const body = await response.json().catch(() => ({}));
    return { status: response.status, text: body.choices?.[0]?.message?.content ?? '', body, ms: performance.now() - started };
  }

  /** Waits until `probe` returns something truthy and returns it; fails with `what` after `timeoutMs`. */
  async until(what, probe, timeoutMs = 60_000) {
    const end = performance.now() + timeoutMs;
    for (;;) {
      const value = await probe();
      if (value) return value;
      if (performance.now() > end) throw new Error(`timed out waiting until ${what}`);
      await pause(250);
    }
  }

  /** Ends the gateway and removes the state directory unless STRATA_KEEP is set. */
  async dispose() {
    await this.stop();
    if (!process.env.STRATA_KEEP) fs.rmSync(this.dir, { recursive: true, force: true });
  }
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
