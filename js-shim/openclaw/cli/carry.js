// `openclaw strata export | import | backup`: carrying memory in and out.
import fs from 'node:fs';
import path from 'node:path';
import { readReference, referenceDirectory } from '../reference.js';
import { stateDir } from '../state-dir.js';
import { print } from './print.js';
import { importSessions } from './sessions.js';

/** Records of one call, as docs/documents.md asks of callers. */
const RECORDS_PER_CALL = 1_000;
/** Broken lines that are shown one by one. */
const MAX_SHOWN_ERRORS = 20;

/** Adds the commands to `root`. */
export function carryCommands(root, host) {
  root
    .command('export [name]')
    .description('write the whole memory as JSON Lines under exports/<name>/ in the data directory')
    .option('--json', 'as JSON')
    .action((name, options) => host.withSpace((space, settings) => write(space, settings, 'export', name, options)));
  root
    .command('backup [name]')
    .description('write a verified copy under backups/<name>/ in the data directory, while it stays open')
    .option('--json', 'as JSON')
    .action((name, options) => host.withSpace((space, settings) => write(space, settings, 'backup', name, options)));
  root
    .command('import [path]')
    .description("take in an export (JSON Lines), the data of memory-tencentdb, or OpenClaw's own past sessions")
    .option('--from <kind>', 'strata, tdai or openclaw', 'strata')
    .option('--agent <agent>', 'agent for records that name none', 'main')
    .option('--dry-run', 'only say what would be taken in')
    .option('--json', 'as JSON')
    .action((file, options) => host.withSpace((space, settings) => importAll(host, space, settings, file, options)));
}

/** Has the engine write `exports/<name>/` or `backups/<name>/`, and says what and where. */
async function write(space, settings, method, name = stamp(), { json }) {
  const receipt = await space.call(method, [name]);
  const folder = path.join(settings.dataDir, `${method}s`, name);
  print(json ? JSON.stringify({ ...receipt, folder }, null, 2) : `${JSON.stringify(receipt, null, 2)}\nin ${folder}`);
}

async function importAll(host, space, settings, file, options) {
  if (options.from === 'openclaw') {
    if ((await importSessions(space, settings, file, options)) > 0) process.exitCode = 1;
    return;
  }
  const totals = { lines: 0, broken: 0, answers: {} };
  let batch = [];
  const send = async () => {
    if (batch.length === 0) return;
    const scope = { team: '', user: 'owner', agent: options.agent, session: '' };
    const answer = await space.call('import', [scope, batch.map((record) => JSON.stringify(record)).join('\n'), options.dryRun === true]);
    add(totals.answers, answer);
    batch = [];
  };
  for await (const { record, error, where } of await source(host, file, options)) {
    totals.lines += 1;
    if (error) {
      totals.broken += 1;
      if (totals.broken <= MAX_SHOWN_ERRORS) console.error(`${where}: ${error}; skipped`);
      continue;
    }
    batch.push(record);
    if (batch.length === RECORDS_PER_CALL) await send();
  }
  await send();
  if (totals.broken > 0) process.exitCode = 1;
  print(
    options.json
      ? JSON.stringify(totals, null, 2)
      : `${options.dryRun ? 'would take in' : 'took in'} ${totals.lines - totals.broken} records, ${totals.broken} broken lines skipped\n${JSON.stringify(totals.answers, null, 2)}`,
  );
}

async function source(host, file, options) {
  if (options.from === 'tdai') {
    const dir = file ?? referenceDirectory(stateDir(host.api));
    if (!dir) throw new Error('no data of memory-tencentdb found; name its directory: openclaw strata import --from tdai DIR');
    return readReference(dir);
  }
  if (options.from !== 'strata') throw new Error(`unknown source ${options.from}; known: strata, tdai, openclaw`);
  if (!file) throw new Error('name the file to import');
  return readRecords(file);
}

async function* readRecords(file) {
  const { createInterface } = await import('node:readline');
  let line = 0;
  for await (const text of createInterface({ input: fs.createReadStream(file), crlfDelay: Infinity })) {
    line += 1;
    if (!text.trim()) continue;
    try {
      yield { record: JSON.parse(text), where: `${file}:${line}` };
    } catch (error) {
      yield { error: error.message, where: `${file}:${line}` };
    }
  }
}

function add(into, answer) {
  for (const [key, value] of Object.entries(answer)) {
    if (typeof value === 'number') into[key] = (into[key] ?? 0) + value;
    else if (Array.isArray(value)) into[key] = [...(into[key] ?? []), ...value].slice(0, MAX_SHOWN_ERRORS);
    else if (value && typeof value === 'object') add((into[key] ??= {}), value);
    else into[key] = value;
  }
}

function stamp() {
  return new Date().toISOString().replace(/[:.]/gu, '-');
}
