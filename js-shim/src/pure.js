/**
 * The exports that need no open space, at once and on the calling thread: for hosts whose hooks are
 * synchronous. They run in an instance that has no directory.
 */

import { ApiSpelling, lowerArguments } from './convert.js';
import { DEFAULT_MEMORY_LIMIT_BYTES, NO_MODELS, callExport, engineModules, newInstance } from './instance.js';
import { StrataError } from './errors.js';

/** @type {import('./instance.js').Instance | undefined} */
let instance;

/**
 * @param {string} name
 * @param {unknown[]} values
 */
function pure(name, values) {
  const lowered = lowerArguments(name, values, new ApiSpelling({}, Date.now));
  instance ??= newInstance(engineModules(DEFAULT_MEMORY_LIMIT_BYTES), { directory: undefined, models: () => NO_MODELS, send: () => {}, printed: () => {} });
  const answer = callExport(instance, name, lowered);
  if ('value' in answer) return /** @type {string} */ (answer.value);
  instance = undefined;
  throw 'trap' in answer ? new StrataError('trap', `the engine stopped: ${answer.trap}`) : new StrataError(answer.failure.code, answer.failure.message);
}

/**
 * Returns `content` without anything that memory had injected.
 * @param {import('../dist/contract.js').WriteEvent} event
 * @returns {string}
 */
export function beforeMessageWriteSync(event) {
  return pure('hooks.before-message-write', [event]);
}

/**
 * Returns the text of a prompt that should be embedded for `queryVector`.
 * @param {string} prompt
 * @returns {string}
 */
export function queryTextSync(prompt) {
  return pure('hooks.query-text', [prompt]);
}

/**
 * Returns the tools to offer to a model.
 * @returns {import('./memory.js').Tool[]}
 */
export function listToolsSync() {
  return JSON.parse(pure('tools.list', []));
}

/**
 * Returns the JSON Schema of `settings`.
 * @returns {Record<string, unknown>}
 */
export function configSchemaSync() {
  return JSON.parse(pure('lifecycle.config-schema', []));
}
