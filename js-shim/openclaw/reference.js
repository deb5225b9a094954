// Reading what the reference system (memory-tencentdb) left on disk, as import records.
//
// Formats: `conversations/*.jsonl` and `records/*.jsonl` (one object a line, a file a day), `vectors.db`
// (whose rows are the live atoms; the files keep superseded ones), `scene_blocks/*.md`, `persona.md`.
// Records are those of docs/documents.md.
import fs from 'node:fs';
import path from 'node:path';
import { describeSession, memoryOwner } from './sessions.js';

const DAY_FILE = /^\d{4}-\d{2}-\d{2}\.jsonl$/u;
const SCENE_META = /^-----META-START-----\n([\s\S]*?)\n-----META-END-----\n*/u;
const NAVIGATION = /\n+---\n+## [^\n]*Scene Navigation[\s\S]*$/u;
/** The reference's older and newer names of the three kinds. */
const KINDS = new Map([
  ['persona', 'persona'],
  ['preference', 'persona'],
  ['episodic', 'episodic'],
  ['episode', 'episodic'],
  ['instruction', 'instruction'],
  ['instruct', 'instruction'],
]);

/** Returns the reference's data directory, or undefined when this machine has none. */
export function referenceDirectory(stateDir) {
  return [process.env.TDAI_DATA_DIR, path.join(stateDir, 'memory-tdai')].find(
    (dir) => dir && ['vectors.db', 'conversations', 'records'].some((name) => fs.existsSync(path.join(dir, name))),
  );
}

/**
 * Yields `{ record, where }` for everything in the directory, in the order that an import needs, and
 * `{ error, where }` for each line that cannot be read. Nothing is written.
 */
export async function* readReference(dir) {
  for (const { value, error, where } of dayLines(path.join(dir, 'conversations'))) {
    if (error) yield { error, where };
    else if (typeof value.content !== 'string') yield { error: 'no content (the batched shape of early versions is not read)', where };
    else
      yield {
        where,
        record: {
          record: 'message',
          id: value.id,
          session: value.sessionKey ?? value.sessionId ?? 'imported',
          role: value.role,
          text: value.content,
          'said-at': value.timestamp ?? time(value.recordedAt),
          scope: scope(value.sessionKey),
        },
      };
  }
  const live = await liveAtoms(path.join(dir, 'vectors.db'));
  if (live.error) yield { error: live.error, where: path.join(dir, 'vectors.db') };
  for (const { value, error, where } of dayLines(path.join(dir, 'records'))) {
    if (error) {
      yield { error, where };
      continue;
    }
    const kind = KINDS.get(value.type);
    if (!kind) yield { error: `unknown kind ${JSON.stringify(value.type)}`, where };
    else if (!live.ids || live.ids.has(value.id)) yield { where, record: atom(value, kind) };
  }
  const scenes = path.join(dir, 'scene_blocks');
  for (const name of listed(scenes).filter((file) => file.endsWith('.md'))) {
    const where = path.join(scenes, name);
    yield { where, record: scene(name.slice(0, -3), fs.readFileSync(where, 'utf8')) };
  }
  const persona = path.join(dir, 'persona.md');
  if (fs.existsSync(persona)) {
    const text = fs.readFileSync(persona, 'utf8').replace(NAVIGATION, '').trim();
    if (text) yield { where: persona, record: { record: 'persona', text, 'updated-at': Math.trunc(fs.statSync(persona).mtimeMs) } };
  }
}

function atom(value, kind) {
  const event = value.metadata ?? {};
  return {
    record: 'atom',
    id: value.id,
    session: value.sessionKey ?? 'imported',
    kind,
    text: value.content,
    priority: value.priority ?? 50,
    scene: value.scene_name ?? null,
    messages: value.source_message_ids ?? [],
    'created-at': time(value.createdAt),
    'updated-at': time(value.updatedAt),
    'event-start': time(event.activity_start_time),
    'event-end': time(event.activity_end_time),
    metadata: event,
    scope: scope(value.sessionKey),
  };
}

function scene(name, text) {
  const meta = SCENE_META.exec(text);
  const field = (key) => new RegExp(`^${key}:\\s*(.*)$`, 'mu').exec(meta?.[1] ?? '')?.[1]?.trim();
  return {
    record: 'scene',
    name,
    text: (meta ? text.slice(meta[0].length) : text).trim(),
    summary: field('summary') ?? '',
    heat: Number.parseInt(field('heat') ?? '0', 10) || 0,
    'created-at': time(field('created')),
    'updated-at': time(field('updated')),
    atoms: [],
  };
}

/** Ids of the atoms that were not superseded; `{}` when there is no database, which then decides nothing. */
async function liveAtoms(file) {
  if (!fs.existsSync(file)) return {};
  try {
    const { DatabaseSync } = await import('node:sqlite');
    const db = new DatabaseSync(file, { readOnly: true });
    try {
      return {
        ids: new Set(
          db
            .prepare('SELECT record_id FROM l1_records')
            .all()
            .map((row) => row.record_id),
        ),
      };
    } finally {
      db.close();
    }
  } catch (error) {
    return { error: `not read (${error.message}); superseded memories may come back` };
  }
}

function* dayLines(dir) {
  for (const name of listed(dir)
    .filter((file) => DAY_FILE.test(file))
    .sort()) {
    const lines = fs.readFileSync(path.join(dir, name), 'utf8').split('\n');
    for (const [index, line] of lines.entries()) {
      if (!line.trim()) continue;
      const where = `${name}:${index + 1}`;
      try {
        yield { value: JSON.parse(line), where };
      } catch (error) {
        yield { error: error.message, where };
      }
    }
  }
}

function listed(dir) {
  return fs.existsSync(dir) ? fs.readdirSync(dir) : [];
}

function time(text) {
  const parsed = Date.parse(text ?? '');
  return Number.isFinite(parsed) ? parsed : null;
}

function scope(sessionKey) {
  if (!sessionKey) return {};
  const session = describeSession(sessionKey);
  // The reference did not note who spoke; a direct conversation is taken for the operator's own.
  return { agent: session.agentId, user: memoryOwner(session, true) };
}
