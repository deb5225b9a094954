/**
 * `wasi:filesystem` over `node:fs`, synchronous, with one preopened directory.
 *
 * The guest sees only what is under that directory. Paths are walked part by part; a symbolic link is
 * followed only to a place that is still inside, and the guest can make no links of its own. (Somebody
 * who may change the directory while the guest runs could swap a part between the walk and the
 * call; they could as well write the files themselves.)
 */

import * as fs from 'node:fs';
import { createHash } from 'node:crypto';
import { join, sep } from 'node:path';
import { FileInputStream, FileOutputStream } from './io.js';

/** How many links one path may go through; as Linux. */
const MAX_LINKS = 40;
/** The largest piece that one read returns; the guest asks again for the rest. */
const MAX_READ_BYTES = 16 << 20;

/** What jco calls when the guest drops a resource, by the same rule as its glue. */
const DISPOSE = Symbol.dispose ?? Symbol.for('dispose');

/** @typedef {{symlinkFollow?: boolean}} PathFlags */
/** @typedef {{create?: boolean, directory?: boolean, exclusive?: boolean, truncate?: boolean}} OpenFlags */
/** @typedef {{read?: boolean, write?: boolean, mutateDirectory?: boolean}} DescriptorFlags */

/** WASI's name of each error of the system; all others are `io`. */
const ERROR_CODES = /** @type {Record<string, string>} */ ({
  EACCES: 'access',
  EBADF: 'bad-descriptor',
  EBUSY: 'busy',
  EDQUOT: 'quota',
  EEXIST: 'exist',
  EFBIG: 'file-too-large',
  EINTR: 'interrupted',
  EINVAL: 'invalid',
  EISDIR: 'is-directory',
  ELOOP: 'loop',
  EMLINK: 'too-many-links',
  ENAMETOOLONG: 'name-too-long',
  ENOENT: 'no-entry',
  ENOMEM: 'insufficient-memory',
  ENOSPC: 'insufficient-space',
  ENOTDIR: 'not-directory',
  ENOTEMPTY: 'not-empty',
  ENOTSUP: 'unsupported',
  EPERM: 'not-permitted',
  EROFS: 'read-only',
  ETXTBSY: 'text-file-busy',
  EXDEV: 'cross-device',
  ERR_INVALID_ARG_VALUE: 'invalid',
});

/**
 * Runs a call of `node:fs`; throws the WASI error code, a plain string as the component expects it.
 * @template T
 * @param {() => T} call
 * @returns {T}
 */
function attempt(call) {
  try {
    return call();
  } catch (error) {
    throw ERROR_CODES[/** @type {NodeJS.ErrnoException} */ (error).code ?? ''] ?? 'io';
  }
}

/**
 * Returns the imports `wasi:filesystem/preopens` and `wasi:filesystem/types`; without a directory
 * there is no preopen, and nothing can be reached. `release` closes what an instance that is given up
 * has left open.
 * @param {string | undefined} directory
 */
export function filesystem(directory) {
  const root = directory === undefined ? undefined : fs.realpathSync(directory);
  /** @type {Set<Descriptor>} */
  const files = new Set();
  return {
    preopens: {
      getDirectories: () => (root === undefined ? [] : [[Descriptor.directory(root, root, files), '/']]),
    },
    types: { Descriptor, DirectoryEntryStream, filesystemErrorCode: () => undefined },
    release: () => files.forEach((file) => file[DISPOSE]()),
  };
}

/** An open file or directory. */
export class Descriptor {
  /** The preopened directory, an absolute path without links. @type {string} */
  #root = '';
  /** Where this is, absolute and without links. @type {string} */
  #path = '';
  /** The system's handle; -1 for a directory, which is only a place. */
  #fd = -1;
  #writable = false;
  /** The open files of the instance. @type {Set<Descriptor>} */
  #files = new Set();
  /** What `read` fills and the component copies out at once; kept to spare an allocation a page. */
  #buffer = Buffer.alloc(0);

  /**
   * @param {string} root
   * @param {string} path
   * @param {Set<Descriptor>} files
   */
  static directory(root, path, files) {
    const descriptor = new Descriptor();
    descriptor.#files = files;
    descriptor.#root = root;
    descriptor.#path = path;
    descriptor.#writable = true;
    return descriptor;
  }

