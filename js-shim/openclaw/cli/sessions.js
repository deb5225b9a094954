// `openclaw strata import --from openclaw`: sessions from before memory was switched on.
//
// Sessions and messages are named as capture names them, and belong to whom capture gives them, so what was captured
// already is known and nothing is there twice.
import { excludedSession } from '../rules.js';
import { describeSession, scopeOf } from '../sessions.js';
import { isTranscriptFile, readTranscript, transcriptFiles } from '../transcript-files.js';
import { byOwner, drainSession, loadTranscriptReader, siftRows } from '../transcript.js';
import { print } from './print.js';

/** Rows handed over at once. */
const ROWS_PER_CALL = 500;
/** Lines that cannot be read and are shown one by one. */
const MAX_SHOWN_ERRORS = 20;

/**
 * Takes in the sessions that OpenClaw holds, or the transcripts at `place` (a file or a folder), and says so.
 * Returns how many lines could not be read.
 */
export async function importSessions(space, settings, place, options) {
  const intake = new Intake(space, settings, options.dryRun === true);
  if (place) await readFiles(intake, place, options);
  else await readStore(intake, options);
  intake.report(options);
  return intake.totals.broken;
}

class Intake {
  constructor(space, settings, dryRun) {
    Object.assign(this, { space, rules: settings.capture, dryRun });
    this.totals = { sessions: 0, left: {}, delivered: 0, stored: 0, known: 0, broken: 0 };
    this.owners = new Map();
  }

  /** Returns false, and counts, when the rules leave the session alone. */
  takes(sessionKey) {
    const why = excludedSession(this.rules, sessionKey, undefined);
    if (why) this.leave(why, 1);
    else this.totals.sessions += 1;
    return !why;
  }

  leave(why, n) {
    this.totals.left[why] = (this.totals.left[why] ?? 0) + n;
  }

  async deliver(sessionKey, agentId, messages) {
    for (const batch of byOwner(messages, this.owners.get(sessionKey))) {
      this.owners.set(sessionKey, batch.owner);
      this.totals.delivered += batch.messages.length;
      if (this.dryRun) continue;
      const report = await this.space.call('agentEnd', [
        { scope: scopeOf(sessionKey, agentId, batch.owner), messages: batch.messages, success: true, at: Date.now() },
      ]);
      this.totals.stored += report.stored.length;
      this.totals.known += report.known;
    }
  }

  broken(where, error) {
    this.totals.broken += 1;
    if (this.totals.broken <= MAX_SHOWN_ERRORS) console.error(`${where}: ${error}; skipped`);
  }

  report({ json }) {
    const { sessions, left, delivered, stored, known, broken } = this.totals;
    if (json) {
      print(JSON.stringify(this.totals, null, 2));
      return;
    }
    const came = this.dryRun ? 'nothing taken in (--dry-run)' : `${stored} new, ${known} known`;
    print(`${sessions} sessions, ${delivered} messages read, ${came}`);
    for (const [why, n] of Object.entries(left)) print(`  left alone: ${n} x ${why}`);
    if (broken) print(`  ${broken} lines could not be read`);
  }
}

async function readStore(intake, options) {
  const read = await loadTranscriptReader();
  if (!read) throw new Error('this OpenClaw has no transcript reader; name a folder of transcripts instead');
  const { listSessionEntries } = await import('openclaw/plugin-sdk/session-store-runtime');
  for (const { sessionKey, entry } of listSessionEntries({ agentId: options.agent, readOnly: true })) {
    if (!intake.takes(sessionKey)) continue;
    const identity = { agentId: options.agent, sessionKey, sessionId: entry.sessionId };
    // A book of its own: the cursors of the running capture are not touched.
    const book = { entry: () => ({}), advance() {} };
    const deliver = (messages) => intake.deliver(sessionKey, options.agent, messages);
    const { excluded } = await drainSession(read, book, identity, { rules: intake.rules, floorMs: 0, deliver });
    for (const [why, n] of Object.entries(excluded)) intake.leave(why, n);
  }
}

async function readFiles(intake, place, options) {
  for (const { file, agentId, sessionKeyOf } of transcriptFiles(place, intake.space.book.all(), options.agent)) {
    let sessionKey = sessionKeyOf(isTranscriptFile(file) ? file.replace(/^.*[\\/]|\.jsonl.*$/gu, '') : file);
    let taken;
    let skipping;
    let rows = [];
    const flush = async () => {
      const sifted = siftRows(rows, describeSession(sessionKey), { rules: intake.rules, floorMs: 0, skipping });
      rows = [];
      skipping = sifted.skipping;
      for (const [why, n] of Object.entries(sifted.excluded)) intake.leave(why, n);
      if (sifted.messages.length) await intake.deliver(sessionKey, agentId, sifted.messages);
    };
    for await (const { sessionId, row, error, where } of readTranscript(file)) {
      if (sessionId) sessionKey = sessionKeyOf(sessionId);
      if (error) intake.broken(where, error);
      if (!row) continue;
      taken ??= intake.takes(sessionKey);
      if (!taken) break;
      rows.push(row);
      if (rows.length >= ROWS_PER_CALL) await flush();
    }
    await flush();
  }
}
