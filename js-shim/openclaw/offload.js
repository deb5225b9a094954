// Short-term memory: tool results go whole into the engine, and old ones leave the prompt.
//
// Three seams of OpenClaw, each of which may be missing: the tool-result middleware sees a result before
// the host redacts or shortens it; `after_tool_call` sees what is left where the middleware was refused; the
// context-engine slot lets `assemble` replace results of earlier turns. OpenClaw 2026.9 gives a context
// engine the history before the current turn, so results of the running turn stay as they are.
import { within } from './deadline.js';
import { excludedSession } from './rules.js';
import { scopeOf } from './sessions.js';
import { PLUGIN_ID } from './settings.js';
import { textOf } from './transcript.js';
import { CHARS_PER_TOKEN } from './usage.js';

/** Results already handed over, by call id, so that the two seams do not store one twice. */
const MAX_KNOWN_CALLS = 2_000;

/** Longest that a tool's result waits until it is stored. */
const STORE_PATIENCE_MS = 3_000;

/** What OpenClaw asks of a context engine that takes part in durable turns. */
const TRANSCRIPT_SEMANTICS = { currentTurnFence: 'before-current-turn-entry-v1', turnAdvancementIdempotency: 'atomic-idempotent-v1' };

/** Registers the seams that tool results pass. `active` is false without the user's grant. */
export function registerToolResults(api, { space, settings, health, log, active }) {
  if (!settings.offload.enabled) {
    health.set('offload', true, 'switched off; offload.enabled turns it on');
    return;
  }
  if (!active) {
    health.set('offload', false, 'not granted: `openclaw strata setup` asks for access to conversations');
    return;
  }
  const known = space.toolCalls;
  const store = async ({ sessionKey, agentId, toolCallId, toolName, args, output, isError, durationMs }) => {
    if (!sessionKey || !toolCallId || known.has(toolCallId) || excludedSession(settings.capture, sessionKey, space.runs.get(sessionKey)?.trigger)) return;
    known.set(toolCallId, true);
    if (known.size > MAX_KNOWN_CALLS) known.delete(known.keys().next().value);
    const request = {
      scope: scopeOf(sessionKey, agentId, space.runs.get(sessionKey)?.owner),
      toolCallId,
      toolName,
      argumentsJson: JSON.stringify(args ?? {}),
      output,
      isError,
      durationMs,
      at: Date.now(),
    };
    const stored = space.call('afterToolCall', [request]).then(
      () => health.set('offload', true),
      (error) => {
        known.delete(toolCallId);
        if (health.set('offload', false, `${error.code ?? 'error'}: ${error.message}`)) log('warn', `a tool result was not stored: ${error.message}`);
      },
    );
    // The model waits for this result: a slow disk delays it by so much and no more.
    await within(STORE_PATIENCE_MS, stored).catch(() => undefined);
  };
  try {
    api.registerAgentToolResultMiddleware(
      async (event, ctx) => {
        await store({
          sessionKey: ctx.sessionKey,
          agentId: ctx.agentId,
          toolCallId: event.toolCallId,
          toolName: event.toolName,
          args: event.args,
          output: textOf(event.result?.content),
          isError: event.isError === true,
        });
        return undefined;
      },
      { runtimes: ['openclaw'] },
    );
    health.set('offload', true);
  } catch (error) {
    health.set('offload', true, `tool results are stored as OpenClaw shows them to hooks (${error.message})`);
    log('warn', `tool-result middleware refused: ${error.message}`);
  }
  api.on('after_tool_call', async (event, ctx) => {
    await store({
      sessionKey: ctx.sessionKey,
      agentId: ctx.agentId,
      toolCallId: event.toolCallId,
      toolName: event.toolName,
      args: event.params,
      output: event.error ?? textOf(event.result?.content),
      isError: Boolean(event.error),
      durationMs: event.durationMs === undefined ? undefined : Math.round(event.durationMs),
    });
  });
}

/** Registers the context engine; whether it is used is the slot's decision. */
export function registerContextEngine(api, { space, settings, health, log, capture, version, active }) {
  const selected = api.config?.plugins?.slots?.contextEngine;
  if (selected !== PLUGIN_ID)
    health.set(
      'context-engine',
      !settings.offload.enabled,
      `the slot plugins.slots.contextEngine is ${selected ? `"${selected}"` : 'not set'}; tool results are stored, but stay in the prompt`,
    );
  else health.set('context-engine', true);
  api.registerContextEngine(PLUGIN_ID, () => ({
    info: { id: PLUGIN_ID, name: 'Strata', version, ownsCompaction: false, turnMaintenanceMode: 'background', transcriptSemantics: TRANSCRIPT_SEMANTICS },
    async ingest() {
      // Admitted turns arrive by commitTurn and the transcript; single messages need nothing.
      return { ingested: false };
    },
    async assemble(params) {
      // An engine of its own leaves out OpenClaw's memory section, with what other plugins put there.
      const systemPromptAddition = await memorySection(params);
      const untouched = { messages: params.messages, estimatedTokens: estimate(params.messages), ...(systemPromptAddition ? { systemPromptAddition } : {}) };
      if (!active || !settings.offload.enabled || excludedSession(settings.capture, params.sessionKey ?? '', undefined)) return untouched;
      const request = {
        scope: scopeOf(params.sessionKey, undefined, space.runs.get(params.sessionKey)?.owner),
        messagesJson: JSON.stringify(params.messages),
        windowTokens: params.tokenBudget ?? settings.offload.defaultContextWindow,
        overheadTokens: space.overheads.get(params.sessionKey)?.tokens ?? 0,
        model: params.model ?? '',
        at: Date.now(),
      };
      try {
        const assembled = await space.call('assemble', [request]);
        space.remember(space.assembled, params.sessionKey, { model: request.model, tokens: assembled.tokensAfter });
        health.set(
          'context-engine',
          true,
          assembled.mode === 'none' ? '' : `last turn: ${assembled.mode}, ${assembled.tokensBefore} to ${assembled.tokensAfter} tokens`,
        );
        return { ...untouched, messages: JSON.parse(assembled.messagesJson), estimatedTokens: assembled.tokensAfter };
      } catch (error) {
        if (health.set('context-engine', false, `${error.code ?? 'error'}: ${error.message}`)) log('warn', `context left as it is: ${error.message}`);
        return untouched;
      }
    },
    async compact(params) {
      // What is summarized away is read first; the summary itself is the host's.
      await capture.read({ agentId: params.agentId, sessionKey: params.sessionKey, sessionId: params.sessionId });
      const { delegateCompactionToRuntime } = await import('openclaw/plugin-sdk/core');
      return delegateCompactionToRuntime(params);
    },
    async commitTurn(params) {
      // The transcript and the book are the durable record: a reading that fails now is made up later, so
      // the turn counts as taken over even when the engine is down.
      const tally = await capture.read({ agentId: params.sessionTarget?.agentId, sessionKey: params.sessionKey, sessionId: params.sessionId });
      return { status: tally && tally.delivered === 0 ? 'duplicate' : 'committed' };
    },
  }));
}

async function memorySection({ availableTools, citationsMode, sessionKey }) {
  const { buildMemorySystemPromptAddition } = await import('openclaw/plugin-sdk/core');
  return buildMemorySystemPromptAddition?.({ availableTools: availableTools ?? new Set(), citationsMode, agentSessionKey: sessionKey });
}

/** A rough size for the host when the list is passed through. */
function estimate(messages) {
  return Math.ceil(JSON.stringify(messages).length / CHARS_PER_TOKEN);
}
