// Wiring: which of OpenClaw's events lead where.
//
// OpenClaw calls `register` once for each instance of the plugin that it loads. Every instance registers
// everything, because turns run in one instance and lifecycle in another; what must happen once happens in
// the shared space.
import { CallContexts } from './call-context.js';
import { Capture } from './capture.js';
import { registerCommands } from './cli.js';
import { within } from './deadline.js';
import { openEngine } from './engine.js';
import { Health } from './health.js';
import { hostModel } from './model.js';
import { registerContextEngine, registerToolResults } from './offload.js';
import { promptHandler } from './prompt.js';
import { excludedSession } from './rules.js';
import { scopeOf } from './sessions.js';
import { readSettings } from './settings.js';
import { hasConversationGrant, keepsBundledMemoryOut, mayInject, registerMemorySlot } from './slots.js';
import { leaseSpace } from './space.js';
import { stripMessage } from './strip.js';
import { registerTools } from './toolset.js';
import { loadTranscriptReader } from './transcript.js';
import { stateDir } from './state-dir.js';
import { registerUsage } from './usage.js';

/** Longest that an unloading waits for the engine to close. */
const DISPOSE_PATIENCE_MS = 1_000;

/** OpenClaw's modes in which only commands may be registered and `api.runtime` must not be touched. */
const COMMAND_MODES = new Set(['cli-metadata', 'setup-only']);

/** Registers the plugin with one instance of OpenClaw's plugin API. */
export function register(api, version) {
  registerCommands(api, version);
  if (COMMAND_MODES.has(api.registrationMode)) return;

  const settings = readSettings(api.pluginConfig, stateDir(api));
  const health = new Health(api.registrationMode);
  const log = (level, line) => api.logger?.[level]?.(`strata: ${line}`);
  const granted = hasConversationGrant(api.config);
  const contexts = new CallContexts();
  contexts.keep();
  const lease = leaseSpace({
    settings,
    version,
    open: (options) => openEngine({ ...options, packageDir: api.rootDir }),
    client: { logger: api.logger, complete: hostModel(api, settings, health, log, contexts), health: () => health.report() },
  });
  const { space } = lease;
  const parts = { space, settings, health, log, granted, active: granted, version, ownNames: keepsBundledMemoryOut(api.config) };
  const capture = new Capture({ ...parts, reader: loadTranscriptReader(), lifecycle: api.registrationMode === 'full' });
  if (!granted) health.set('recall', false, 'not granted: `openclaw strata setup` asks for access to conversations');
  else if (!mayInject(api.config)) health.set('recall', false, 'plugins.entries.strata.hooks.allowPromptInjection is false');

  registerTools(api, parts);
  registerMemorySlot(api, parts);
  registerToolResults(api, parts);
  registerUsage(api, parts);
  registerContextEngine(api, { ...parts, capture });

  api.on('before_prompt_build', promptHandler({ ...parts, onRun: (ctx) => capture.onRun(ctx) }));
  // Synchronous on purpose: OpenClaw ignores a promise here.
  api.on('before_message_write', (event) => {
    const message = stripMessage(event.message);
    return message ? { message } : undefined;
  });
  api.on('agent_end', async (event, ctx) => {
    await capture.readEvent(ctx, event.messages);
    await capture.read(ctx);
  });
  api.on('before_compaction', async (_event, ctx) => void (await capture.read(ctx)));
  api.on('before_reset', async (event, ctx) => capture.readBeforeReset(ctx, event.messages));
  api.on('session_end', async (event, ctx) => {
    if (!granted) return;
    const sessionKey = event.sessionKey ?? ctx.sessionKey;
    if (!sessionKey || excludedSession(settings.capture, sessionKey, undefined)) return;
    await capture.read({ ...ctx, sessionKey });
    await space
      .call('sessionEnd', [{ scope: scopeOf(sessionKey, ctx.agentId, space.runs.get(sessionKey)?.owner), reason: event.reason ?? 'unknown', at: Date.now() }])
      .catch((error) => log('debug', `session end: ${error.message}`));
  });
  api.on('gateway_stop', async () => capture.stop());

  const unsubscribe = api.runtime.events?.onSessionTranscriptUpdate?.((update) => capture.onStored(update));
  api.registerService({
    id: 'strata',
    async start() {
      contexts.keep();
      if (settings.unused.length) log('info', `set and without effect here: ${settings.unused.join(', ')}`);
      if (!granted) log('warn', 'installed, but not allowed to read conversations; run `openclaw strata setup`');
      // Opened now, so that the first prompt does not pay for it; a failure is reported by the space.
      await space.call('status', []).catch(() => undefined);
      await capture.readAll();
    },
    // `gateway_stop` and disposal do what is to be done; a service that dawdles holds up a reload.
    stop() {},
  });
  api.lifecycle?.registerRuntimeLifecycle?.({
    id: 'strata',
    cleanup({ reason }) {
      if (reason !== 'restart' && reason !== 'reset') log('info', `switched off (${reason}); the memory stays in ${settings.dataDir}`);
    },
  });
  api.lifecycle?.onDispose?.(async () => {
    unsubscribe?.();
    // OpenClaw gives all cleanup 5 s and breaks a reload off that takes longer. Closing goes on behind our back:
    // the next opener in this process waits for it, and a process that ends first leaves a store that is safe.
    const closed = capture.stop().then(() => lease.release());
    await within(DISPOSE_PATIENCE_MS, closed).catch((error) => log('debug', `closing goes on: ${error.message}`));
  });
}
