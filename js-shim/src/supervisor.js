/**
 * Keeps one instance of the component alive in a worker thread: one call at a time in the order in
 * which they came, each with a deadline. A call that runs too long or traps ends the worker; a new one
 * opens the space again, and the calls that waited go on. Nothing acknowledged is lost by that.
 */

import { Worker } from 'node:worker_threads';
import { StrataError } from './errors.js';
import { isDead, newHolder } from './holder.js';
import { compileEngine, engineModules } from './instance.js';

/**
 * @typedef {import('./instance.js').Models} Models
 * @typedef {import('./instance.js').Outgoing} Outgoing
 * @typedef {import('./worker.js').Reply} Reply
 * @typedef {{name: string, values: unknown[], timeoutMs: number, resolve: (value: any) => void, reject: (error: unknown) => void}} Waiting
 * @typedef {{call: Waiting, id: number, timer: NodeJS.Timeout}} Running
 */

/** Calls that may wait; more is a caller that does not await. */
const MAX_WAITING_CALLS = 10_000;
/** Dead holders that one `open` sweeps away; each is one killed process. */
const MAX_EVICTIONS = 16;
/** Opening migrates, and may have to read back a long write-ahead log. */
const OPEN_TIMEOUT_MS = 120_000;
/** Exports that walk the whole space; they get more time than a hook. */
const LONG_CALLS = new Set(['memory.forget', 'memory.backup', 'memory.restore', 'memory.export', 'memory.import', 'memory.rebuild', 'lifecycle.close']);
const LONG_CALL_TIMEOUT_MS = 600_000;

export class Supervisor {
  /** @type {Worker | undefined} */
  #worker;
  /** @type {Waiting[]} */
  #waiting = [];
  /** @type {Running | undefined} */
  #running;
  #calls = 0;
  /** `open` once the space is open in the worker; then calls run. @type {'down' | 'opening' | 'open' | 'closed'} */
  #state = 'down';
  #holder = newHolder();

  /**
   * @param {object} host
   * @param {string} host.directory
   * @param {Record<string, unknown>} host.settings
   * @param {number} host.callTimeoutMs
   * @param {number} host.memoryLimitBytes
   * @param {() => Models} host.models
   * @param {(outgoing: Outgoing[]) => void} host.send takes what a call asked for
   * @param {() => void} host.lost a worker ended; what it had asked for is asked again after reopening
   * @param {() => number} host.now
   */
  constructor(host) {
    this.host = host;
  }

