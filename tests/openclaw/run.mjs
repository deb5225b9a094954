// The end-to-end test: a real OpenClaw from npm, a mock model on loopback, our plugin from `npm pack`.
//
//   node tests/openclaw/run.mjs            everything, on both Node lines
//   node tests/openclaw/run.mjs --only offload,faults
//
// Two lanes run side by side, each with an OpenClaw of its own; what is timed runs after them, alone.
// STRATA_KEEP=1 keeps the state directories, STRATA_OPENCLAW=skip runs nothing. Exit code 1 if a check failed.
import fs from 'node:fs';
import { parseArgs } from 'node:util';
import { Checks } from './checks.mjs';
import { ensureOpenClaw } from './deps.mjs';
import { commands } from './scenarios/commands.mjs';
import { faults, uninstall } from './scenarios/faults.mjs';
import { latency } from './scenarios/latency.mjs';
import { ask30, tell30 } from './scenarios/mem0.mjs';
import { offload } from './scenarios/offload.mjs';
import { reference } from './scenarios/reference.mjs';
import { acquainted, remembers } from './scenarios/remembers.mjs';
import { processes, restarts } from './scenarios/restarts.mjs';
import { rules } from './scenarios/rules.mjs';
import { packPlugin, runDirectory } from './stage.mjs';

/** On one OpenClaw with Node 24, in this order. */
const SHARED = { remembers: undefined, commands, offload, restarts, processes, rules, faults };
/** Beside them, each on an OpenClaw of its own. */
const BESIDE = ['node26', 'reference', 'mem0'];
/** After both, with nothing beside them, on the first lane's OpenClaw; the last takes the plugin away. */
const ALONE = { latency, uninstall };
const SCENARIOS = [...Object.keys(SHARED), ...BESIDE, ...Object.keys(ALONE)];

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
/** The OpenClaw of the first lane, and those that were told the thirty facts. */
let place;
let peers = [];
try {
  // Before anything is timed: packages, once.
  for (const line of wanted.includes('node26') ? ['24', '26'] : ['24']) ensureOpenClaw(line);
  const tgz = values.tgz ?? packPlugin(root);
  await Promise.all([lane('Node 24', (into) => shared(into, tgz)), lane('beside it', (into) => beside(into, tgz))]);
  if (peers.length) await ask30(checks, peers);
  await endPeers();
  if (place) for (const [name, run] of Object.entries(ALONE)) if (wanted.includes(name)) await run(checks, place);
} finally {
  await endPeers();
  await place?.end();
  if (!process.env.STRATA_KEEP) fs.rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  else console.log(`kept ${root}`);
}
process.exitCode = checks.summary((performance.now() - started) / 1000);

async function shared(into, tgz) {
  if (![...Object.keys(SHARED), ...Object.keys(ALONE)].some((name) => wanted.includes(name))) return;
  const options = { line: '24', tgz, root };
  place = wanted.includes('remembers') ? await remembers(into, options) : await acquainted(options);
  for (const [name, run] of Object.entries(SHARED)) if (run && wanted.includes(name)) await run(into, place);
}

async function beside(into, tgz) {
  if (wanted.includes('node26')) await (await remembers(into, { line: '26', tgz, root })).end();
  if (wanted.includes('reference')) await reference(into, { tgz, root });
  if (wanted.includes('mem0')) peers = await tell30(into, { tgz, root });
}

/** Runs a lane to its end; what it cannot go on after is a failed check, and the other lane goes on. */
async function lane(name, work) {
  const into = checks.lane();
  try {
    await work(into);
  } catch (error) {
    checks.that(`the lane "${name}" ran to its end`, false, error.stack ?? error);
  }
}

async function endPeers() {
  for (const { end } of peers.splice(0)) await end();
}
