/** The Node API: a handle on a space. */

import { ApiSpelling, contractFunction, lift, lowerArguments } from './convert.js';
import { EmbeddingModel, LanguageModel, askEmbedding } from './models.js';
import { StrataError, invalid } from './errors.js';
import { beforeMessageWriteSync, listToolsSync, queryTextSync } from './pure.js';
import { enter } from './spaces.js';

/**
 * @typedef {import('../dist/contract.js').PromptEvent} PromptEvent
 * @typedef {import('../dist/contract.js').WriteEvent} WriteEvent
 * @typedef {import('../dist/contract.js').ToolEvent} ToolEvent
 * @typedef {import('../dist/contract.js').SessionEvent} SessionEvent
 * @typedef {import('../dist/contract.js').AssembleRequest} AssembleRequest
 * @typedef {import('../dist/contract.js').Invocation} Invocation
 * @typedef {import('../dist/contract.js').Selector} Selector
 * @typedef {import('../dist/contract.js').SearchRequest} SearchRequest
 * @typedef {import('../dist/contract.js').Scope} Scope
 * @typedef {Omit<import('../dist/contract.js').Message, 'content' | 'saidAt'> & {content: string | object[], saidAt?: number | Date}} MessageInput
 *   `content` as text, or as a list of parts (`{type: 'text', text}`, images, tool calls)
 * @typedef {Omit<import('../dist/contract.js').EndEvent, 'messages'> & {messages: MessageInput[]}} EndEvent
 * @typedef {{name: string, description: string, parameters: object}} Tool
 */

/**
 * How to open a memory.
 * @typedef {object} OpenOptions
 * @property {string} dir the data directory, made if it does not exist. Handles on the same directory in
 *   one thread share one engine, which closes with the last of them
 * @property {Record<string, unknown>} [settings] the engine's settings (`configSchemaSync()`); those of the
 *   handle that opens first count
 * @property {Scope} [scope] whose memory calls without a scope mean; a call's scope overrides it part by part
 * @property {import('./models.js').LlmOption} [llm] the language model; without one the engine works by rules
 * @property {import('./models.js').EmbedOption} [embed] the embedding model; without one the built-in one serves
 * @property {import('./engine.js').Log} [log] gets one line at a time, never text of conversations
 * @property {number} [callTimeoutMs] a call that runs longer is stopped with code `deadline` (30,000);
 *   calls that walk the whole space (backup, forget, ...) get ten minutes
 * @property {number} [memoryLimitBytes] how much memory the engine may use (1 GiB)
 */

/** How long a prompt waits for the embedding of its text; later recall goes by keywords alone. */
const QUERY_VECTOR_WAIT_MS = 800;

/**
 * Opens a memory.
 * @param {OpenOptions} options
 * @returns {Promise<Memory>}
 * @throws {StrataError} `busy` if a living process has the directory open, `corrupt`, `newer-version`, `read-only`, ...
 */
export async function openMemory(options) {
  if (typeof options !== 'object' || options === null) throw invalid('openMemory needs {dir}');
  const provider = {
    llm: options.llm && new LanguageModel(options.llm),
    embedding: options.embed && new EmbeddingModel(options.embed),
    log: options.log,
  };
  const space = await enter(options, provider);
  return new Memory(space, options.scope ?? {});
}

/** A handle on an open space. All calls are run one after another, in the order in which they were made. */
export class Memory {
  /** @type {Awaited<ReturnType<typeof enter>>} */
  #space;
  /** @type {ApiSpelling} */
  #spelling;
  /** @type {Promise<void> | undefined} */
  #closed;

