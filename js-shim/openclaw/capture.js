// When to read the transcript, and how what was read reaches the engine.
import { within } from './deadline.js';
import { excludedByChoice, excludedSession } from './rules.js';
import { describeSession, scopeOf } from './sessions.js';
import { byOwner, drainSession, siftRows } from './transcript.js';

/** After a stored message that no finished run announces (an aborted run, an injected message). */
const QUIET_MS = 3_000;
/** Refusals that are about the message itself: asking again gives the same. */
const REFUSALS = new Set(['too-large', 'invalid-argument']);
/** Longest wait for the last readings when OpenClaw stops; the host allows its hook 5 s. */
const STOP_PATIENCE_MS = 4_000;

export class Capture {
  /**
   * `reader` resolves to OpenClaw's transcript reader, or undefined on a host without one. `granted` tells
   * whether the user gave this plugin access to conversations; without it nothing is ever read. `lifecycle` is true for
   * the instance that OpenClaw runs the plugin's lifecycle in; it notes from when to when memory is switched off.
   */
  constructor({ space, settings, health, log, reader, granted, lifecycle = false }) {
    Object.assign(this, { space, settings, health, log, reader, granted });
    this.timers = new Map();
    this.active = granted && settings.capture.enabled;
    this.excluded = {};
    if (lifecycle) {
      if (this.active) space.book.resume(Date.now());
      else space.book.pause();
    }
    if (!granted) health.set('capture', false, 'not granted: `openclaw strata setup` asks for access to conversations');
    else if (!settings.capture.enabled) health.set('capture', true, 'switched off by capture.enabled');
    else health.set('capture', true);
  }

  /** A run begins: the session is put on the list, so that its turn is read even if nobody lives to say so. */
  onRun(ctx) {
    const { owner } = this.space.runs.get(ctx.sessionKey) ?? {};
    this.space.remember(this.space.runs, ctx.sessionKey, { runId: ctx.runId, trigger: ctx.trigger, owner });
    if (!this.active || !ctx.sessionId) return;
    this.space.book.start(Date.now());
    this.space.book.entry(identityOf(ctx));
  }

  /** OpenClaw stored a message: read the session when it has been quiet for a moment. */
  onStored({ target, message }) {
    if (!this.active || !target?.sessionKey || !target.sessionId) return;
    const meta = message?.role === 'user' ? message.__openclaw : undefined;
    if (typeof meta?.senderIsOwner === 'boolean') {
      this.space.remember(this.space.runs, target.sessionKey, { ...this.space.runs.get(target.sessionKey), owner: meta.senderIsOwner });
    }
    this.timers.get(target.sessionKey)?.close();
    const timer = setTimeout(() => {
      this.timers.delete(target.sessionKey);
      this.read(target);
    }, QUIET_MS);
    timer.unref();
    this.timers.set(target.sessionKey, timer);
  }

  /**
   * Reads what a session has stored since the last reading. Resolves when it is durable; a failure is
   * reported and left to the next reading, because the book still points at it.
   */
  async read(ctx) {
    const identity = identityOf(ctx);
    if (!this.active || !identity.sessionKey || !identity.sessionId) return undefined;
    const why = excludedSession(this.settings.capture, identity.sessionKey, this.space.runs.get(identity.sessionKey)?.trigger);
    if (why) this.#count({ [why]: 1 });
    // What is said while the user leaves a session out stays out when the rule goes: it is read and dropped.
    const dropped = excludedByChoice(this.settings.capture, describeSession(identity.sessionKey)) !== undefined;
    if (why && !(dropped && !describeSession(identity.sessionKey).incognito)) return undefined;
    const reader = await this.reader;
    if (!reader) return undefined;
    try {
      const tally = await this.space.inOrder(identity.sessionKey, () =>
        drainSession(reader, this.space.book, identity, {
          rules: this.settings.capture,
          floorMs: this.space.book.start(Date.now()),
          deliver: async (messages) => (dropped ? undefined : this.#deliver(identity, messages)),
        }),
      );
      if (dropped) return undefined;
      this.#count(tally.excluded);
      this.health.set('capture', true);
      return tally;
    } catch (error) {
      this.#failed(error);
      return undefined;
    }
  }

  /** For hosts without a transcript reader: takes the messages that `agent_end` carries. */
  async readEvent(ctx, messages) {
    if (!this.active || (await this.reader)) return;
    if (excludedSession(this.settings.capture, ctx.sessionKey, ctx.trigger)) return;
    await this.#deliverRows(
      ctx,
      messages.map((message) => ({ message })),
    );
  }

