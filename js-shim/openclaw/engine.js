// The engine as the plugin calls it: one function for every call, so that a line to another process looks
// the same. Names and records are the Node package's; results are JSON values.
import fs from 'node:fs';
import { engineSettings } from './settings.js';
import { failure } from './socket.js';

/** The engine's settings with their defaults, written down by the build. */
const SETTINGS_FILE = new URL('../dist/settings.json', import.meta.url);

/** Calls of the package's `Memory`, by name. */
const HOOKS = new Set(['beforePromptBuild', 'afterToolCall', 'agentEnd', 'sessionEnd', 'assemble', 'reportUsage', 'callTool', 'status', 'flush']);

/** Calls of its `Documents`, with the arguments that each of ours stands for. */
const DOCUMENTS = {
  browse: (documents, layer, filter, after, limit) => documents.browse(layer, { filter, after, limit }),
  search: (documents, request) => documents.search(request),
  trace: (documents, id) => documents.trace(id),
  why: (documents, id) => documents.why(id),
  history: (documents, id) => documents.history(id),
  diff: (documents, id, before, after) => documents.diff(id, before, after),
  rollback: (documents, id, revision) => documents.rollback(id, revision),
  edit: (documents, id, text) => documents.edit(id, text),
  pin: (documents, id, pinned) => documents.pin(id, pinned),
  forget: (documents, which, confirmed) => documents.forget(which, { confirmed }),
  retry: (documents, layer) => documents.retry(layer),
  backup: (documents, name) => documents.backup(name),
  restore: (documents, name) => documents.restore(name),
  export: (documents, name) => documents.export(name),
  import: (documents, scope, records, dryRun) => documents.import(records, { scope, dryRun }),
  rebuild: (documents) => documents.rebuild(),
};

/**
 * Opens the space in `dir` and returns `{ call(method, args), close() }`.
 *
 * `complete` performs a model request with the host's model, if there is one. Rejects with the contract's failure codes, and
 * with "trap" and "deadline", after which the package opens the space again by itself.
 */
export async function openEngine({ dir, settings, complete, log }) {
  // Loaded here, because most processes that load the plugin never open a space.
  const { openMemory } = await import('../src/index.js');
  const memory = await openMemory({
    dir,
    settings: engineSettings(settings.engine, JSON.parse(fs.readFileSync(SETTINGS_FILE, 'utf8'))),
    log,
    ...model(settings.model, complete),
    ...embedding(settings.embedding),
  });
  return {
    async call(method, args) {
      if (HOOKS.has(method)) return memory[method](...args);
      const document = Object.hasOwn(DOCUMENTS, method) ? DOCUMENTS[method] : undefined;
      if (!document) throw failure('unsupported', `there is no call ${method}`);
      return document(memory.memory, ...args);
    },
    close: () => memory.close(),
  };
}

function model(settings, complete) {
  if (settings.source === 'none') return {};
  if (settings.source === 'endpoint') return { llm: { url: settings.baseUrl, model: settings.model, ...(settings.apiKey ? { key: settings.apiKey } : {}) } };
  return complete ? { llm: { complete, model: 'openclaw', jsonSchema: true } } : {};
}

function embedding(settings) {
  if (!settings) return {};
  return { embed: { url: settings.baseUrl, model: settings.model, dimensions: settings.dimensions, ...(settings.apiKey ? { key: settings.apiKey } : {}) } };
}