  /**
   * @param {Awaited<ReturnType<typeof enter>>} space
   * @param {Scope} scope
   */
  constructor(space, scope) {
    this.#space = space;
    this.#spelling = new ApiSpelling(scope, Date.now);
    /** What opening found and did. */
    this.opened = space.opened;
    /** The data directory, links resolved. */
    this.dir = space.directory;
    /** What people and front ends need; each call resolves to the JSON document that it names. */
    this.memory = new Documents((name, values) => this.#document(name, values));
  }

  /**
   * Returns what enters the prompt. It never waits for a language model.
   * @param {PromptEvent} event
   * @returns {Promise<import('../dist/contract.js').Injection>}
   */
  async beforePromptBuild(event) {
    const queryVector = event?.queryVector ?? (await this.#queryVector(event?.prompt));
    return this.#call('hooks.before-prompt-build', { ...event, queryVector });
  }

  /**
   * Returns `content` without anything that memory had injected.
   * @param {WriteEvent} event
   * @returns {Promise<string>}
   */
  async beforeMessageWrite(event) {
    return this.beforeMessageWriteSync(event);
  }

  /**
   * The same at once, on this thread: for hosts whose hook is synchronous.
   * @param {WriteEvent} event
   * @returns {string}
   */
  beforeMessageWriteSync(event) {
    return beforeMessageWriteSync(event);
  }

  /**
   * Stores a tool result; on return it is durable.
   * @param {ToolEvent} event
   * @returns {Promise<import('../dist/contract.js').ToolReceipt>}
   */
  async afterToolCall(event) {
    return this.#call('hooks.after-tool-call', event);
  }

  /**
   * Stores the messages that are not stored yet; on return they are durable. The list may be the whole
   * session each time.
   * @param {EndEvent} event
   * @returns {Promise<import('../dist/contract.js').CaptureReport>}
   */
  async agentEnd(event) {
    if (!Array.isArray(event?.messages)) throw invalid('messages must be a list');
    return this.#call('hooks.agent-end', { ...event, messages: event.messages.map(plainMessage) });
  }

  /**
   * Makes the session's waiting work due.
   * @param {SessionEvent} [event]
   * @returns {Promise<void>}
   */
  async sessionEnd(event = {}) {
    return this.#call('hooks.session-end', event);
  }

  /**
   * Returns a message list reduced under the model's window.
   * @param {AssembleRequest} request
   * @returns {Promise<import('../dist/contract.js').Assembled>}
   */
  async assemble(request) {
    return this.#call('hooks.assemble', request);
  }

  /**
   * Tells the tokens that a model reported for a list that `assemble` returned.
   * @param {string} model
   * @param {number} estimatedTokens
   * @param {number} reportedTokens
   * @returns {Promise<void>}
   */
  async reportUsage(model, estimatedTokens, reportedTokens) {
    return this.#call('hooks.report-usage', model, estimatedTokens, reportedTokens);
  }

  /**
   * Returns the tools to offer to a model.
   * @returns {Promise<Tool[]>}
   */
  async listTools() {
    return listToolsSync();
  }

  /**
   * Runs a tool for a model.
   * @param {Invocation} invocation
   * @returns {Promise<import('../dist/contract.js').Answer>}
   */
  async callTool(invocation) {
    const queryVector = invocation?.queryVector ?? (await this.#queryVector(queryOf(invocation?.argumentsJson)));
    return this.#call('tools.call', { ...invocation, queryVector });
  }

  /**
   * Returns the operator's view: counts, what waits, what failed.
   * @returns {Promise<Record<string, unknown>>}
   */
  async status() {
    return this.#document('lifecycle.status', []);
  }

  /**
   * Makes all work due that waits only for time or for more turns. It does not wait for that work.
   * @returns {Promise<void>}
   */
  async flush() {
    return this.#call('lifecycle.flush');
  }

  /**
   * Resolves when no request is in flight and nothing is due; for imports and tests.
   * @returns {Promise<void>}
   */
  async idle() {
    this.#mustBeOpen();
    return this.#space.engine.idle();
  }

  /**
   * Gives the handle up; the last one of a directory closes the space. Closing again does nothing.
   * @returns {Promise<void>}
   */
  close() {
    this.#closed ??= this.#space.leave();
    return this.#closed;
  }

  /** @returns {Promise<void>} */
  [/** @type {any} */ (Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose'))]() {
    return this.close();
  }

  #mustBeOpen() {
    if (this.#closed) throw new StrataError('not-open', 'the memory is closed');
  }

  /**
   * @param {string} name
   * @param {unknown[]} values
   */
  async #call(name, ...values) {
    this.#mustBeOpen();
    const result = await this.#space.engine.call(name, lowerArguments(name, values, this.#spelling));
    return lift(contractFunction(name).result, result, this.#spelling);
  }

  /**
   * @param {string} name
   * @param {unknown[]} values
   */
  async #document(name, values) {
    return JSON.parse(await this.#call(name, ...values));
  }

  /**
   * Returns the embedding of a query by the host's model, if there is one and it answers in time.
   * @param {unknown} text
   * @returns {Promise<Float32Array | undefined>}
   */
  async #queryVector(text) {
    const model = this.#space.engine.embedding;
    if (!model || typeof text !== 'string' || text === '') return undefined;
    const controller = new AbortController();
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, QUERY_VECTOR_WAIT_MS, undefined);
    });
    try {
      const asked = askEmbedding(model, [queryTextSync(text)], controller.signal).then((outcome) => /** @type {Float32Array} */ (outcome.val[0]));
      // Without a vector recall still works, by keywords.
      return /** @type {Float32Array | undefined} */ (await Promise.race([asked.catch(() => undefined), late]));
    } finally {
      clearTimeout(timer);
      controller.abort();
    }
  }
}

