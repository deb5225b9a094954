// The host's model, doing the engine's work.

/** Failed calls in a row after which the log says so; single failures are the engine's business. */
const FAILURES_WORTH_A_LINE = 3;

/** Stop reasons by which OpenClaw says that a model gave no answer: it resolves such calls, with empty text. */
const NO_ANSWER = new Set(['error', 'aborted']);

/** Calls in a row that work only without a schema, after which none is sent any more. */
const SCHEMA_REFUSALS = 3;

/**
 * Returns `complete(request, signal)` over OpenClaw's configured model, or undefined where the host has no
 * completion call or the settings name another source.
 *
 * `request` is the contract's (`purpose`, `system`, `prompt`, `schemaJson`, `maxTokens`, `timeoutMs`); the
 * answer is `{ text, model, inputTokens, outputTokens }`; `contexts` says from where the host takes calls. Such calls fire no hooks, so memory does not hear
 * itself.
 */
export function hostModel(api, settings, health, log, contexts) {
  if (settings.model.source !== 'host') return undefined;
  if (typeof api.runtime?.llm?.complete !== 'function') {
    health.set('model', false, 'this OpenClaw has no runtime.llm.complete; memories are made by rules');
    return undefined;
  }
  let failures = 0;
  // Some model services refuse a request that asks for a schema; the engine checks answers anyway.
  let schemaRefusals = 0;
  return async (request, signal) => {
    const model = settings.model.byLayer[request.purpose.split('-')[0]];
    const ask = async (schema) => {
      const answer = await contexts.run(() =>
        api.runtime.llm.complete({
          messages: [{ role: 'user', content: request.prompt }],
          systemPrompt: request.system,
          maxTokens: Math.min(request.maxTokens, settings.model.maxTokens),
          purpose: `strata ${request.purpose}`,
          signal,
          ...(model ? { model } : {}),
          ...(schema ? { responseFormat: schemaFormat(request) } : {}),
        }),
      );
      if (NO_ANSWER.has(answer.stopReason)) {
        throw Object.assign(new Error(`${answer.provider}/${answer.model} gave no answer; OpenClaw's log has the reason`), { mayBeSchema: true });
      }
      return answer;
    };
    try {
      const schema = Boolean(request.schemaJson) && schemaRefusals < SCHEMA_REFUSALS;
      const answer = await ask(schema).then(
        (value) => {
          if (schema) schemaRefusals = 0;
          return value;
        },
        async (error) => {
          if (!schema || signal?.aborted || !(error.mayBeSchema || /response_?format|json_schema/iu.test(error.message))) throw error;
          const value = await ask(false);
          schemaRefusals += 1;
          return value;
        },
      );
      failures = 0;
      const name = `${answer.provider}/${answer.model}`;
      health.set('model', true, name);
      return { text: answer.text, model: name, inputTokens: answer.usage?.inputTokens, outputTokens: answer.usage?.outputTokens };
    } catch (error) {
      failures += 1;
      health.set('model', false, `${failures} failed in a row, last: ${error.message}`);
      if (failures === FAILURES_WORTH_A_LINE) {
        log('warn', `the model fails for memory work (${error.message}); messages are kept and worked through later, see \`openclaw strata status\``);
      }
      throw error;
    }
  };
}

/**
 * For processes that only look: says that there is a model, and leaves its work to the gateway. What the engine
 * asks meanwhile is asked again when the gateway opens the space; without this, a look would distil by rules.
 */
export function gatewaysModel(_request, signal) {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }));
}

function schemaFormat({ purpose, schemaJson }) {
  return { type: 'json_schema', json_schema: { name: purpose.replace(/-/gu, '_'), schema: JSON.parse(schemaJson) } };
}
