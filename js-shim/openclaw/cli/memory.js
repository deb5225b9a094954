// `openclaw strata search | trace | forget | persona | scenes | canvas`: looking and correcting.
import { createInterface } from 'node:readline/promises';
import { print } from './print.js';

/** Members of the engine's documents that are moments, as milliseconds since 1970. */
const INSTANT = /(?:^|-)(?:at|from|to|since|until|start|end)$/u;

/** Rows that a listing shows. */
const PAGE = 100;

/** Adds the commands to `root`. */
export function memoryCommands(root, host) {
  const run = (work) => host.withSpace(async (space) => work(space));
  const ofPerson = (command) => command.option('--user <user>', 'person whose memory is meant', 'owner').option('--json', 'as JSON');

  ofPerson(root.command('search <query...>').description('search memories, or messages with --messages'))
    .option('--agent <agent>', 'agent whose memory is meant', 'main')
    .option('--messages', 'search what was said instead of what was distilled')
    .option('--limit <n>', 'most results', '10')
    .action((words, options) =>
      run(async (space) =>
        show(
          await space.call('search', [
            {
              scope: scopeOf(options),
              query: words.join(' '),
              layer: options.messages ? 'messages' : 'atoms',
              strategy: '',
              limit: count(options.limit),
              at: Date.now(),
            },
          ]),
          options,
        ),
      ),
    );
  root
    .command('trace <id>')
    .description('the way from a memory down to the exact messages, and up to what rests on it')
    .option('--json', 'as JSON')
    .action((id, options) => run(async (space) => show(await space.call('trace', [id]), options)));
  root
    .command('forget')
    .description('remove something and all that was built on it alone; shows first what it would remove')
    .option('--id <id...>', 'ids of messages, memories, scenes, tool results')
    .option('--query <text>', 'what a search for this finds')
    .option('--session <key>', 'everything of one session')
    .option('--user <user>', 'everything of one person')
    .option('--since <time>', 'not before (ISO time)')
    .option('--until <time>', 'not after (ISO time)')
    .option('--yes', 'remove without asking')
    .option('--json', 'as JSON')
    .action((options) => run((space) => forget(space, options)));
  ofPerson(root.command('persona').description('the profile that every prompt gets')).action((options) => run((space) => browse(space, 'persona', options)));
  ofPerson(root.command('scenes').description('the scene pages')).action((options) => run((space) => browse(space, 'scenes', options)));
  root
    .command('canvas [id]')
    .description('task canvases, or one of them by id')
    .option('--session <key>', 'of one session')
    .option('--json', 'as JSON')
    .action((id, options) => run((space) => browse(space, 'canvases', options, id ? [id] : [])));
}

function scopeOf({ agent, user }) {
  return { team: '', user, agent, session: '' };
}

async function browse(space, layer, options, ids = []) {
  show(await space.call('browse', [layer, { ids, session: options.session, user: options.user }, undefined, PAGE]), options);
}

async function forget(space, options) {
  const which = {
    ids: options.id ?? [],
    query: options.query,
    session: options.session,
    user: options.user,
    since: instant(options.since),
    until: instant(options.until),
  };
  if (!which.ids.length && !which.query && !which.session && !which.user && which.since === undefined && which.until === undefined)
    throw new Error('say what to forget: --id, --query, --session, --user, --since or --until');
  show(await space.call('forget', [which, false]), options);
  if (!options.yes && !(await confirmed())) {
    console.error('Nothing was removed. `--yes` removes it.');
    process.exitCode = 1;
    return;
  }
  show(await space.call('forget', [which, true]), options);
}

async function confirmed() {
  if (!process.stdin.isTTY) return false;
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/iu.test((await lines.question('Remove this for good? [y/N] ')).trim());
  } finally {
    lines.close();
  }
}

function count(text) {
  if (!/^\d{1,9}$/u.test(text)) throw new Error(`--limit wants a number, not ${text}`);
  return Number(text);
}

function instant(text) {
  if (text === undefined) return undefined;
  const parsed = Date.parse(text);
  if (!Number.isFinite(parsed)) throw new Error(`not a time: ${text}`);
  return parsed;
}

/** Shows one of the engine's documents: as JSON with --json, else as indented `name: value` lines. */
function show(value, { json }) {
  print(json ? JSON.stringify(value, null, 2) : lines(value, 0).join('\n'));
}

function lines(value, depth) {
  const pad = '  '.repeat(depth);
  if (Array.isArray(value)) {
    if (value.length === 0) return [`${pad}(none)`];
    return value.flatMap((item) => (item && typeof item === 'object' ? [`${pad}-`, ...lines(item, depth + 1)] : [`${pad}- ${item}`]));
  }
  return Object.entries(value ?? {}).flatMap(([key, inner]) => {
    if (inner === null || inner === undefined || inner === '') return [];
    if (typeof inner === 'object') return [`${pad}${key}:`, ...lines(inner, depth + 1)];
    const text = INSTANT.test(key) && Number.isInteger(inner) ? new Date(inner).toISOString() : String(inner);
    return text.includes('\n') ? [`${pad}${key}:`, ...text.split('\n').map((line) => `${pad}  ${line}`)] : [`${pad}${key}: ${text}`];
  });
}
