// One data directory in this process.
//
// OpenClaw loads a plugin several times into one process (a `full` and a `discovery` instance, and new
// ones at each hot reload), and each copy has its own module variables. What must exist once lives here,
// under a global symbol: the engine or the line to the process that holds it, the capture book, and the
// order in which sessions are read. Instances take leases; with the last one the engine closes.
import fs from 'node:fs';
import path from 'node:path';
import { CaptureBook } from './book.js';
import { isStaleCaller } from './call-context.js';
import { connect, failure, listen, socketPath } from './socket.js';

const REGISTRY = Symbol.for('strata.openclaw.spaces');

/** How long a failed opening is answered from memory, so that a broken disk is not tried at every hook. */
const RETRY_AFTER_MS = 5_000;
/** How long an opener waits for a holder that is just starting or just ending. */
const BUSY_PATIENCE_MS = 8_000;
const BUSY_PAUSE_MS = 200;
/** Longest wait for calls under way when the space closes. */
const CLOSE_PATIENCE_MS = 4_000;
/** Sessions about which small facts (run, stable prompt part) are kept. */
const MAX_REMEMBERED = 1_000;

/**
 * Takes a lease on the space at `settings.root`.
 *
 * `client` is `{ logger, complete, health }` of the registering instance: the newest lease's model and log
 * are used. `open(options)` opens the engine; `version` is the plugin's. A space that an older version of
 * the plugin left in this process is closed and replaced.
 */
export function leaseSpace({ settings, version, open, client }) {
  const registry = (globalThis[REGISTRY] ??= new Map());
  let space = registry.get(settings.root);
  if (space && (space.version !== version || space.ended)) {
    const successor = new Space(registry, settings, version, open);
    // The old copy's engine must be closed before ours opens; its own late calls are passed on.
    successor.predecessor = space.retire(successor);
    space = successor;
  }
  if (!space) space = new Space(registry, settings, version, open);
  registry.set(settings.root, space);
  return space.lease(client);
}

class Space {
  constructor(registry, settings, version, open) {
    this.registry = registry;
    this.settings = settings;
    this.version = version;
    this.open = open;
    this.leases = new Set();
    this.inFlight = new Set();
    /** Reads of one session happen one after the other. */
    this.turns = new Map();
    /** The run that a session is in, to count a turn's tool calls and to know who started it. */
    this.runs = new Map();
    /** The last stable prompt part of each scope: served when recall is late, so that prompt caches hold. */
    this.stable = new Map();
    /** Tokens of a session's prompt beside its messages (`{ tokens, counted }`), and of the newest words. */
    this.overheads = new Map();
    this.prompts = new Map();
    /** What was last assembled for a session, until a model has counted it. */
    this.assembled = new Map();
    /** Tool calls whose results were handed over. */
    this.toolCalls = new Map();
  }

  /** The capture book; read when it is first needed, because most command-line processes never do. */
  get book() {
    return (this.openBook ??= new CaptureBook(path.join(this.settings.root, 'openclaw-sessions.json'), (line) => this.log('warn', line)));
  }

  /** Remembers `value` under `key` in one of the bounded maps above. */
  remember(map, key, value) {
    map.delete(key);
    map.set(key, value);
    if (map.size > MAX_REMEMBERED) map.delete(map.keys().next().value);
  }

  lease(client) {
    const lease = { ...client };
    this.leases.add(lease);
    return {
      space: this,
      call: (method, ...args) => this.call(method, args),
      release: async () => {
        if (!this.leases.delete(lease)) return;
        if (this.leases.size === 0) await this.end();
      },
    };
  }

  /** Calls the engine, here or in the process that holds it. Fails with the contract's `{code, message}`. */
  async call(method, args) {
    if (this.successor) return this.successor.call(method, args);
    const link = await this.connected();
    const answer = link.call(method, args);
    this.inFlight.add(answer);
    try {
      return await answer;
    } catch (error) {
      if (error.code !== 'not-open' || this.ended) throw error;
      // The holder went away: whoever asks next opens the space itself.
      if (this.link === link) this.link = undefined;
      return (await this.connected()).call(method, args);
    } finally {
      this.inFlight.delete(answer);
    }
  }

  /** Returns "owner", "guest", "closed" or "unavailable", with the reason of the last. */
  state() {
    if (this.link) return { role: this.link.role };
    if (this.lastFailure) return { role: 'unavailable', code: this.lastFailure.error.code, message: this.lastFailure.error.message };
    return { role: 'closed' };
  }