/** The calls of `memory`, as documents: what they mean is said in `wit/memory.wit`. */
export class Documents {
  #document;

  /** @param {(name: string, values: unknown[]) => Promise<any>} document */
  constructor(document) {
    this.#document = document;
  }

  /**
   * @param {string} layer
   * @param {{filter?: Selector, after?: string, limit?: number}} [page] 100 rows if not said otherwise
   */
  browse(layer, { filter = {}, after, limit = 100 } = {}) {
    return this.#document('memory.browse', [layer, filter, after, limit]);
  }

  /** @param {SearchRequest} request */
  search(request) {
    return this.#document('memory.search', [request]);
  }

  /** @param {string} id */
  trace(id) {
    return this.#document('memory.trace', [id]);
  }

  /** @param {string} id */
  why(id) {
    return this.#document('memory.why', [id]);
  }

  /** @param {string} id */
  history(id) {
    return this.#document('memory.history', [id]);
  }

  /**
   * @param {string} id
   * @param {number} before
   * @param {number} after
   */
  diff(id, before, after) {
    return this.#document('memory.diff', [id, before, after]);
  }

  /**
   * @param {string} id
   * @param {number} revision
   */
  rollback(id, revision) {
    return this.#document('memory.rollback', [id, revision]);
  }

  /**
   * @param {string} id
   * @param {string} text
   */
  edit(id, text) {
    return this.#document('memory.edit', [id, text]);
  }

  /**
   * @param {string} id
   * @param {boolean} [pinned]
   */
  pin(id, pinned = true) {
    return this.#document('memory.pin', [id, pinned]);
  }

  /**
   * Without `confirmed` it only says what it would remove.
   * @param {Selector} which
   * @param {{confirmed?: boolean}} [how]
   */
  forget(which, { confirmed = false } = {}) {
    return this.#document('memory.forget', [which, confirmed]);
  }

  /** @param {string} [layer] */
  retry(layer = '') {
    return this.#document('memory.retry', [layer]);
  }

  /** @param {string} name */
  backup(name) {
    return this.#document('memory.backup', [name]);
  }

  /** @param {string} name */
  restore(name) {
    return this.#document('memory.restore', [name]);
  }

  /** @param {string} name */
  export(name) {
    return this.#document('memory.export', [name]);
  }

  /**
   * @param {string} records JSON Lines
   * @param {{scope?: Scope, dryRun?: boolean}} [how]
   */
  import(records, { scope, dryRun = false } = {}) {
    return this.#document('memory.import', [scope, records, dryRun]);
  }

  rebuild() {
    return this.#document('memory.rebuild', []);
  }
}

/** @param {MessageInput} message */
function plainMessage(message) {
  if (typeof message !== 'object' || message === null || !Array.isArray(message.content)) return message;
  return { ...message, content: JSON.stringify(message.content), structured: true };
}

/** @param {string | undefined} argumentsJson */
function queryOf(argumentsJson) {
  if (!argumentsJson) return undefined;
  try {
    return JSON.parse(argumentsJson)?.query;
  } catch {
    return undefined; // The engine answers what is wrong with the arguments.
  }
}
