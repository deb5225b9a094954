// Where the real OpenClaw comes from: npm, once, into a cache directory.
//
// STRATA_OPENCLAW_CACHE names the cache (default: target/openclaw under the repository). A cache that
// already holds the pinned versions is used as it is; anything missing is installed.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The OpenClaw release that the plugin is proven against. */
export const OPENCLAW_VERSION = '2026.9.6';

/** The Node lines that OpenClaw 2026.9 runs on: its engine floor's line, and the newest. */
export const NODE_LINES = ['24', '26'];

/** Longest that one `npm install` may take. */
const INSTALL_TIMEOUT_MS = 900_000;

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

/** Returns the repository root. */
export function repositoryRoot() {
  return ROOT;
}

/** Returns the cache directory, absolute; it may not exist yet. */
export function cacheDir() {
  return path.resolve(process.env.STRATA_OPENCLAW_CACHE ?? path.join(ROOT, 'target', 'openclaw'));
}

/**
 * Returns `{ nodeBin, entry }` for one Node line: the binary's directory and OpenClaw's entry script.
 * Installs what is missing (about 1 GB for both lines, 1 to 2 minutes).
 */
export function ensureOpenClaw(line) {
  if (!NODE_LINES.includes(line)) throw new Error(`no Node line ${line}; known: ${NODE_LINES.join(', ')}`);
  const nodeHome = path.join(cacheDir(), 'deps', `node${line}`);
  const nodeBin = path.join(nodeHome, 'node_modules', 'node', 'bin');
  if (!fs.existsSync(path.join(nodeBin, 'node'))) npmInstall(nodeHome, [`node@${line}`], process.env.PATH);
  const home = path.join(cacheDir(), 'deps', 'openclaw');
  const host = path.join(home, 'node_modules', 'openclaw');
  if (installedVersion(host) !== OPENCLAW_VERSION) {
    // OpenClaw's own install script wants the Node that it runs on; nothing it does is needed here.
    npmInstall(home, ['--ignore-scripts', `openclaw@${OPENCLAW_VERSION}`], `${nodeBin}:${process.env.PATH}`);
  }
  return { nodeBin, entry: path.join(host, 'openclaw.mjs') };
}

/** Returns whether everything for one Node line is there. */
export function hasOpenClaw(line) {
  const deps = path.join(cacheDir(), 'deps');
  return (
    fs.existsSync(path.join(deps, `node${line}`, 'node_modules', 'node', 'bin', 'node')) &&
    installedVersion(path.join(deps, 'openclaw', 'node_modules', 'openclaw')) === OPENCLAW_VERSION
  );
}

function installedVersion(dir) {
  try {
    return JSON.parse(fs.readFileSync(path.join(dir, 'package.json'), 'utf8')).version;
  } catch {
    return undefined;
  }
}

/** Installs beside `prefix` and moves it there when it is whole: a download that was broken off leaves nothing that looks finished. */
function npmInstall(prefix, args, searchPath) {
  const draft = `${prefix}.partial-${process.pid}`;
  fs.mkdirSync(draft, { recursive: true });
  console.error(`installing ${args.at(-1)} into ${prefix}`);
  const run = spawnSync('npm', ['install', '--silent', '--no-audit', '--no-fund', '--prefix', draft, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, PATH: searchPath },
    timeout: INSTALL_TIMEOUT_MS,
  });
  if (run.status !== 0) {
    fs.rmSync(draft, { recursive: true, force: true });
    throw new Error(`npm install ${args.join(' ')} failed with ${run.status ?? run.signal ?? run.error?.message}`);
  }
  fs.rmSync(prefix, { recursive: true, force: true });
  fs.renameSync(draft, prefix);
}
