// How far each OpenClaw session has been read: a small file beside the memory.
//
// The book is an optimization and a to-do list, never the truth. OpenClaw's transcript is the truth, and
// the engine drops a message whose id it already has; a lost or stale book costs a second reading, not a
// second memory. It is written before a session's first turn, so that a turn that OpenClaw stored and
// that no hook reported (a killed process) is read when the plugin next starts.
import fs from 'node:fs';
import path from 'node:path';

/** Sessions kept; past this the longest unread ones are dropped, and would be read again from their start. */
const MAX_SESSIONS = 5_000;
/** The message that starts the first run may be stored before the first hook is called. */
const FIRST_RUN_SLACK_MS = 60_000;

export class CaptureBook {
  /** Opens the book at `file`, which need not exist. An unreadable book is an empty one, and says so to `log`. */
  constructor(file, log) {
    this.file = file;
    this.log = log;
    this.#read();
  }

  #read() {
    this.sessions = new Map();
    this.since = undefined;
    this.paused = false;
    let text;
    try {
      text = fs.readFileSync(this.file, 'utf8');
    } catch (error) {
      if (error.code !== 'ENOENT') this.log(`cannot read ${this.file}: ${error.message}; sessions are read again from their start`);
      return;
    }
    try {
      const value = JSON.parse(text);
      this.since = value.since;
      this.paused = value.paused === true;
      this.sessions = new Map(Object.entries(value.sessions ?? {}));
    } catch (error) {
      this.log(`${this.file} is not a capture book (${error.message}); sessions are read again from their start`);
    }
  }

  /**
   * Returns the moment (milliseconds) from which messages are remembered, setting it to `now` the first
   * time. What was said before memory was switched on stays out until somebody imports it.
   */
  start(now) {
    if (this.since === undefined) {
      this.since = now - FIRST_RUN_SLACK_MS;
      this.#write();
    }
    return this.since;
  }

  /** Notes that memory is switched off, or access taken back. Before the first start there is nothing to note. */
  pause() {
    if (this.since === undefined || this.paused) return;
    this.paused = true;
    this.#write();
  }

  /** Ends a pause: what was said in it stays out, so messages are remembered from `now` (milliseconds) on. */
  resume(now) {
    if (!this.paused) return;
    this.paused = false;
    this.since = now;
    this.#write();
  }

  /** Returns `{ agentId, sessionKey, sessionId, cursor, skipping }` of every session that is known. */
  all() {
    return [...this.sessions.values()];
  }

  /** Returns the entry of a session, making and storing one for a session that is seen for the first time. */
  entry({ agentId, sessionKey, sessionId }) {
    const key = `${agentId} ${sessionKey} ${sessionId}`;
    let entry = this.sessions.get(key);
    if (!entry) {
      entry = { agentId, sessionKey, sessionId };
      this.sessions.set(key, entry);
      while (this.sessions.size > MAX_SESSIONS) this.sessions.delete(this.sessions.keys().next().value);
      this.#write();
    }
    return entry;
  }

  /** Moves a session's reading position; call it only after the engine has acknowledged what was read. */
  advance(identity, cursor, skipping) {
    const entry = this.entry(identity);
    if (entry.cursor === cursor && entry.skipping === skipping) return;
    entry.cursor = cursor;
    entry.skipping = skipping;
    this.#write();
  }

  /** A write that fails is logged and forgotten: the book only saves work. */
  #write() {
    const text = JSON.stringify({ version: 1, since: this.since, paused: this.paused, sessions: Object.fromEntries(this.sessions) });
    const draft = `${this.file}.${process.pid}`;
    try {
      fs.mkdirSync(path.dirname(this.file), { recursive: true, mode: 0o700 });
      fs.writeFileSync(draft, text, { mode: 0o600 });
      fs.renameSync(draft, this.file);
    } catch (error) {
      this.log(`cannot write ${this.file}: ${error.message}`);
    }
  }
}
