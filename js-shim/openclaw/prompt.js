// What enters the prompt: the hook before a prompt is built.
import { within } from './deadline.js';
import { excludedSession } from './rules.js';
import { scopeOf } from './sessions.js';
import { renameTools } from './toolset.js';

/** OpenClaw stops waiting for the hook after 15 s; ours ends before, so that the reply is never the loser. */
const MAX_DEADLINE_MS = 12_000;

/**
 * Returns the handler of `before_prompt_build`.
 *
 * It never throws and never outlasts its deadline. A late or failed recall costs this turn its recalled
 * memories; the stable part is then the one last served, so that the provider's prompt cache still holds.
 */
export function promptHandler({ space, settings, health, log, onRun, ownNames }) {
  const deadlineMs = Math.min(settings.recall.timeoutMs, MAX_DEADLINE_MS);
  return async (event, ctx) => {
    if (!ctx.sessionKey || excludedSession(settings.capture, ctx.sessionKey, ctx.trigger)) return undefined;
    onRun(ctx);
    if (!settings.recall.enabled) return undefined;
    const scope = scopeOf(ctx.sessionKey, ctx.agentId, space.runs.get(ctx.sessionKey)?.owner);
    const key = `${scope.agent} ${scope.user}`;
    const request = { scope, prompt: event.currentUserMessage ?? event.prompt ?? '', turnId: ctx.runId, at: Date.now() };
    const started = performance.now();
    let injection;
    try {
      injection = await within(deadlineMs, space.call('beforePromptBuild', [request]));
      space.remember(space.stable, key, injection.stable);
      health.set('storage', true);
      if (health.set('recall', true)) log('debug', 'recall works');
    } catch (error) {
      const note = error.code === 'late' ? `no answer within ${deadlineMs} ms` : `${error.code ?? 'error'}: ${error.message}`;
      if (health.set(error.code === 'late' ? 'recall' : 'storage', false, note)) log('warn', `recall left out: ${note}`);
      injection = { stable: space.stable.get(key) ?? '', dynamic: '' };
    }
    health.timed('recall', performance.now() - started);
    const stable = [renameTools(injection.stable, ownNames), health.promptLine()].filter(Boolean).join('\n\n');
    if (!stable && !injection.dynamic) return undefined;
    return {
      ...(stable ? { appendSystemContext: stable } : {}),
      ...(injection.dynamic ? { prependContext: injection.dynamic } : {}),
    };
  };
}
