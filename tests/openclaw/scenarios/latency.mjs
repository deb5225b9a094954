// What memory costs a gateway: the wait of a prompt at 10,000 atoms, and the event loop while layers are made.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { purposeOf } from '../replies.mjs';
import { ask, recalled } from '../stage.mjs';

const ATOMS = 10_000;
const TURNS = 200;
const SESSIONS = 20;
/** Aims of the plugin on two shared cores; a miss is a failed check. */
const MAX_P95_MS = 250;

const PEOPLE = ['Amir', 'Beata', 'Chen', 'Dana', 'Emeka', 'Farah', 'Goran', 'Hana', 'Ivo', 'Jun'];
const THINGS = ['kayak', 'sourdough', 'telescope', 'violin', 'greenhouse', 'motorbike', 'beehive', 'espresso machine', 'loom', 'sailboat'];
const PLACES = ['Lisbon', 'Osaka', 'Tartu', 'Quito', 'Galway', 'Accra', 'Bergen', 'Hoi An', 'Valparaíso', 'Leipzig'];

/** Runs on the stage of `remembers`; leaves 10,000 more atoms behind. */
export async function latency(checks, { host, model, ledger }) {
  const delays = path.join(host.dir, 'loop-delay.jsonl');
  await checks.scenario(`latency at ${ATOMS} atoms`, async () => {
    await host.stop();
    host.env.STRATA_LOOP_DELAY_FILE = delays;
    await host.start({ nodeArgs: ['--import', fileURLToPath(new URL('../loop-delay.mjs', import.meta.url))] });
    const file = path.join(host.dir, 'atoms.jsonl');
    fs.writeFileSync(
      file,
      Array.from({ length: ATOMS }, (_, n) =>
        JSON.stringify({
          record: 'atom',
          id: `x_${n}`,
          session: 'imported',
          kind: 'episodic',
          text: `${pick(PEOPLE, n)} showed the user a ${pick(THINGS, n / 10)} in ${pick(PLACES, n / 100)} on visit ${n}.`,
          priority: 70,
          messages: [],
          origin: 'user',
          'created-at': 1_760_000_000_000 + n * 60_000,
        }),
      ).join('\n'),
    );
    const started = performance.now();
    const run = await host.cli(['strata', 'import', file, '--json']);
    checks.figure('import of 10,000 atoms through the gateway', `${Math.round((performance.now() - started) / 1000)} s`);
    const { atoms } = await ask(host, 'status');
    checks.that('all atoms are in', atoms >= ATOMS, { atoms, out: run.stdout.slice(-500), err: run.stderr.slice(-1_500) });
    await quiet(host);
    const idle = await window(delays, 10_000);

    let withMemory = 0;
    for (let n = 0; n < TURNS; n += 1) {
      const text = `Turn ${n}: what did ${pick(PEOPLE, n)} show me in ${pick(PLACES, n * 7)}?`;
      await ledger.turn(`agent:main:speed-${n % SESSIONS}`, text);
      if (recalled(model.agentRequests(text).at(-1))) withMemory += 1;
    }
    const [{ latencyMs }] = (await ask(host, 'pluginHealth')).filter((report) => report.latencyMs.recall);
    checks.that('every prompt got memories', withMemory === TURNS, `${withMemory} of ${TURNS}`);
    checks.that(`the hook's p95 is under ${MAX_P95_MS} ms`, latencyMs.recall.p95 < MAX_P95_MS, latencyMs);
    checks.figure(
      `before_prompt_build over ${latencyMs.recall.count} turns`,
      `p50 ${latencyMs.recall.p50} ms, p95 ${latencyMs.recall.p95} ms, longest ${latencyMs.recall.max} ms`,
    );

    // Now the layers: everything that waits is made due, with no turn in between.
    const before = model.requests.filter(purposeOf).length;
    await ask(host, 'flush');
    const working = await window(delays, 15_000);
    checks.figure('model requests of L1 to L3 in that window', model.requests.filter(purposeOf).length - before);
    checks.figure('event loop of the gateway, idle', show(idle));
    checks.figure('event loop of the gateway, while L1 to L3 run', show(working));
    checks.that('the event loop is not held up by memory work', working.p99 < Math.max(50, idle.p99 * 3), { idle, working });
  });
}

/** Waits until the engine has nothing due any more, so that the idle window is one. */
async function quiet(host) {
  let last = '';
  await host
    .until(
      'the engine rests',
      async () => {
        const now = JSON.stringify(await ask(host, 'status'));
        const same = now === last;
        last = now;
        return same;
      },
      60_000,
    )
    .catch(() => undefined);
}

/** Collects the event loop's delays for `ms` and returns the median of p50, the highest p99 and the longest. */
async function window(file, ms) {
  const from = Date.now();
  await new Promise((resolve) => setTimeout(resolve, ms));
  const rows = fs
    .readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ at }) => at > from);
  const sorted = rows.map(({ p50 }) => p50).sort((a, b) => a - b);
  return {
    seconds: rows.length,
    p50: sorted[Math.floor(sorted.length / 2)],
    p99: Math.max(...rows.map(({ p99 }) => p99)),
    max: Math.max(...rows.map(({ max }) => max)),
  };
}

function show({ seconds, p50, p99, max }) {
  return `p50 ${p50.toFixed(1)} ms, worst second's p99 ${p99.toFixed(1)} ms, longest ${max.toFixed(1)} ms over ${seconds} s`;
}

function pick(list, n) {
  return list[Math.floor(n) % list.length];
}