  /** Opens the space; resolves to the contract's `opened` record. */
  async open() {
    this.#state = 'opening';
    /** @type {string[]} */
    const evict = [];
    try {
      await compileEngine(this.host.memoryLimitBytes);
      for (;;) {
        const settings = JSON.stringify({ ...this.host.settings, holder: this.#holder, evict });
        this.#worker ??= this.#start();
        try {
          const opened = await this.#run('lifecycle.open', [settings, BigInt(this.host.now())], OPEN_TIMEOUT_MS);
          this.#state = 'open';
          this.#pump();
          return opened;
        } catch (error) {
          const dead = error instanceof StrataError && error.code === 'busy' ? deadHolder(error.message) : undefined;
          if (dead === undefined || evict.includes(dead) || evict.length === MAX_EVICTIONS) throw error;
          evict.push(dead);
        }
      }
    } catch (error) {
      await this.#end();
      this.#state = 'down';
      const reason = explained(error);
      for (const call of this.#waiting.splice(0)) call.reject(reason);
      throw reason;
    }
  }

  /**
   * Calls `interface.name` when the calls before it have ended.
   * @param {string} name
   * @param {unknown[]} values as the component takes them
   * @returns {Promise<any>}
   */
  call(name, values) {
    if (this.#state === 'closed') return Promise.reject(new StrataError('not-open', 'the memory is closed'));
    if (this.#waiting.length >= MAX_WAITING_CALLS) {
      return Promise.reject(new StrataError('busy', `${MAX_WAITING_CALLS} calls wait already; await some of them`));
    }
    const timeoutMs = LONG_CALLS.has(name) ? Math.max(LONG_CALL_TIMEOUT_MS, this.host.callTimeoutMs) : this.host.callTimeoutMs;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ name, values, timeoutMs, resolve, reject });
      // After a failed reopening the next call tries again; its failure reaches all that wait.
      if (this.#state === 'down') this.open().catch(() => {});
      else this.#pump();
    });
  }

  /** Waiting and running calls. */
  get pending() {
    return this.#waiting.length + (this.#running ? 1 : 0);
  }

  /** Closes the space after the calls that wait, and ends the worker. */
  async close() {
    if (this.#state === 'closed') return;
    try {
      if (this.#state !== 'down') await this.call('lifecycle.close', [BigInt(this.host.now())]);
    } finally {
      this.#state = 'closed';
      for (const call of this.#waiting.splice(0)) call.reject(new StrataError('not-open', 'the memory is closed'));
      await this.#end();
    }
  }

  #start() {
    const worker = new Worker(new URL('./worker.js', import.meta.url), {
      workerData: { modules: engineModules(this.host.memoryLimitBytes), directory: this.host.directory, models: this.host.models() },
      env: {},
      execArgv: [],
      name: 'strata',
    });
    worker.on('message', (/** @type {Reply} */ reply) => {
      if (worker === this.#worker) this.#answered(reply);
    });
    worker.on('error', (error) => {
      if (worker === this.#worker) void this.#lose(new StrataError('trap', `the engine's thread failed: ${error.message}`));
    });
    worker.on('exit', (code) => {
      if (worker === this.#worker) void this.#lose(new StrataError('trap', `the engine's thread ended with ${code}`));
    });
    worker.unref();
    return worker;
  }

  #pump() {
    if (this.#state !== 'open' || this.#running) return;
    const call = this.#waiting.shift();
    if (call) this.#send(call);
  }

  /**
   * Runs a call at once, before all that wait.
   * @param {string} name
   * @param {unknown[]} values
   * @param {number} timeoutMs
   */
  #run(name, values, timeoutMs) {
    return new Promise((resolve, reject) => this.#send({ name, values, timeoutMs, resolve, reject }));
  }

  /** @param {Waiting} call */
  #send(call) {
    const worker = /** @type {Worker} */ (this.#worker);
    const id = ++this.#calls;
    const timer = setTimeout(() => void this.#lose(new StrataError('deadline', `${call.name} did not end within ${call.timeoutMs} ms and was stopped`)), call.timeoutMs);
    this.#running = { call, id, timer };
    // While a call runs the process must not end; an idle engine does not keep it alive.
    worker.ref();
    worker.postMessage({ id, name: call.name, values: call.values, models: this.host.models() });
  }

  /** @param {Reply} reply */
  #answered(reply) {
    if (reply.id !== this.#running?.id) return;
    if ('trap' in reply) return void this.#lose(new StrataError('trap', `the engine stopped: ${reply.trap}`));
    const { call } = this.#settle();
    this.#worker?.unref();
    this.host.send(reply.outgoing);
    if ('failure' in reply) call.reject(new StrataError(reply.failure.code, reply.failure.message));
    else call.resolve(reply.value);
    this.#pump();
  }

  #settle() {
    const running = /** @type {Running} */ (this.#running);
    clearTimeout(running.timer);
    this.#running = undefined;
    return running;
  }

  /**
   * Ends the worker, fails the running call with `error`, and opens again.
   * @param {StrataError} error
   */
  async #lose(error) {
    const opening = this.#state === 'opening';
    const running = this.#running && this.#settle();
    if (this.#state === 'open') this.#state = 'opening';
    await this.#end();
    this.host.lost();
    running?.call.reject(error);
    // A failed `open` is handled by `open` itself, a lost `close` by `close`.
    if (opening || this.#state === 'closed' || running?.call.name === 'lifecycle.close') return;
    this.open().catch(() => {});
  }

  async #end() {
    const worker = this.#worker;
    this.#worker = undefined;
    // An idle worker lets the process end, also while somebody waits for it to be gone.
    worker?.ref();
    await worker?.terminate();
  }
}

/**
 * Returns the id of the holder that a `busy` message names, if that holder is certainly dead.
 * @param {string} message
 */
function deadHolder(message) {
  let holder;
  try {
    holder = JSON.parse(message);
  } catch {
    return undefined; // `busy` for another reason: a call from inside a call.
  }
  return holder && typeof holder === 'object' && isDead(holder) ? String(holder.id) : undefined;
}

/**
 * Returns a `busy` refusal with a sentence for people around the holder's JSON.
 * @param {unknown} error
 */
function explained(error) {
  if (!(error instanceof StrataError) || error.code !== 'busy' || !error.message.startsWith('{')) return error;
  return new StrataError('busy', `another process has the data directory open: ${error.message}`);
}
