// The plugin's settings: what a user wrote in `plugins.entries.strata.config`, and what of it goes where.
//
// Keys and defaults are the reference system's wherever it has them, so that a `memory-tencentdb` block
// works as it is. The engine owns most of them; this file knows only the ones that a host acts on.
import path from 'node:path';

/** The reference's id in OpenClaw's configuration. */
export const REFERENCE_PLUGIN_ID = 'memory-tencentdb';

/** Our id in OpenClaw's configuration, and the name of our slots. */
export const PLUGIN_ID = 'strata';

/** Parts of the reference's configuration that this system has no use for; they are accepted and named. */
const UNUSED = ['storeBackend', 'tcvdb', 'bm25', 'report'];

/**
 * Returns the settings that the plugin acts on, from the configuration block and OpenClaw's state directory.
 *
 * `engine` is the whole block, to be cut to what the engine knows by `engineSettings`; `unused` lists what
 * was set and has no effect here.
 */
export function readSettings(config, stateDir) {
  const block = config ?? {};
  const { capture = {}, recall = {}, llm = {}, embedding = {}, offload = {}, tools = {}, extraction = {}, persona = {} } = block;
  const root = block.dataDir ? path.resolve(stateDir, block.dataDir) : path.join(stateDir, PLUGIN_ID);
  return {
    // The engine's directory is one space; the plugin's own files (book, socket) stay out of it.
    root,
    dataDir: path.join(root, 'memory'),
    capture: {
      enabled: capture.enabled ?? true,
      excludeAgents: capture.excludeAgents ?? [],
      excludeChatTypes: capture.excludeChatTypes ?? [],
      excludeSenders: capture.excludeSenders ?? [],
      cron: capture.cron ?? false,
      heartbeat: capture.heartbeat ?? false,
      subagents: capture.subagents ?? false,
      // A tool's result belongs to offload; as conversation it is noise unless somebody wants it.
      tools: capture.tools ?? false,
    },
    recall: { enabled: recall.enabled ?? true, timeoutMs: recall.timeoutMs ?? 5_000 },
    model: modelSettings(llm, { extraction: extraction.model, persona: persona.model, offload: offload.model }),
    embedding: embeddingSettings(embedding),
    offload: { enabled: offload.enabled ?? true, defaultContextWindow: offload.defaultContextWindow ?? 200_000 },
    toolVisibility: tools.visibility ?? 'direct',
    engine: forEngine(block),
    unused: UNUSED.filter((key) => key in block && !(key === 'storeBackend' && block[key] === 'sqlite') && !(key === 'report' && !block[key]?.enabled)),
  };
}

/**
 * Returns the part of the configuration block that the engine's settings know.
 *
 * `known` is an object with every setting of the engine (the `default` of its schema). The engine refuses
 * a key that it does not know, and the block holds keys that are the plugin's own.
 */
export function engineSettings(block, known) {
  const out = {};
  for (const [key, value] of Object.entries(block)) {
    if (!(key in known) || value === undefined) continue;
    const inner = known[key];
    const nested = inner && typeof inner === 'object' && !Array.isArray(inner);
    out[key] = nested && value && typeof value === 'object' ? engineSettings(value, inner) : value;
  }
  // The reference calls vector search `embedding`.
  if (out.recall?.strategy === 'embedding') out.recall.strategy = 'vector';
  return out;
}

/** The block with the reference's names replaced where ours say more. */
function forEngine(block) {
  if (block.offload?.offloadRetentionDays === undefined) return block;
  return { ...block, offload: { retentionDays: block.offload.offloadRetentionDays, ...block.offload } };
}

/** Which model works for the memory: the host's ("host"), an endpoint of its own ("endpoint"), or none. */
function modelSettings(llm, perLayer) {
  const source = llm.source ?? (llm.enabled && llm.baseUrl ? 'endpoint' : 'host');
  return {
    source,
    baseUrl: llm.baseUrl,
    apiKey: llm.apiKey,
    model: llm.model,
    maxTokens: llm.maxTokens ?? 4_096,
    timeoutMs: llm.timeoutMs ?? 120_000,
    // By the first part of a request's purpose: l1-extract, l2-scenes, l3-persona, offload-summary, ...
    byLayer: { l1: perLayer.extraction, l2: perLayer.persona, l3: perLayer.persona, offload: perLayer.offload },
  };
}

/** An embedding endpoint, or undefined: then the engine's built-in embedder serves. */
function embeddingSettings({
  enabled = true,
  provider = 'none',
  baseUrl,
  apiKey,
  model,
  dimensions,
  sendDimensions = true,
  timeoutMs = 10_000,
  maxInputChars = 5_000,
}) {
  if (!enabled || provider === 'none' || !baseUrl || !dimensions) return undefined;
  return { baseUrl, apiKey, model, dimensions, sendDimensions, timeoutMs, maxInputChars };
}