  /** The transcript is about to be replaced: takes the rows that the event still has, with their ids. */
  async readBeforeReset(ctx, messages) {
    await this.read(ctx);
    const rows = (messages ?? []).filter((message) => message.__openclaw?.id).map((message) => ({ entryId: message.__openclaw.id, message }));
    if (this.active && rows.length && !excludedSession(this.settings.capture, ctx.sessionKey, ctx.trigger)) await this.#deliverRows(ctx, rows);
  }

  async #deliverRows(ctx, rows) {
    const session = describeSession(ctx.sessionKey);
    const { messages } = siftRows(rows, session, { rules: this.settings.capture, floorMs: this.space.book.start(Date.now()) });
    try {
      if (messages.length) await this.space.inOrder(ctx.sessionKey, () => this.#deliver(identityOf(ctx), messages));
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Reads every session of the book; at start, for what a killed process left, and at stop. */
  async readAll() {
    if (!this.active) return;
    for (const entry of this.space.book.all()) await this.read(entry);
  }

  /** The end of the process or of this copy of the plugin: what is waiting is read now, within a bound. */
  async stop() {
    const waiting = [...this.timers.keys()];
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
    const entries = this.space.openBook?.all().filter((entry) => waiting.includes(entry.sessionKey)) ?? [];
    await within(STOP_PATIENCE_MS, Promise.all(entries.map((entry) => this.read(entry)))).catch((error) =>
      this.log('warn', `last reading: ${error.message}; it is finished at the next start`),
    );
  }

  async #deliver(identity, messages) {
    const at = Date.now();
    let owner = this.space.runs.get(identity.sessionKey)?.owner;
    // In a direct conversation the person decides whose memory it is; their messages carry the flag.
    for (const batch of byOwner(messages, owner)) {
      owner = batch.owner;
      await this.#store(scopeOf(identity.sessionKey, identity.agentId, owner), batch.messages, at);
    }
  }

  /**
   * Hands messages to the engine. One that it will never take (over its limits) is left out, counted and named in
   * the log, because it would hold up everything behind it for ever.
   */
  async #store(scope, messages, at) {
    try {
      await this.space.call('agentEnd', [{ scope, messages, success: true, at }]);
    } catch (error) {
      if (!REFUSALS.has(error.code)) throw error;
      if (messages.length > 1) {
        const middle = messages.length >> 1;
        await this.#store(scope, messages.slice(0, middle), at);
        await this.#store(scope, messages.slice(middle), at);
        return;
      }
      this.#count({ [error.code]: 1 });
      this.log('warn', `message ${messages[0].id ?? ''} of ${scope.session} is not stored: ${error.message}`);
    }
  }

  #count(excluded) {
    for (const [why, n] of Object.entries(excluded)) this.excluded[why] = (this.excluded[why] ?? 0) + n;
  }

  #failed(error) {
    const note = `${error.code ?? 'error'}: ${error.message}`;
    if (this.health.set('capture', false, note)) this.log('error', `messages are not stored yet (${note}); OpenClaw keeps them and they are read again`);
  }
}

function identityOf({ agentId, sessionKey, sessionId }) {
  return { agentId: agentId ?? describeSession(sessionKey).agentId, sessionKey, sessionId };
}