  async connected() {
    if (this.link) return this.link;
    if (this.ended) throw failure('not-open', 'the plugin was unloaded');
    if (this.lastFailure && Date.now() - this.lastFailure.at < RETRY_AFTER_MS) throw this.lastFailure.error;
    this.opening ??= this.#establish().finally(() => (this.opening = undefined));
    return this.opening;
  }

  async #establish() {
    await this.predecessor;
    // Once it is known that somebody else is in for longer, a prompt is not kept waiting again.
    const deadline = Date.now() + (this.lastFailure ? 0 : BUSY_PATIENCE_MS);
    for (;;) {
      try {
        const link = (await this.#asGuest()) ?? (await this.#asOwner());
        if (this.lastFailure) this.log('info', 'the memory is available again');
        this.lastFailure = undefined;
        this.link = link;
        return link;
      } catch (error) {
        if (error.code === 'busy' && Date.now() < deadline) {
          await new Promise((resolve) => setTimeout(resolve, BUSY_PAUSE_MS));
          continue;
        }
        if (!this.lastFailure || this.lastFailure.error.message !== error.message)
          this.log('error', `the memory at ${this.settings.dataDir} cannot be opened (${error.code ?? 'error'}): ${error.message}`);
        this.lastFailure = { at: Date.now(), error };
        throw error;
      }
    }
  }

  async #asGuest() {
    const line = await connect(socketPath(this.settings.root));
    if (!line) return undefined;
    const link = { role: 'guest', call: line.call, close: async () => line.close() };
    line.closed.then(() => {
      if (this.link === link) this.link = undefined;
    });
    return link;
  }

  async #asOwner() {
    fs.mkdirSync(this.settings.dataDir, { recursive: true, mode: 0o700 });
    const engine = await this.open({
      dir: this.settings.dataDir,
      settings: this.settings,
      complete: [...this.leases].some((lease) => lease.complete) ? (request, signal) => this.#complete(request, signal) : undefined,
      log: (level, line) => this.log(level, line),
    });
    let server;
    try {
      server = await listen(socketPath(this.settings.root), (method, args) => (method === 'pluginHealth' ? this.health() : engine.call(method, args)));
    } catch (error) {
      // Without the socket only this process can use the memory, which is better than none.
      this.log('warn', `other processes cannot share the memory: ${error.message}`);
    }
    return {
      role: 'owner',
      call: (method, args) => (method === 'pluginHealth' ? this.health() : engine.call(method, args)),
      close: async () => {
        await server?.close();
        await engine.close();
      },
    };
  }

  /** Has a model answer through the newest instance that the host lets call; one of a reload that failed may not. */
  async #complete(request, signal) {
    const clients = [...this.leases].reverse().filter((lease) => lease.complete);
    for (const [at, client] of clients.entries()) {
      try {
        return await client.complete(request, signal);
      } catch (error) {
        if (at === clients.length - 1 || !isStaleCaller(error)) throw error;
      }
    }
    throw failure('unsupported', 'no plugin instance offers a model');
  }

  /** Returns what the live instances of this process report about their features, newest first. */
  health() {
    return [...this.leases]
      .reverse()
      .map((lease) => lease.health?.())
      .filter(Boolean);
  }

  log(level, line) {
    const logger = [...this.leases].at(-1)?.logger;
    logger?.[level]?.(`strata: ${line}`);
  }

  /** Runs `work` after all earlier work of the same session. */
  inOrder(sessionKey, work) {
    const before = this.turns.get(sessionKey) ?? Promise.resolve();
    const run = before.catch(() => undefined).then(work);
    const settled = run
      .catch(() => undefined)
      .finally(() => {
        if (this.turns.get(sessionKey) === settled) this.turns.delete(sessionKey);
      });
    this.turns.set(sessionKey, settled);
    return run;
  }

  /** Ends this copy; calls that still reach it go to `successor`. */
  async retire(successor) {
    this.successor = successor;
    await this.end();
  }

  async end() {
    if (this.ended) return this.ended;
    this.ended = this.#close();
    return this.ended;
  }

  async #close() {
    await this.opening?.catch(() => undefined);
    await Promise.race([
      Promise.allSettled([...this.turns.values(), ...this.inFlight]),
      new Promise((resolve) => setTimeout(resolve, CLOSE_PATIENCE_MS).unref()),
    ]);
    const link = this.link;
    this.link = undefined;
    await link?.close().catch((error) => this.log('warn', `closing the memory: ${error.message}`));
    // Until here a new lease finds this space and waits for it to be closed.
    if (this.registry.get(this.settings.root) === this) this.registry.delete(this.settings.root);
  }
}
