// The part of the end-to-end test that every run can afford: install, grant, two sessions, tools, exactly once.
//
//   node tests/openclaw/quick.mjs --fetch              gets OpenClaw from npm in the background and returns at once
//   node tests/openclaw/quick.mjs [--until SECONDS]    runs the test; SECONDS since 1970 is when it must have ended
//
// It never costs a run its time: where OpenClaw cannot be had, or the time does not suffice, it says SKIPPED and why,
// and that is not a failure. STRATA_OPENCLAW=skip leaves it out, STRATA_OPENCLAW=must makes a skip a failure.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Checks } from './checks.mjs';
import { cacheDir, ensureOpenClaw, hasOpenClaw } from './deps.mjs';
import { remembersQuickly } from './scenarios/remembers.mjs';
import { packPlugin, runDirectory, stage } from './stage.mjs';

const LINE = '24';
/** Longest that the test itself takes; measured: see docs/openclaw.md. */
const TEST_S = 120;
/** Longest wait for a download that goes on. */
const FETCH_PATIENCE_S = 90;
const PAUSE_MS = 500;

const wish = process.env.STRATA_OPENCLAW;
const log = path.join(cacheDir(), 'fetch.log');
const { values } = parseArgs({ options: { fetch: { type: 'boolean' }, 'fetch-here': { type: 'boolean' }, until: { type: 'string' } } });

if (values['fetch-here']) fetchHere();
else if (values.fetch) fetchBehind();
else process.exitCode = await quick(values.until === undefined ? Infinity : Number(values.until));

function fetchHere() {
  try {
    ensureOpenClaw(LINE);
  } finally {
    fs.writeFileSync(`${log}.ended`, '');
  }
}

/** Starts the download beside whatever comes next, at the lowest priority, so that a compiler is not held up. */
function fetchBehind() {
  if (wish === 'skip' || hasOpenClaw(LINE)) return;
  fs.mkdirSync(cacheDir(), { recursive: true });
  fs.rmSync(`${log}.ended`, { force: true });
  const out = fs.openSync(log, 'w');
  const child = spawn('nice', ['-n', '19', process.execPath, fileURLToPath(import.meta.url), '--fetch-here'], { detached: true, stdio: ['ignore', out, out] });
  child.on('error', (error) => fs.writeFileSync(log, `cannot start the download: ${error.message}\n`));
  fs.writeFileSync(`${log}.pid`, String(child.pid));
  child.unref();
}

async function quick(until) {
  const left = () => until - Date.now() / 1000;
  if (wish === 'skip') return skipped('STRATA_OPENCLAW=skip');
  if (left() < TEST_S) return skipped(`it takes up to ${TEST_S} s, and ${Math.max(0, Math.round(left()))} s are left of this run's time`);
  const patience = Date.now() + Math.min(FETCH_PATIENCE_S, left() - TEST_S) * 1000;
  while (!hasOpenClaw(LINE)) {
    if (!downloading()) {
      if (until === Infinity) ensureOpenClaw(LINE);
      else return skipped(`OpenClaw could not be fetched from npm: ${lastWords()}`);
    } else if (Date.now() > patience) return skipped('the download of OpenClaw (850 MB) is not done');
    else await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  const started = performance.now();
  const checks = new Checks();
  const root = runDirectory();
  let place;
  const test = (async () => {
    place = await stage({ name: 'quick', line: LINE, tgz: packPlugin(root), root });
    await remembersQuickly(checks, place, LINE);
  })().catch((error) => checks.that('the quick test ran to its end', false, error.stack ?? error));
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, Math.min(left(), 2 * TEST_S) * 1000, 'late')));
  const outcome = await Promise.race([test, late]);
  clearTimeout(timer);
  if (outcome === 'late') {
    checks.skip('the rest of the plugin in a real OpenClaw', `not done after ${Math.round((performance.now() - started) / 1000)} s on this machine`);
    checks.close();
  }
  await place?.end();
  if (!process.env.STRATA_KEEP) fs.rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  const code = checks.summary((performance.now() - started) / 1000);
  // What still runs then (a command, a wait) would hold this process.
  if (outcome === 'late') process.exit(code || skipped('this machine is too busy to end it in time'));
  return code;
}

function downloading() {
  if (fs.existsSync(`${log}.ended`)) return false;
  try {
    process.kill(Number(fs.readFileSync(`${log}.pid`, 'utf8')), 0);
    return true;
  } catch {
    // No download was started, or its process was killed.
    return false;
  }
}

function lastWords() {
  return fs.existsSync(log) ? fs.readFileSync(log, 'utf8').trim().split('\n').slice(-3).join(' | ') : 'no download was started';
}

function skipped(why) {
  console.log(`\n*** SKIPPED: the plugin in a real OpenClaw, because ${why}.\n*** \`make test-openclaw-quick\` runs it.\n`);
  return wish === 'must' ? 1 : 0;
}
