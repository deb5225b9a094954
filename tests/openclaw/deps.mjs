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
 * Returns `{ node, entry }` for one Node line: the binary's directory and OpenClaw's entry script.
 * Installs what is missing (about 1 GB for both lines, 1 to 2 minutes).
 */
export function ensureOpenClaw(line) {
  if (!NODE_LINES.includes(line)) throw new Error(`no Node line ${line}; known: ${NODE_LINES.join(', ')}`);
  const deps = path.join(cacheDir(), 'deps');
  const nodeBin = path.join(deps, `node${line}`, 'node_modules', 'node', 'bin');
  if (!fs.existsSync(path.join(nodeBin, 'node'))) {
    npmInstall(path.join(deps, `node${line}`), [`node@${line}`], process.env.PATH);
  }
  const host = path.join(deps, 'openclaw', 'node_modules', 'openclaw');
  if (installedVersion(host) !== OPENCLAW_VERSION) {
    // OpenClaw's own install script wants the Node that it runs on; nothing it does is needed here.
    npmInstall(path.join(deps, 'openclaw'), ['--ignore-scripts', `openclaw@${OPENCLAW_VERSION}`], `${nodeBin}:${process.env.PATH}`);
  }
  return { nodeBin, entry: path.join(host, 'openclaw.mjs') };
}

/**
 * Installs one more npm package under the cache and returns its directory.
 * Used for the plugin that ours is compared with.
 */
export function ensurePackage(name, version) {
  const prefix = path.join(cacheDir(), 'deps', name.replace(/[@/]/g, '_'));
  const dir = path.join(prefix, 'node_modules', name);
  if (installedVersion(dir) !== version) npmInstall(prefix, ['--ignore-scripts', `${name}@${version}`], process.env.PATH);
  return dir;
}

function installedVersion(dir) {
  try {
    return JSON.parse(fs.readFileSync(path.join(dir, 'package.json'), 'utf8')).version;
  } catch {
    return undefined;
  }
}

function npmInstall(prefix, args, searchPath) {
  fs.mkdirSync(prefix, { recursive: true });
  console.error(`installing ${args.at(-1)} into ${prefix}`);
  const run = spawnSync('npm', ['install', '--silent', '--no-audit', '--no-fund', '--prefix', prefix, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, PATH: searchPath },
  });
  if (run.status !== 0) throw new Error(`npm install ${args.join(' ')} failed with ${run.status ?? run.signal}`);
}
