// The memory slot, and what the prompt says when a conversation must not be read.
import { PLUGIN_ID } from './settings.js';

/** Returns whether this plugin holds the memory slot in OpenClaw's configuration. */
export function ownsMemorySlot(config) {
  return config?.plugins?.slots?.memory === PLUGIN_ID;
}

/**
 * Returns whether OpenClaw keeps its own memory plugin out: it loads beside the slot's owner unless the
 * owner's settings switch its nightly consolidation off.
 */
export function keepsBundledMemoryOut(config) {
  return ownsMemorySlot(config) && config?.plugins?.entries?.[PLUGIN_ID]?.config?.dreaming?.enabled === false;
}

/** Returns whether the user gave this plugin access to conversations. */
export function hasConversationGrant(config) {
  return config?.plugins?.entries?.[PLUGIN_ID]?.hooks?.allowConversationAccess === true;
}

/** Returns whether the user lets this plugin add to prompts. */
export function mayInject(config) {
  return config?.plugins?.entries?.[PLUGIN_ID]?.hooks?.allowPromptInjection !== false;
}

/**
 * Registers the memory capability when the slot is ours.
 *
 * Recall goes through the prompt hook, so the capability's own prompt section is empty but for one case:
 * without the grant no hook runs, and then the model must know that it remembers nothing. Where the slot
 * belongs to somebody else, the same line goes in as a supplement.
 */
export function registerMemorySlot(api, { health, log, granted }) {
  const section = () => {
    const line = health.promptLine();
    return !granted && line ? [line] : [];
  };
  if (ownsMemorySlot(api.config)) {
    api.registerMemoryCapability({
      promptBuilder: section,
      // OpenClaw's flush turn asks the model to write files before a compaction; the transcript is already stored.
      flushPlanResolver: () => null,
    });
    health.set('memory-slot', true);
    return;
  }
  const owner = api.config?.plugins?.slots?.memory;
  health.set('memory-slot', false, `plugins.slots.memory is ${owner ? `"${owner}"` : 'not set'}; capture, recall and tools work, but two memories may answer`);
  try {
    api.registerMemoryPromptSupplement(section);
  } catch (error) {
    log('debug', `no prompt supplement: ${error.message}`);
  }
}
