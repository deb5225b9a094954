// What a model's own count says about the engine's estimate.
//
// The engine estimates tokens without a tokenizer and is calibrated by counts that models report. It wants
// them for the list that `assemble` returned, and a model reports them for the whole request; so what else
// was in the request is noted by size and taken off.

/** A rough measure for text that is not the engine's to count: system prompts and tool schemas. */
export const CHARS_PER_TOKEN = 4;

/** A report is worth making when the list is at least this share of the request: below, it says more about the rest. */
const MIN_SHARE = 0.5;

/** Registers the hooks that see a request and its first answer. */
export function registerUsage(api, { space, settings, log }) {
  if (!settings.offload.enabled) return;
  api.on('llm_input', (event, ctx) => {
    if (!ctx.sessionKey) return;
    const tools = event.tools ? JSON.stringify(event.tools).length : 0;
    const overhead = Math.ceil(((event.systemPrompt?.length ?? 0) + tools) / CHARS_PER_TOKEN);
    space.remember(space.overheads, ctx.sessionKey, overhead);
    space.remember(space.besides, ctx.sessionKey, overhead + Math.ceil((event.prompt?.length ?? 0) / CHARS_PER_TOKEN));
  });
  // The first answer after an assembly counts the assembled list; later ones of the run count tool results too.
  // Synchronous, as OpenClaw asks: the engine hears of it behind the hook's back.
  api.on('before_message_write', (event, ctx) => {
    if (event.message?.role !== 'assistant' || !ctx.sessionKey) return undefined;
    const pending = space.assembled.get(ctx.sessionKey);
    if (!pending) return undefined;
    space.assembled.delete(ctx.sessionKey);
    const reported = reportFor(space.besides.get(ctx.sessionKey), event.message.usage);
    if (reported !== undefined) {
      space.call('reportUsage', [pending.model, pending.tokens, reported]).catch((error) => log('debug', `usage: ${error.message}`));
    }
    return undefined;
  });
}

/**
 * Returns the tokens that a model reported for the assembled list alone, or undefined where the report says nothing
 * about it: no usage, no size of the rest, or a list that is the smaller part of the request.
 *
 * `besideTokens` is the estimate of the rest; `usage` is OpenClaw's, whose `input` leaves out what a prompt cache held.
 */
export function reportFor(besideTokens, usage) {
  const whole = (usage?.input ?? 0) + (usage?.cacheRead ?? 0) + (usage?.cacheWrite ?? 0);
  if (besideTokens === undefined || whole <= besideTokens) return undefined;
  const list = whole - besideTokens;
  return list < whole * MIN_SHARE ? undefined : list;
}
