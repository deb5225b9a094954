// The command line as a user types it: help, JSON, wrong input, and what each command does.
import fs from 'node:fs';
import path from 'node:path';
import { ask } from '../stage.mjs';

const COMMANDS = ['setup', 'status', 'doctor', 'search', 'trace', 'forget', 'persona', 'scenes', 'canvas', 'export', 'import', 'backup'];

/** Wrong input, and a word of the sentence that answers it. */
const WRONG = [
  [['search'], 'query'],
  [['search', 'peanuts', '--limit', 'many'], 'limit'],
  [['trace', 'a_0000000000000000'], 'a_0000000000000000'],
  [['forget'], 'say what to forget'],
  [['forget', '--since', 'yesterday-ish'], 'not a time'],
  [['import'], 'name the file'],
  [['import', '/nowhere.jsonl'], '/nowhere.jsonl'],
  [['import', 'x', '--from', 'elsewhere'], 'elsewhere'],
  [['import', '--from', 'tdai'], 'memory-tencentdb'],
  [['export', '../outside'], '../outside'],
  [['nonsense'], 'nonsense'],
];

/** Runs on the stage of `remembers`, whose user has said four facts. */
export async function commands(checks, { host, ledger }) {
  const strata = (args, options) => host.cli(['strata', ...args], options);
  const json = async (args) => {
    const run = await strata([...args, '--json']);
    return { ...run, value: parse(run.stdout) };
  };

  await checks.scenario('commands: help and wrong input', async () => {
    const help = await strata(['--help']);
    checks.that(
      'help lists every command',
      help.code === 0 && COMMANDS.every((name) => help.stdout.includes(name)),
      help,
    );
    const helps = await each(COMMANDS, (name) => strata([name, '--help']));
    const wordless = COMMANDS.filter((_, at) => helps[at].code !== 0 || !/Usage:/u.test(helps[at].stdout) || !helps[at].stdout.includes('--json'));
    checks.that('every command explains itself and takes --json', wordless.length === 0, wordless);
    const refusals = await each(WRONG, ([args]) => strata(args));
    for (const [at, [args, word]] of WRONG.entries()) {
      const { code, stdout, stderr } = refusals[at];
      const said = stdout + stderr;
      checks.that(`\`strata ${args.join(' ')}\` is refused in words`, code !== 0 && said.includes(word) && !/\n\s+at /u.test(said), refusals[at]);
    }
  });

  await checks.scenario('commands: looking', async () => {
    const found = await json(['search', 'peanuts']);
    const id = found.value?.results?.[0]?.id;
    checks.that('search finds a memory', found.code === 0 && found.stdout.includes('peanuts') && id !== undefined, found);
    const messages = await json(['search', '--messages', 'peanuts']);
    checks.that('search --messages finds what was said', messages.code === 0 && messages.stdout.includes('allergic'), messages);
    const trace = await json(['trace', String(id)]);
    checks.that('trace leads to the exact message', trace.code === 0 && trace.stdout.includes('I am allergic to peanuts.'), trace);
    for (const name of ['persona', 'scenes', 'canvas']) {
      const page = await json([name]);
      checks.that(`${name} prints JSON`, page.code === 0 && page.value !== undefined, page);
    }
    const people = await each([['status'], ['doctor'], ['search', 'peanuts'], ['persona'], ['scenes']], (args) => strata(args));
    checks.that(
      'without --json they are for people',
      people.every(({ code, stdout }) => code === 0 && stdout.trim() !== '' && parse(stdout) === undefined),
      people.map(({ code, stdout, stderr }) => [code, stdout.slice(0, 300), stderr.slice(0, 300)]),
    );
    const doctor = await json(['doctor']);
    checks.that('doctor is content', doctor.code === 0 && doctor.value?.ok === true, doctor);
  });

  await checks.scenario('commands: carrying', async () => {
    const before = (await ask(host, 'status')).messages;
    const backup = await json(['backup', 'first']);
    checks.that('backup writes a verified copy', backup.code === 0 && backup.value !== undefined, backup);
    const exported = await json(['export', 'first']);
    const file = path.join(host.stateDir, 'strata', 'memory', 'exports', 'first');
    const written = fs.existsSync(file) ? fs.readdirSync(file).map((name) => path.join(file, name)) : [];
    checks.that('export writes JSON Lines', exported.code === 0 && written.some((name) => name.endsWith('.jsonl')), { exported, written });
    const again = await json(['import', written.find((name) => name.endsWith('.jsonl')) ?? 'missing']);
    checks.that('an export that comes back adds nothing', again.code === 0 && (await ask(host, 'status')).messages === before, again);
    const sessions = await json(['import', '--from', 'openclaw']);
    checks.that(
      "sessions that were captured while they ran are known when OpenClaw's own transcript is imported",
      sessions.code === 0 && sessions.value?.stored <= 2 && sessions.value?.known >= before - 2,
      sessions,
    );
    // What was said before the grant is taken in by this command and by nothing else.
    if (sessions.value?.stored === 2) ledger.note('My name is Nobody and this must not be stored.', 1);
    checks.figure('import --from openclaw', `${sessions.value?.delivered} messages read, ${sessions.value?.known} known, ${sessions.value?.stored} new`);
  });

  await checks.scenario('commands: forgetting', async () => {
    await ledger.turn('agent:main:secret', 'My locker has the code 4711.');
    await host.until('it is stored', async () => (await json(['search', '--messages', '4711'])).stdout.includes('locker'), 60_000);
    const preview = await strata(['forget', '--session', 'agent:main:secret']);
    checks.that('forget without a yes removes nothing and says so', preview.code === 1 && preview.stderr.includes('Nothing was removed'), preview);
    const gone = await json(['forget', '--session', 'agent:main:secret', '--yes']);
    const after = await json(['search', '--messages', '4711']);
    checks.that('forget --yes removes it', gone.code === 0 && !after.stdout.includes('locker'), { gone, after });
    ledger.forget(({ text }) => text.includes('4711'));
  });
}

/** Runs two at a time: a command is mostly OpenClaw's own start. */
async function each(list, work) {
  const results = new Array(list.length);
  let next = 0;
  const lane = async () => {
    while (next < list.length) {
      const at = next;
      next += 1;
      results[at] = await work(list[at]);
    }
  };
  await Promise.all([lane(), lane()]);
  return results;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
