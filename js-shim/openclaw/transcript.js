// Reading what OpenClaw stored, with the ids that OpenClaw gave it.
//
// Hooks tell *when* something happened; the stored transcript tells *what*. `agent_end` carries messages
// without ids, the transcript feed leaves out tool results, and neither survives a killed process, so every
// trigger leads here: read the rows after the cursor, hand them over with their entry ids, move the cursor.
import { continuesTurn, excludedTurn, isSilentReply } from './rules.js';
import { describeSession } from './sessions.js';

/** Rows asked for at once; a session of thousands is read in pages, and memory is bounded by one page. */
const PAGE_MESSAGES = 200;
/** Bytes asked for at once; OpenClaw allows up to 64 MiB. */
const PAGE_BYTES = 4 << 20;
const MAX_PAGE_BYTES = 64 << 20;
/** Pages read in one go, so that one huge session cannot hold up the others. */
const MAX_PAGES = 500;

/**
 * Returns OpenClaw's transcript reader, or undefined on a host that has none.
 */
export async function loadTranscriptReader() {
  try {
    const sdk = await import('openclaw/plugin-sdk/session-transcript-runtime');
    return typeof sdk.readSessionTranscriptVisibleMessageDelta === 'function' ? sdk.readSessionTranscriptVisibleMessageDelta : undefined;
  } catch {
    // A host without this module is older or newer than the ones known; the caller degrades to agent_end.
    return undefined;
  }
}

/**
 * Reads everything after the entry's cursor and passes it on in pages.
 *
 * `deliver(messages)` gets messages in order and resolves when they are durable; only then does the cursor
 * move. `floorMs` leaves out rows stored before memory was switched on. Returns `{ delivered, excluded }`,
 * where `excluded` counts what was left out by reason.
 */
export async function drainSession(read, book, identity, { rules, floorMs, deliver }) {
  const entry = book.entry(identity);
  const { agentId, sessionKey, sessionId } = identity;
  const session = describeSession(sessionKey);
  const tally = { delivered: 0, excluded: {} };
  let { cursor, skipping } = entry;
  let maxBytes = PAGE_BYTES;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const page = await read({ agentId, sessionKey, sessionId, maxMessages: PAGE_MESSAGES, maxBytes, ...(cursor ? { cursor } : {}) });
    if (page.kind === 'reset') {
      // The transcript was compacted or replaced. Rows that are already known are dropped by their ids.
      cursor = page.cursor;
      skipping = undefined;
      continue;
    }
    if (page.kind !== 'page') return tally;
    if (page.entries.length === 0 && page.requiredBytes > maxBytes) {
      if (page.requiredBytes > MAX_PAGE_BYTES) throw new Error(`a message of ${page.requiredBytes} bytes in ${sessionKey} is larger than OpenClaw hands out`);
      maxBytes = page.requiredBytes;
      continue;
    }
    const sifted = siftRows(page.entries, session, { rules, floorMs, skipping });
    const { messages } = sifted;
    skipping = sifted.skipping;
    for (const [why, n] of Object.entries(sifted.excluded)) tally.excluded[why] = (tally.excluded[why] ?? 0) + n;
    if (messages.length) await deliver(messages);
    tally.delivered += messages.length;
    cursor = page.cursor;
    book.advance(identity, cursor, skipping);
    if (!page.hasMore) return tally;
  }
  return tally;
}

/**
 * Returns `{ messages, skipping, excluded }` of transcript rows in order: what is to be remembered, why the turn that
 * the last row belongs to is left alone (pass it on with the next rows), and how many rows were left out by reason.
 *
 * A row is `{ entryId, message, createdAt }`; `floorMs` leaves out what was stored before.
 */
export function siftRows(rows, session, { rules, floorMs, skipping }) {
  const messages = [];
  const excluded = {};
  for (const row of rows) {
    if (row.message.role === 'user') {
      if (continuesTurn(row.message)) continue;
      skipping = excludedTurn(rules, row.message);
    }
    const message = skipping ? undefined : toMessage(row, session);
    if (message?.role === 'tool' && !rules.tools) continue;
    const storedAtMs = row.createdAt === undefined ? message?.atMs : Date.parse(row.createdAt);
    const why = skipping ?? (message && storedAtMs < floorMs ? 'said before memory was switched on' : undefined);
    if (why) excluded[why] = (excluded[why] ?? 0) + 1;
    else if (message) messages.push(message);
  }
  return { messages, skipping, excluded };
}

/**
 * Returns `[{ owner, messages }]`: messages as the engine takes them, in runs that belong to the same person.
 *
 * In a direct conversation the person decides whose memory it is; their messages carry the flag, and answers go with
 * them. `owner` is who spoke before these.
 */
export function byOwner(messages, owner) {
  const batches = [];
  for (const message of messages) {
    const whose = typeof message.owner === 'boolean' ? message.owner : (batches.at(-1)?.owner ?? owner);
    if (batches.length === 0 || batches.at(-1).owner !== whose) batches.push({ owner: whose, messages: [] });
    const { id, role, speaker, text, atMs } = message;
    batches.at(-1).messages.push({ id, role, speaker, content: text, saidAt: atMs });
  }
  return batches;
}

/**
 * Returns `{ id, role, text, atMs, speaker, toolCallId, toolName, owner, tainted }` for a transcript row, or
 * undefined when it says nothing (an assistant message of tool calls only, a silent reply, a runtime note).
 */
export function toMessage({ entryId, message, createdAt }, session) {
  const role = { user: 'user', assistant: 'assistant', toolResult: 'tool' }[message.role];
  if (!role) return undefined;
  const text = textOf(message.content);
  if (!text.trim() || (role === 'assistant' && isSilentReply(text))) return undefined;
  const meta = message.__openclaw ?? {};
  const out = { id: entryId, role, text, atMs: timeOf(message.timestamp, createdAt) };
  if (role === 'user') {
    if (session.kind === 'group' || session.kind === 'channel') out.speaker = meta.senderName ?? meta.senderUsername ?? meta.senderId;
    if (typeof meta.senderIsOwner === 'boolean') out.owner = meta.senderIsOwner;
  }
  if (role === 'assistant' && meta.turnTainted === true) out.tainted = true;
  if (role === 'tool') Object.assign(out, { toolCallId: message.toolCallId, toolName: message.toolName });
  return out;
}

/** Returns the text of a message's content; other parts (images, tool calls, thinking) have none. */
export function textOf(content) {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .filter((part) => part?.type === 'text' && typeof part.text === 'string')
    .map((part) => part.text)
    .join('\n');
}

function timeOf(timestamp, createdAt) {
  if (Number.isFinite(timestamp)) return Math.trunc(timestamp);
  const parsed = Date.parse(createdAt);
  return Number.isFinite(parsed) ? parsed : 0;
}
