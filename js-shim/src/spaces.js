/**
 * The spaces that are open in this thread, by directory.
 *
 * A host may load this module several times (OpenClaw does: one instance for hooks, one for services);
 * so the table is global, and every copy of the same version finds the same engine.
 */

import { mkdirSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { Engine } from './engine.js';
import { StrataError, invalid } from './errors.js';
import { DEFAULT_MEMORY_LIMIT_BYTES } from './instance.js';

/** The contract's version and this table's own: a copy with another one must not touch its entries. */
const VERSION = '0.1.0/1';
const TABLE = Symbol.for('strata.engines');

/** A call that takes longer is taken for a runaway guest. */
const DEFAULT_CALL_TIMEOUT_MS = 30_000;
const SMALLEST_MEMORY_LIMIT_BYTES = 16 << 20;

/**
 * @typedef {import('./engine.js').Provider} Provider
 * @typedef {{engine: Engine, opened: Promise<import('../dist/contract.js').Opened>, handles: number, closed: Promise<void> | undefined}} Space
 */

/** @returns {Map<string, Space>} */
function table() {
  const holder = /** @type {Record<symbol, Map<string, Space> | undefined>} */ (/** @type {unknown} */ (globalThis));
  return (holder[TABLE] ??= new Map());
}

/**
 * Takes part in the space of a directory, opening it if nobody has; every take needs one `leave`.
 *
 * @param {object} options
 * @param {string} options.dir
 * @param {Record<string, unknown>} [options.settings] counts for who opens; later takers get the space as it is
 * @param {number} [options.callTimeoutMs]
 * @param {number} [options.memoryLimitBytes]
 * @param {Provider} provider
 */
export async function enter(options, provider) {
  const directory = ownDirectory(options.dir);
  const key = `${VERSION}\0${directory}`;
  for (;;) {
    const spaces = table();
    let space = spaces.get(key);
    if (space?.closed) {
      await space.closed.catch(() => {}); // Whoever closed it got the error.
      continue;
    }
    if (!space) {
      const engine = new Engine({
        directory,
        settings: options.settings ?? {},
        callTimeoutMs: positive(options.callTimeoutMs ?? DEFAULT_CALL_TIMEOUT_MS, 'callTimeoutMs', 1),
        memoryLimitBytes: positive(options.memoryLimitBytes ?? DEFAULT_MEMORY_LIMIT_BYTES, 'memoryLimitBytes', SMALLEST_MEMORY_LIMIT_BYTES),
      });
      engine.addProvider(provider);
      const fresh = { engine, opened: engine.open(), handles: 0, closed: undefined };
      space = fresh;
      spaces.set(key, fresh);
    } else space.engine.addProvider(provider);
    space.handles += 1;
    const taken = space;
    try {
      const opened = await taken.opened;
      return { engine: taken.engine, opened, directory, leave: () => leave(key, taken, provider) };
    } catch (error) {
      taken.handles -= 1;
      if (spaces.get(key) === taken) spaces.delete(key);
      throw error;
    }
  }
}

/**
 * @param {string} key
 * @param {Space} space
 * @param {Provider} provider
 */
async function leave(key, space, provider) {
  space.engine.removeProvider(provider);
  space.handles -= 1;
  if (space.handles > 0) return;
  space.closed = space.engine.close().finally(() => {
    if (table().get(key) === space) table().delete(key);
  });
  await space.closed;
}

/** @param {unknown} dir */
function ownDirectory(dir) {
  if (typeof dir !== 'string' || dir === '') throw invalid('dir must be the path of the data directory');
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    return realpathSync(resolve(dir));
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
    throw new StrataError(code === 'EACCES' || code === 'EPERM' || code === 'EROFS' ? 'read-only' : 'io', `the data directory cannot be made: ${message}`);
  }
}

/**
 * @param {number} value
 * @param {string} name
 * @param {number} least
 */
function positive(value, name, least) {
  if (!Number.isFinite(value) || value < least) throw invalid(`${name} must be a number of at least ${least}`);
  return value;
}