  /** Closes the file; the component calls it when it drops the descriptor. */
  [DISPOSE]() {
    if (this.#fd === -1) return;
    this.#files.delete(this);
    fs.closeSync(this.#fd);
    this.#fd = -1;
  }

  /**
   * Returns the absolute path that `path` means from here, links resolved.
   * Throws `not-permitted` if it leads out of the preopened directory.
   * @param {string} path
   * @param {boolean} followLast also resolve a link at the end
   */
  #resolve(path, followLast) {
    if (this.#fd !== -1) throw 'not-directory';
    if (path.includes('\0')) throw 'invalid';
    if (path.startsWith('/') || (sep === '\\' && /[\\:]/.test(path))) throw 'not-permitted';
    if (path === '') throw 'no-entry';
    const waiting = path.split('/').reverse();
    // A trailing slash asks for a directory, so a link before it is followed.
    const follow = followLast || path.endsWith('/');
    /** @type {string[]} */
    const inside = this.#path.slice(this.#root.length).split(sep).filter(Boolean);
    for (let links = 0; waiting.length > 0; ) {
      const part = /** @type {string} */ (waiting.pop());
      if (part === '' || part === '.') continue;
      if (part === '..') {
        if (inside.length === 0) throw 'not-permitted';
        inside.pop();
        continue;
      }
      inside.push(part);
      const last = waiting.every((rest) => rest === '' || rest === '.');
      if (last && !follow) break;
      const here = join(this.#root, ...inside);
      let target;
      try {
        target = fs.readlinkSync(here);
      } catch (error) {
        const code = /** @type {NodeJS.ErrnoException} */ (error).code;
        // EINVAL (on Windows UNKNOWN): not a link. ENOENT at the end: about to be created.
        if (code === 'EINVAL' || code === 'UNKNOWN' || (code === 'ENOENT' && last)) continue;
        throw ERROR_CODES[code ?? ''] ?? 'io';
      }
      if (++links > MAX_LINKS) throw 'loop';
      if (target.startsWith('/') || /^[A-Za-z]:|^\\/.test(target)) throw 'not-permitted';
      inside.pop();
      waiting.push(...target.split('/').reverse());
    }
    return join(this.#root, ...inside);
  }

  /** The handle of an open file; throws `is-directory` for a directory. */
  #file() {
    if (this.#fd === -1) throw 'is-directory';
    return this.#fd;
  }

  /**
   * @param {bigint} length
   * @param {bigint} offset
   * @returns {[Uint8Array, boolean]}
   */
  read(length, offset) {
    const fd = this.#file();
    const wanted = Number(length < BigInt(MAX_READ_BYTES) ? length : BigInt(MAX_READ_BYTES));
    if (this.#buffer.length < wanted) this.#buffer = Buffer.allocUnsafeSlow(wanted);
    const count = attempt(() => fs.readSync(fd, this.#buffer, 0, wanted, Number(offset)));
    return [this.#buffer.subarray(0, count), count < wanted];
  }

  /**
   * @param {Uint8Array} bytes
   * @param {bigint} offset
   */
  write(bytes, offset) {
    if (!this.#writable) throw 'bad-descriptor';
    const fd = this.#file();
    return BigInt(attempt(() => fs.writeSync(fd, bytes, 0, bytes.length, Number(offset))));
  }

  /** @param {bigint} size */
  setSize(size) {
    const fd = this.#file();
    attempt(() => fs.ftruncateSync(fd, Number(size)));
  }

  sync() {
    this.#sync(fs.fsyncSync);
  }

  syncData() {
    this.#sync(fs.fdatasyncSync);
  }

  /** @param {(fd: number) => void} flush */
  #sync(flush) {
    if (this.#fd !== -1) return attempt(() => flush(this.#fd));
    // Windows has no handle of a directory that could be flushed; NTFS journals names by itself.
    if (process.platform === 'win32') return;
    attempt(() => {
      const fd = fs.openSync(this.#path, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
      try {
        fs.fsyncSync(fd);
      } finally {
        fs.closeSync(fd);
      }
    });
  }

  getType() {
    return this.#fd === -1 ? 'directory' : attempt(() => typeOf(fs.fstatSync(this.#fd)));
  }

  getFlags() {
    return this.#fd === -1 ? { read: true, mutateDirectory: true } : { read: true, write: this.#writable };
  }

  stat() {
    return attempt(() => describe(this.#fd === -1 ? fs.lstatSync(this.#path, { bigint: true }) : fs.fstatSync(this.#fd, { bigint: true })));
  }

  /**
   * @param {PathFlags} flags
   * @param {string} path
   */
  statAt(flags, path) {
    const at = this.#resolve(path, Boolean(flags.symlinkFollow));
    return attempt(() => describe(fs.lstatSync(at, { bigint: true })));
  }

  /**
   * @param {PathFlags} pathFlags
   * @param {string} path
   * @param {OpenFlags} how
   * @param {DescriptorFlags} access
   */
  openAt(pathFlags, path, how, access) {
    const at = this.#resolve(path, Boolean(pathFlags.symlinkFollow));
    const found = attempt(() => fs.lstatSync(at, { throwIfNoEntry: false }));
    if (found?.isDirectory()) {
      if (how.exclusive) throw 'exist';
      if (access.write || how.truncate) throw 'is-directory';
      return Descriptor.directory(this.#root, at, this.#files);
    }
    if (how.directory) throw found ? 'not-directory' : 'no-entry';
    if (found?.isSymbolicLink()) throw how.exclusive ? 'exist' : 'loop';
    const { O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;
    // A named pipe would hold the whole guest until somebody opens its other end.
    let flags = O_NOFOLLOW | O_NONBLOCK | (access.write ? O_RDWR : O_RDONLY);
    if (how.create) flags |= O_CREAT;
    if (how.exclusive) flags |= O_EXCL;
    if (how.truncate) flags |= O_TRUNC;
    const descriptor = new Descriptor();
    descriptor.#root = this.#root;
    descriptor.#path = at;
    descriptor.#writable = Boolean(access.write);
    descriptor.#fd = attempt(() => fs.openSync(at, flags, 0o600));
    descriptor.#files = this.#files;
    this.#files.add(descriptor);
    return descriptor;
  }

  readDirectory() {
    if (this.#fd !== -1) throw 'not-directory';
    return new DirectoryEntryStream(attempt(() => fs.readdirSync(this.#path, { withFileTypes: true })));
  }

  /** @param {string} path */
  createDirectoryAt(path) {
    const at = this.#resolve(path, false);
    attempt(() => fs.mkdirSync(at, 0o700));
  }

  /** @param {string} path */
  removeDirectoryAt(path) {
    const at = this.#resolve(path, false);
    attempt(() => fs.rmdirSync(at));
  }

  /** @param {string} path */
  unlinkFileAt(path) {
    const at = this.#resolve(path, false);
    attempt(() => fs.unlinkSync(at));
  }

  /**
   * @param {string} from
   * @param {Descriptor} descriptor
   * @param {string} to
   */
  renameAt(from, descriptor, to) {
    const [source, target] = [this.#resolve(from, false), descriptor.#resolve(to, false)];
    attempt(() => fs.renameSync(source, target));
  }

  /**
   * @param {string} path
   * @returns {string}
   */
  readlinkAt(path) {
    const at = this.#resolve(path, false);
    return attempt(() => fs.readlinkSync(at));
  }

  /** The guest makes no links: a link is a way out for whoever follows it later. */
  symlinkAt() {
    throw 'not-permitted';
  }

  linkAt() {
    throw 'not-permitted';
  }

  setTimes() {
    throw 'unsupported';
  }

  setTimesAt() {
    throw 'unsupported';
  }

  advise() {}

  /** @param {Descriptor} other */
  isSameObject(other) {
    return this.#path === other.#path;
  }

  metadataHash() {
    return attempt(() => hash(fs.lstatSync(this.#path, { bigint: true })));
  }

  /**
   * @param {PathFlags} flags
   * @param {string} path
   */
  metadataHashAt(flags, path) {
    const at = this.#resolve(path, Boolean(flags.symlinkFollow));
    return attempt(() => hash(fs.lstatSync(at, { bigint: true })));
  }

  /** @param {bigint} offset */
  readViaStream(offset) {
    return new FileInputStream(this, offset);
  }

  /** @param {bigint} offset */
  writeViaStream(offset) {
    return new FileOutputStream(this, offset);
  }

  appendViaStream() {
    return new FileOutputStream(this, this.stat().size);
  }
}

/** The names in a directory. */
export class DirectoryEntryStream {
  /** @param {fs.Dirent[]} entries */
  constructor(entries) {
    this.entries = entries.reverse();
  }

  readDirectoryEntry() {
    const entry = this.entries.pop();
    return entry && { name: entry.name, type: typeOf(entry) };
  }
}

/** @param {{isDirectory(): boolean, isFile(): boolean, isSymbolicLink(): boolean}} entry */
function typeOf(entry) {
  if (entry.isFile()) return 'regular-file';
  if (entry.isDirectory()) return 'directory';
  return entry.isSymbolicLink() ? 'symbolic-link' : 'unknown';
}

/** @param {fs.BigIntStats} stat */
function describe(stat) {
  return {
    type: typeOf(stat),
    linkCount: stat.nlink,
    size: stat.size,
    dataAccessTimestamp: datetime(stat.atimeNs),
    dataModificationTimestamp: datetime(stat.mtimeNs),
    statusChangeTimestamp: datetime(stat.ctimeNs),
  };
}

/** @param {bigint} nanoseconds */
function datetime(nanoseconds) {
  return { seconds: nanoseconds / 1_000_000_000n, nanoseconds: Number(nanoseconds % 1_000_000_000n) };
}

/** @param {fs.BigIntStats} stat */
function hash(stat) {
  const digest = createHash('sha256').update(`${stat.dev}:${stat.ino}`).digest();
  return { lower: digest.readBigUInt64LE(0), upper: digest.readBigUInt64LE(8) };
}
