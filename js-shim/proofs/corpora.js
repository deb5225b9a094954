/** The measuring corpora, which are not part of the project: `STRATA_SHARED`, else `../shared` beside the repository. */

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDERS = ['locomo', 'beam-100k', 'memdaily-zh'];
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Returns the directory of the corpora; `undefined` if they are not here. */
export function corporaDirectory() {
  const shared = process.env.STRATA_SHARED ?? join(dirname(root), 'shared');
  const directory = join(shared, 'corpora');
  return existsSync(directory) ? directory : undefined;
}

/** Returns the files of the corpora in a fixed order. */
export function corpusFiles(directory) {
  return FOLDERS.flatMap((folder) => readdirSync(join(directory, folder)).filter((name) => name.endsWith('.json')).sort().map((name) => join(directory, folder, name)));
}

/**
 * Returns the calls of `agentEnd` that import a corpus file: one a session, or one a `chunk` of its messages.
 * Message ids are the corpus' own, so a repeated call adds nothing.
 */
export function importCalls(file, chunk = Infinity, agent = '') {
  const { messages } = JSON.parse(readFileSync(file, 'utf8'));
  const sessions = Map.groupBy ? Map.groupBy(messages, (message) => message.session) : grouped(messages);
  const calls = [];
  let at = Date.UTC(2026, 0, 1);
  for (const [session, list] of sessions) {
    for (let start = 0; start < list.length; start += chunk) {
      const part = list.slice(start, Math.min(start + chunk, list.length));
      at += 60_000;
      calls.push({ scope: { agent, session }, messages: part.map(({ id, role, text, speaker }) => ({ id, role, content: text, speaker })), at });
    }
  }
  return calls;
}

function grouped(messages) {
  const sessions = new Map();
  for (const message of messages) sessions.set(message.session, [...(sessions.get(message.session) ?? []), message]);
  return sessions;
}
