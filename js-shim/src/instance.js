/** The component as a set of functions: compiled once, instantiated for each space. */

import { readFileSync } from 'node:fs';
import { instantiate } from '../dist/engine.js';
import { limitMemory } from './memory_limit.js';
import { wasiImports } from './wasi/system.js';

/**
 * What the engine asks of its host, in order.
 * @typedef {{kind: 'ask-model', id: string, request: LlmRequest}
 *   | {kind: 'embed', id: string, texts: string[]}
 *   | {kind: 'cancel-model', id: string}
 *   | {kind: 'cancel-embed', id: string}
 *   | {kind: 'log', level: string, text: string}} Outgoing
 * @typedef {import('../dist/contract.js').Request} LlmRequest
 * @typedef {{llm: import('../dist/contract.js').Abilities, embedding: import('../dist/contract.js').Model | undefined}} Models
 * @typedef {Record<string, WebAssembly.Module>} Modules
 * @typedef {Record<string, Record<string, (...values: unknown[]) => unknown>>} Exports
 * @typedef {{exports: Exports, release: () => void}} Instance `release` closes the files of an instance that is given up
 */

/** No model at all: the engine works by rules. @type {Models} */
export const NO_MODELS = Object.freeze({ llm: Object.freeze({ available: false, model: '', jsonSchema: false }), embedding: undefined });

/** How much memory an engine may use, if nobody says otherwise; a space of 100,000 atoms stays well under it. */
export const DEFAULT_MEMORY_LIMIT_BYTES = 1 << 30;

/** @type {Map<number, Modules>} */
const compiled = new Map();

/**
 * Returns the component's modules, compiled; the same ones for the same limit, and they can be sent
 * to a worker.
 * @param {number} memoryLimitBytes
 * @returns {Modules}
 */
export function engineModules(memoryLimitBytes) {
  let modules = compiled.get(memoryLimitBytes);
  if (!modules) {
    modules = Object.fromEntries(moduleBytes(memoryLimitBytes).map(([name, bytes]) => [name, new WebAssembly.Module(bytes)]));
    compiled.set(memoryLimitBytes, modules);
  }
  return modules;
}

/**
 * Compiles what `engineModules` returns without holding up the calling thread: 0.1 s, which a host's event loop would feel.
 * @param {number} memoryLimitBytes
 */
export async function compileEngine(memoryLimitBytes) {
  if (compiled.has(memoryLimitBytes)) return;
  const modules = await Promise.all(moduleBytes(memoryLimitBytes).map(async ([name, bytes]) => /** @type {const} */ ([name, await WebAssembly.compile(bytes)])));
  compiled.set(memoryLimitBytes, Object.fromEntries(modules));
}

/**
 * @param {number} memoryLimitBytes
 * @returns {[string, Uint8Array<ArrayBuffer>][]}
 */
function moduleBytes(memoryLimitBytes) {
  const names = /** @type {string[]} */ (JSON.parse(readFileSync(new URL('../dist/modules.json', import.meta.url), 'utf8')));
  return names.map((name) => {
    const bytes = limitMemory(readFileSync(new URL(`../dist/${name}`, import.meta.url)), memoryLimitBytes);
    return [name, /** @type {Uint8Array<ArrayBuffer>} */ (bytes)];
  });
}

/**
 * Returns a new instance. No space is open in it.
 * @param {Modules} modules
 * @param {object} host
 * @param {string | undefined} host.directory the data directory; without one, `open` fails
 * @param {() => Models} host.models what the host's models can do now
 * @param {(outgoing: Outgoing) => void} host.send takes what the engine asks for; only queues
 * @param {(line: string) => void} host.printed takes what the guest prints: a panic's message
 * @returns {Instance}
 */
export function newInstance(modules, host) {
  const wasi = wasiImports(host.directory, host.printed);
  const imports = {
    ...wasi.imports,
    'strata:memory/llm': {
      capabilities: () => host.models().llm,
      submit: (/** @type {string} */ id, /** @type {LlmRequest} */ request) => host.send({ kind: 'ask-model', id, request }),
      cancel: (/** @type {string} */ id) => host.send({ kind: 'cancel-model', id }),
    },
    'strata:memory/embedding': {
      describe: () => host.models().embedding,
      submit: (/** @type {string} */ id, /** @type {string[]} */ texts) => host.send({ kind: 'embed', id, texts }),
      cancel: (/** @type {string} */ id) => host.send({ kind: 'cancel-embed', id }),
    },
    'strata:memory/log': {
      line: (/** @type {string} */ level, /** @type {string} */ text) => host.send({ kind: 'log', level, text }),
    },
  };
  return { exports: /** @type {Exports} */ (instantiate((name) => modules[name], imports)), release: wasi.release };
}

/**
 * Calls `interface.name` of an instance.
 *
 * Returns `{value}`, or `{failure}` with the contract's refusal, or `{trap}` with the reason: then the
 * instance is dead.
 * @param {Instance} instance
 * @param {string} name
 * @param {unknown[]} values
 * @returns {{value: unknown} | {failure: import('../dist/contract.js').Failure} | {trap: string}}
 */
export function callExport(instance, name, values) {
  const [owner, member] = name.split('.');
  const spelled = member.replace(/-([a-z0-9])/g, (_, letter) => letter.toUpperCase());
  try {
    return { value: instance.exports[owner][spelled](...values) };
  } catch (error) {
    // jco throws the error of a WIT `result` as it is (`noComponentErrorWrapping`); an `Error` is a trap.
    if (error instanceof Error) return { trap: error.message };
    const { code, message } = /** @type {import('../dist/contract.js').Failure} */ (error);
    return { failure: { code, message } };
  }
}
