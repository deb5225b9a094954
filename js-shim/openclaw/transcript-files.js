// Transcripts that OpenClaw left in files: those of versions before it kept them in SQLite, and archives of
// sessions that were reset or deleted.
//
// A file names its session by an id that OpenClaw gave it; memory names sessions by their key, as capture does,
// because one conversation goes through many ids. OpenClaw's index beside the files and the capture book know
// which id was which key's. So a session that was captured while it ran and comes again from a file is one session.
import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';

/** A transcript, and one that was archived: `<id>.jsonl`, `<id>.jsonl.reset.<time>`, `<id>.jsonl.deleted.<time>`. */
const TRANSCRIPT = /\.jsonl(?:\.(?:reset|deleted)\.[^.]+(?:\.\d+Z)?)?$/u;

/** Returns whether a file is a transcript by its name. */
export function isTranscriptFile(name) {
  return TRANSCRIPT.test(name);
}

/**
 * Returns the transcripts at `place`, a file or a folder, as `[{ file, agentId, sessionKeyOf }]` in the order of names.
 *
 * `known` is what the capture book knows: `[{ agentId, sessionKey, sessionId }]`; `agent` is whose they are where neither
 * the key nor OpenClaw's folders (`agents/<agent>/sessions`) say so. `sessionKeyOf(id)` gives the session's key, or the
 * id itself for a session that nobody knows any more. Fails if there is no transcript.
 */
export function transcriptFiles(place, known, agent) {
  const one = fs.statSync(place).isFile();
  const folder = one ? path.dirname(place) : place;
  const names = one
    ? [path.basename(place)]
    : fs
        .readdirSync(folder)
        .filter((name) => isTranscriptFile(name))
        .sort();
  if (names.length === 0) throw new Error(`${place} holds no transcript of OpenClaw (*.jsonl)`);
  const keys = new Map([...keysOf(path.join(folder, 'sessions.json')), ...known.map(({ sessionId, sessionKey }) => [sessionId, sessionKey])]);
  const agentId = /(?:^|[\\/])agents[\\/]([^\\/]+)[\\/]sessions[\\/]?$/u.exec(path.resolve(folder))?.[1] ?? agent;
  return names.map((name) => ({ file: path.join(folder, name), agentId, sessionKeyOf: (id) => keys.get(id) ?? id }));
}

/** OpenClaw's index of sessions: `{ key: { sessionId } }`. It is missing beside copies of transcripts, which is no fault. */
function keysOf(file) {
  let text;
  try {
    text = fs.readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
  return Object.entries(JSON.parse(text)).flatMap(([key, entry]) => (entry?.sessionId ? [[entry.sessionId, key]] : []));
}

/**
 * Reads one transcript: yields `{ sessionId }` for its header, `{ row }` for each message (`{ entryId, message,
 * createdAt }`, as OpenClaw's own reader gives them), and `{ error, where }` for a line that cannot be read.
 */
export async function* readTranscript(file) {
  let line = 0;
  for await (const text of createInterface({ input: fs.createReadStream(file), crlfDelay: Infinity })) {
    line += 1;
    if (!text.trim()) continue;
    let entry;
    try {
      entry = JSON.parse(text);
    } catch (error) {
      yield { error: error.message, where: `${file}:${line}` };
      continue;
    }
    if (entry?.type === 'session' && entry.id) yield { sessionId: entry.id };
    else if (entry?.type === 'message' && entry.id && entry.message?.role) yield { row: { entryId: entry.id, message: entry.message, createdAt: entry.timestamp } };
    else if (entry?.type === undefined || entry.type === 'message') yield { error: 'not an entry of a transcript', where: `${file}:${line}` };
  }
}
