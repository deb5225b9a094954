// The host's model, doing the engine's work.

/** Failed calls in a row after which the log says so; single failures are the engine's business. */
const FAILURES_WORTH_A_LINE = 3;

/**
 * Returns `complete(request, signal)` over OpenClaw's configured model, or undefined where the host has no
 * completion call or the settings name another source.
 *
 * `request` is the contract's (`purpose`, `system`, `prompt`, `schemaJson`, `maxTokens`, `timeoutMs`); the
 * answer is `{ text, model, inputTokens, outputTokens }`. Such calls fire no hooks, so memory does not hear
 * itself.
 */
export function hostModel(api, settings, health, log) {
  if (settings.model.source !== 'host') return undefined;
  if (typeof api.runtime?.llm?.complete !== 'function') {
    health.set('model', false, 'this OpenClaw has no runtime.llm.complete; memories are made by rules');
    return undefined;
  }
  let failures = 0;
  return async (request, signal) => {
    const layer = request.purpose.split('-')[0];
    const model = settings.model.byLayer[layer];
    try {
      const answer = await api.runtime.llm.complete({
        messages: [{ role: 'user', content: request.prompt }],
        systemPrompt: request.system,
        maxTokens: Math.min(request.maxTokens, settings.model.maxTokens),
        purpose: `strata ${request.purpose}`,
        signal,
        ...(model ? { model } : {}),
        ...(request.schemaJson
          ? { responseFormat: { type: 'json_schema', json_schema: { name: request.purpose.replace(/-/gu, '_'), schema: JSON.parse(request.schemaJson) } } }
          : {}),
      });
      failures = 0;
      health.set('model', true, `${answer.provider}/${answer.model}`);
      return {
        text: answer.text,
        model: `${answer.provider}/${answer.model}`,
        inputTokens: answer.usage?.inputTokens,
        outputTokens: answer.usage?.outputTokens,
      };
    } catch (error) {
      failures += 1;
      health.set('model', false, `${failures} failed in a row, last: ${error.message}`);
      if (failures === FAILURES_WORTH_A_LINE)
        log('warn', `the model fails for memory work (${error.message}); messages are kept and worked through later, see \`openclaw strata status\``);
      throw error;
    }
  };
}
