// What a model's own count says: how large the prompt is beside the messages, and how well the engine estimates.
//
// OpenClaw tells plugins the texts of a request but not which of its tools are in it (its list names those behind tool
// search too, 200 KB of them), so sizes alone say little. The count that a model reports for a request says it
// exactly. A turn whose list of messages is short shows what the rest costs; a turn whose list is long shows, with
// that taken off, what the list costs, and calibrates the engine's estimate.

/** A rough measure for text that is not the engine's to count. */
export const CHARS_PER_TOKEN = 4;

/** Up to this share of the request, an error in the estimate of the list hardly touches the rest. */
const SHORT_SHARE = 0.1;
/** From this share of the request on, an error in the rest hardly touches the list. */
const LONG_SHARE = 0.5;

/** Registers the hooks that see a request and its first answer. */
export function registerUsage(api, { space, settings, log }) {
  if (!settings.offload.enabled) return;
  api.on('llm_input', (event, ctx) => {
    if (!ctx.sessionKey) return;
    space.remember(space.prompts, ctx.sessionKey, Math.ceil((event.prompt?.length ?? 0) / CHARS_PER_TOKEN));
    // Until a model has counted: the system prompt alone, which is most of it.
    if (!space.overheads.has(ctx.sessionKey))
      space.remember(space.overheads, ctx.sessionKey, { tokens: Math.ceil((event.systemPrompt?.length ?? 0) / CHARS_PER_TOKEN), counted: false });
  });
  // The first answer after an assembly counts the assembled list; later ones of the run count tool results too.
  // Synchronous, as OpenClaw asks: the engine hears of it behind the hook's back.
  api.on('before_message_write', (event, ctx) => {
    if (event.message?.role !== 'assistant' || !ctx.sessionKey) return undefined;
    const pending = space.assembled.get(ctx.sessionKey);
    if (!pending) return undefined;
    space.assembled.delete(ctx.sessionKey);
    const seen = readCount({
      wholeTokens: wholeOf(event.message.usage),
      listTokens: pending.tokens,
      promptTokens: space.prompts.get(ctx.sessionKey) ?? 0,
      overhead: space.overheads.get(ctx.sessionKey),
    });
    if (seen.overhead) space.remember(space.overheads, ctx.sessionKey, seen.overhead);
    if (seen.reportedTokens !== undefined) {
      space.call('reportUsage', [pending.model, pending.tokens, seen.reportedTokens]).catch((error) => log('debug', `usage: ${error.message}`));
    }
    return undefined;
  });
}

/** OpenClaw's `input` leaves out what a prompt cache held. */
function wholeOf(usage) {
  return (usage?.input ?? 0) + (usage?.cacheRead ?? 0) + (usage?.cacheWrite ?? 0);
}

/**
 * Returns what one count says: `{ overhead: { tokens, counted } }`, the prompt beside its messages, and
 * `{ reportedTokens }`, the model's count of the assembled list alone. Either may be missing.
 *
 * `wholeTokens` is the model's count of the request, `listTokens` and `promptTokens` are estimates of the assembled list
 * and of the newest words; an `overhead` that a short list showed (`counted`) is not given up for a rougher one.
 */
export function readCount({ wholeTokens, listTokens, promptTokens, overhead }) {
  const beside = wholeTokens - listTokens - promptTokens;
  if (listTokens <= wholeTokens * SHORT_SHARE) return beside > 0 ? { overhead: { tokens: beside, counted: true } } : {};
  if (!overhead?.counted) return beside > 0 ? { overhead: { tokens: beside, counted: false } } : {};
  const reportedTokens = wholeTokens - overhead.tokens - promptTokens;
  return reportedTokens >= wholeTokens * LONG_SHARE ? { reportedTokens } : {};
}
