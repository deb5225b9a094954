// The end-to-end test: a real OpenClaw from npm, a mock model on loopback, our plugin from `npm pack`.
//
//   node tests/openclaw/run.mjs            everything, on both Node lines
//   node tests/openclaw/run.mjs --only offload,faults
//
// STRATA_KEEP=1 keeps the state directories, STRATA_OPENCLAW=skip runs nothing. Exit code 1 if a check failed.
import fs from 'node:fs';
import { parseArgs } from 'node:util';
import { Checks } from './checks.mjs';
import { ensureOpenClaw } from './deps.mjs';
import { commands, reference } from './scenarios/commands.mjs';
import { faults } from './scenarios/faults.mjs';
import { latency } from './scenarios/latency.mjs';
import { offload } from './scenarios/offload.mjs';
import { acquainted, remembers } from './scenarios/remembers.mjs';
import { processes, restarts } from './scenarios/restarts.mjs';
import { rules } from './scenarios/rules.mjs';
import { packPlugin, runDirectory } from './stage.mjs';

/** In the order in which they run; those before "node26" share one OpenClaw, which "faults" uninstalls the plugin from. */
const SCENARIOS = ['remembers', 'commands', 'offload', 'restarts', 'processes', 'rules', 'latency', 'faults', 'node26', 'mem0'];

const { values } = parseArgs({ options: { only: { type: 'string' }, tgz: { type: 'string' } } });
const wanted = values.only?.split(',') ?? SCENARIOS;
const unknown = wanted.filter((name) => !SCENARIOS.includes(name));
if (unknown.length) throw new Error(`unknown scenario ${unknown.join(', ')}; known: ${SCENARIOS.join(', ')}`);

if (process.env.STRATA_OPENCLAW === 'skip') {
  console.log('SKIPPED the plugin in a real OpenClaw, because STRATA_OPENCLAW=skip');
  process.exit(0);
}

const started = performance.now();
const checks = new Checks();
const root = runDirectory();
try {
  // Before anything is timed: packages, once.
  for (const line of wanted.includes('node26') ? ['24', '26'] : ['24']) ensureOpenClaw(line);
  const tgz = values.tgz ?? packPlugin(root);
  if (wanted.some((name) => SCENARIOS.indexOf(name) < SCENARIOS.indexOf('node26'))) {
    const place = wanted.includes('remembers') ? await remembers(checks, { line: '24', tgz, root }) : await acquainted({ line: '24', tgz, root });
    try {
      if (wanted.includes('commands')) await commands(checks, place);
      if (wanted.includes('offload')) await offload(checks, place);
      if (wanted.includes('restarts')) await restarts(checks, place);
      if (wanted.includes('processes')) await processes(checks, place);
      if (wanted.includes('rules')) await rules(checks, place);
      if (wanted.includes('commands')) await reference(checks, place);
      if (wanted.includes('latency')) await latency(checks, place);
      if (wanted.includes('faults')) await faults(checks, place);
    } finally {
      await place.end();
    }
  }
  if (wanted.includes('node26')) await (await remembers(checks, { line: '26', tgz, root })).end();
  if (wanted.includes('mem0')) {
    const { sideBySide } = await import('./scenarios/mem0.mjs');
    await sideBySide(checks, { tgz, root });
  }
} finally {
  if (!process.env.STRATA_KEEP) fs.rmSync(root, { recursive: true, force: true });
  else console.log(`kept ${root}`);
}
process.exitCode = checks.summary((performance.now() - started) / 1000);
