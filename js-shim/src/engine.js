/**
 * One open space: the supervised instance, the requests that its engine has asked for, and the clock
 * that ticks it. Several `Memory` handles may share one.
 */

import { EMBED_TIMEOUT_MS, askEmbedding, askModel, reasonOf } from './models.js';
import { NO_MODELS } from './instance.js';
import { Supervisor } from './supervisor.js';

/**
 * @typedef {import('./instance.js').Models} Models
 * @typedef {import('./instance.js').Outgoing} Outgoing
 * @typedef {import('./models.js').LanguageModel} LanguageModel
 * @typedef {import('./models.js').EmbeddingModel} EmbeddingModel
 * @typedef {(level: 'debug' | 'info' | 'warn' | 'error', text: string) => void} Log
 * @typedef {{llm?: LanguageModel, embedding?: EmbeddingModel, log?: Log}} Provider what one handle brings
 */

/** Calls that cannot make work due; after all others the engine is ticked. */
const READING = new Set([
  'hooks.before-prompt-build',
  'hooks.assemble',
  'tools.call',
  'work.tick',
  'lifecycle.status',
  'memory.browse',
  'memory.search',
  'memory.trace',
  'memory.why',
  'memory.history',
  'memory.diff',
]);

/** The longest wait that a timer of Node can hold; an earlier tick is harmless. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** After a tick failed, the next one comes this much later. */
const FAILED_TICK_MS = 60_000;

export class Engine {
  /** What each handle brings, in the order of opening; the newest that has a model serves. @type {Set<Provider>} */
  #providers = new Set();
  /** Models whose dimensions are asked for. @type {Map<Provider, AbortController>} */
  #learning = new Map();
  /** @type {Map<string, AbortController>} */
  #requests = new Map();
  /** @type {NodeJS.Timeout | undefined} */
  #timer;
  #ticking = false;
  /** An event came while a tick was waiting or running. */
  #tickAgain = false;
  /** When the engine wants the next tick; `undefined` if only an event can make work due. @type {number | undefined} */
  #nextTick;
  /** @type {Set<() => void>} */
  #watchers = new Set();
  #closing = false;

  /**
   * @param {object} options
   * @param {string} options.directory
   * @param {Record<string, unknown>} options.settings
   * @param {number} options.callTimeoutMs
   * @param {number} options.memoryLimitBytes
   */
  constructor(options) {
    this.settings = options.settings;
    this.supervisor = new Supervisor({
      ...options,
      models: () => this.#models(),
      send: (outgoing) => outgoing.forEach((one) => this.#perform(one)),
      lost: () => this.#abortAll('the engine is opened again'),
      now: Date.now,
    });
  }

  /** Opens the space. @returns {Promise<import('../dist/contract.js').Opened>} */
  async open() {
    const opened = /** @type {import('../dist/contract.js').Opened} */ (await this.supervisor.open());
    this.#tick();
    return opened;
  }

  /**
   * Calls an export; `values` are as the component takes them.
   * @param {string} name
   * @param {unknown[]} values
   */
  async call(name, values) {
    try {
      return await this.supervisor.call(name, values);
    } finally {
      if (!READING.has(name)) this.#tick();
    }
  }

  /** Ends when nothing is in flight and nothing is due; a caller that goes on feeding may wait for ever. */
  async idle() {
    // The engine's own timers let the process end; somebody who waits here does not want that.
    const awake = setInterval(() => {}, LONGEST_TIMER_MS);
    try {
      while (!this.#closing && !this.#resting()) {
        await new Promise((resolve) => this.#watchers.add(() => resolve(undefined)));
      }
    } finally {
      clearInterval(awake);
    }
  }

  /** Closes the space; requests in flight are aborted. */
  async close() {
    this.#closing = true;
    clearTimeout(this.#timer);
    this.#abortAll('the memory is closed');
    for (const over of this.#learning.values()) over.abort();
    try {
      await this.supervisor.close();
    } finally {
      this.#changed();
    }
  }

  /** @param {Provider} provider */
  addProvider(provider) {
    this.#providers.add(provider);
    const { embedding } = provider;
    if (!embedding || embedding.model) return;
    const over = new AbortController();
    this.#learning.set(provider, over);
    const failed = (/** @type {unknown} */ error) => this.#log('warn', `the embedding model does not answer; recall works without it: ${reasonOf(error)}`);
    void embedding.learn(over.signal, failed).then(() => {
      this.#learning.delete(provider);
      if (!over.signal.aborted) this.#tick();
    });
  }

  /** @param {Provider} provider */
  removeProvider(provider) {
    this.#providers.delete(provider);
    this.#learning.get(provider)?.abort();
  }

  /** The embedding model that serves, once its dimensions are known. */
  get embedding() {
    return [...this.#providers].reverse().find((one) => one.embedding?.model)?.embedding;
  }

  get #llm() {
    return [...this.#providers].reverse().find((one) => one.llm)?.llm;
  }

  /** @returns {Models} */
  #models() {
    return { llm: this.#llm?.abilities ?? NO_MODELS.llm, embedding: this.embedding?.model };
  }

  #resting() {
    return this.#requests.size === 0 && this.supervisor.pending === 0 && !this.#ticking && (this.#nextTick === undefined || this.#nextTick > Date.now());
  }

  #changed() {
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    for (const watcher of watchers) watcher();
  }

  /** Ticks now; again when the engine says so. */
  #tick() {
    if (this.#closing) return;
    if (this.#ticking) {
      this.#tickAgain = true;
      return;
    }
    this.#ticking = true;
    this.#tickAgain = false;
    clearTimeout(this.#timer);
    this.supervisor.call('work.tick', [BigInt(Date.now())]).then(
      (next) => this.#ticked(next === undefined || next === null ? undefined : Number(next)),
      (error) => {
        this.#log('warn', `background work failed: ${reasonOf(error)}`);
        this.#ticked(Date.now() + FAILED_TICK_MS);
      },
    );
  }

  /** @param {number | undefined} next */
  #ticked(next) {
    this.#ticking = false;
    this.#nextTick = next;
    if (this.#tickAgain) this.#tick();
    else if (next !== undefined && !this.#closing) {
      // A slice that left work behind says "now"; other calls get their turn in between.
      this.#timer = setTimeout(() => this.#tick(), Math.min(Math.max(next - Date.now(), 0), LONGEST_TIMER_MS));
      this.#timer.unref();
    }
    this.#changed();
  }

  /** @param {Outgoing} one */
  #perform(one) {
    switch (one.kind) {
      case 'log':
        return this.#log(/** @type {any} */ (one.level), one.text);
      case 'cancel-model':
      case 'cancel-embed':
        return this.#cancel(one.id);
      case 'ask-model': {
        const model = this.#llm;
        return this.#start(one.id, one.request.timeoutMs, (signal) => {
          if (!model) throw new Error('there is no language model any more');
          return askModel(model, one.request, signal);
        });
      }
      case 'embed': {
        const model = this.embedding;
        return this.#start(one.id, EMBED_TIMEOUT_MS, (signal) => {
          if (!model) throw new Error('there is no embedding model any more');
          return askEmbedding(model, one.texts, signal);
        });
      }
    }
  }

  /**
   * Performs a request here, on the caller's thread, and delivers what became of it.
   * @param {string} id
   * @param {number} timeoutMs
   * @param {(signal: AbortSignal) => Promise<{tag: string, val: unknown}>} ask
   */
  #start(id, timeoutMs, ask) {
    const controller = new AbortController();
    this.#requests.set(id, controller);
    const timer = setTimeout(() => controller.abort(new Error(`no answer within ${timeoutMs} ms`)), Math.min(timeoutMs, LONGEST_TIMER_MS));
    timer.unref();
    const aborted = new Promise((_, reject) => controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true }));
    // A function that ignores its signal must not hold the request for ever.
    const answer = Promise.race([Promise.resolve().then(() => ask(controller.signal)), aborted]);
    answer
      .catch((error) => ({ tag: 'failed', val: reasonOf(error) }))
      .then((outcome) => {
        clearTimeout(timer);
        // Not wanted any more: cancelled, or asked again by an engine that was opened anew.
        if (this.#requests.get(id) !== controller) return;
        this.#requests.delete(id);
        return this.call('work.complete', [id, outcome, BigInt(Date.now())]);
      })
      .catch((error) => this.#log('warn', `the answer of a request was not taken: ${reasonOf(error)}`));
  }

  /** @param {string} id */
  #cancel(id) {
    const controller = this.#requests.get(id);
    this.#requests.delete(id);
    controller?.abort(new Error('cancelled'));
  }

  /** @param {string} reason */
  #abortAll(reason) {
    const controllers = [...this.#requests.values()];
    this.#requests.clear();
    for (const controller of controllers) controller.abort(new Error(reason));
    this.#changed();
  }

  /**
   * @param {'debug' | 'info' | 'warn' | 'error'} level
   * @param {string} text
   */
  #log(level, text) {
    for (const { log } of this.#providers) {
      try {
        log?.(level, text);
      } catch {
        // A host's log that throws is the host's fault; memory goes on.
      }
    }
  }
}
