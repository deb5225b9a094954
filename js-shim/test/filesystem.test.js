/** The guest's file system: what it can do inside of the data directory, and that there is no way out. */

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import { NO_MODELS, callExport, engineModules, newInstance } from '../src/instance.js';
import { filesystem } from '../src/wasi/filesystem.js';

const FILE = { read: true, write: true };
const DISPOSE = Symbol.dispose ?? Symbol.for('dispose');
const top = fs.mkdtempSync(join(tmpdir(), 'strata-fs-'));
after(() => fs.rmSync(top, { recursive: true }));

let number = 0;
let dir;
let outside;
/** @type {import('../src/wasi/filesystem.js').Descriptor} */
let root;

beforeEach(() => {
  const base = join(top, String(number++));
  dir = join(base, 'space');
  outside = join(base, 'outside');
  fs.mkdirSync(dir, { recursive: true });
  fs.mkdirSync(outside);
  fs.writeFileSync(join(outside, 'secret'), 'secret');
  root = filesystem(dir).preopens.getDirectories()[0][0];
});

/** Asserts that `call` throws the WASI error `code`, as a plain string. */
function refuses(code, call) {
  try {
    call();
  } catch (error) {
    assert.equal(error, code);
    return;
  }
  assert.fail(`expected ${code}`);
}

function open(path, how = {}, access = FILE, from = root) {
  return from.openAt({}, path, how, access);
}

test('a file is written and read at offsets, cut, and synced', () => {
  const file = open('a', { create: true });
  assert.equal(file.write(Buffer.from('hello'), 3n), 5n);
  assert.deepEqual(file.read(100n, 0n).map(String), ['\0\0\0hello', 'true']);
  assert.deepEqual(file.read(2n, 4n).map(String), ['el', 'false']);
  assert.deepEqual(file.read(4n, 50n).map(String), ['', 'true']);
  file.setSize(4n);
  assert.equal(file.stat().size, 4n);
  file.sync();
  file.syncData();
  file[DISPOSE]();
  assert.equal(fs.readFileSync(join(dir, 'a'), 'latin1'), '\0\0\0h');
  refuses('is-directory', () => file.read(1n, 0n));
});

test('a dropped descriptor gives its handle back', { skip: process.platform !== 'linux' }, () => {
  const count = () => fs.readdirSync('/proc/self/fd').length;
  open('a', { create: true })[DISPOSE]();
  const before = count();
  for (let round = 0; round < 50; round++) open('a')[DISPOSE]();
  assert.equal(count(), before);
});

test('a space that is closed has no file open', { skip: process.platform !== 'linux' }, () => {
  const instance = newInstance(engineModules(1 << 28), { directory: dir, models: () => NO_MODELS, send: () => {}, printed: () => {} });
  const count = () => fs.readdirSync('/proc/self/fd').length;
  const before = count();
  assert.ok('value' in callExport(instance, 'lifecycle.open', ['', 0n]));
  assert.ok(count() > before);
  assert.ok('value' in callExport(instance, 'lifecycle.close', [1n]));
  assert.equal(count(), before);
});

test('an instance that is given up has no file open', { skip: process.platform !== 'linux' }, () => {
  const instance = newInstance(engineModules(1 << 28), { directory: dir, models: () => NO_MODELS, send: () => {}, printed: () => {} });
  const count = () => fs.readdirSync('/proc/self/fd').length;
  const before = count();
  assert.ok('value' in callExport(instance, 'lifecycle.open', ['', 0n]));
  instance.release();
  assert.equal(count(), before);
});

test('directories are made, listed, synced, renamed and removed', () => {
  root.createDirectoryAt('refs');
  refuses('exist', () => root.createDirectoryAt('refs'));
  open('refs/x', { create: true })[DISPOSE]();
  const refs = open('refs', { directory: true }, { read: true });
  refs.sync();
  root.sync();
  assert.equal(refs.getType(), 'directory');
  open('y', { create: true }, FILE, refs)[DISPOSE]();
  root.renameAt('refs/x', root, 'z');
  const names = (stream) => {
    const found = [];
    for (let entry; (entry = stream.readDirectoryEntry()); ) found.push(`${entry.name} ${entry.type}`);
    return found.sort();
  };
  assert.deepEqual(names(root.readDirectory()), ['refs directory', 'z regular-file']);
  refuses('not-empty', () => root.removeDirectoryAt('refs'));
  root.unlinkFileAt('refs/y');
  root.removeDirectoryAt('refs');
  assert.deepEqual(fs.readdirSync(dir), ['z']);
});

test('a rename replaces its target', () => {
  fs.writeFileSync(join(dir, 'new'), 'new');
  fs.writeFileSync(join(dir, 'old'), 'old');
  root.renameAt('new', root, 'old');
  assert.equal(fs.readFileSync(join(dir, 'old'), 'utf8'), 'new');
  refuses('no-entry', () => root.renameAt('new', root, 'old'));
});

test('how a file is opened is obeyed', () => {
  refuses('no-entry', () => open('a'));
  open('a', { create: true, exclusive: true })[DISPOSE]();
  refuses('exist', () => open('a', { create: true, exclusive: true }));
  refuses('not-directory', () => open('a', { directory: true }));
  refuses('not-directory', () => open('a/b', { create: true }));
  const reader = open('a', {}, { read: true });
  refuses('bad-descriptor', () => reader.write(Buffer.from('x'), 0n));
  refuses('is-directory', () => open('.', {}, FILE));
  fs.writeFileSync(join(dir, 'a'), 'content');
  open('a', { truncate: true })[DISPOSE]();
  assert.equal(fs.statSync(join(dir, 'a')).size, 0);
});

test('names inside of the directory work, also with dots', () => {
  root.createDirectoryAt('a');
  open('a/../b', { create: true })[DISPOSE]();
  open('./a/./c', { create: true })[DISPOSE]();
  open('a/..c', { create: true })[DISPOSE]();
  assert.deepEqual(fs.readdirSync(dir, { recursive: true }).sort(), ['a', 'a/..c', 'a/c', 'b']);
});

for (const [what, path] of Object.entries({
  'an absolute path': '/etc/passwd',
  'a parent': '../outside/secret',
  'a parent after a child': 'a/../../outside/secret',
  'the parent itself': '..',
})) {
  test(`${what} does not lead out`, () => {
    fs.mkdirSync(join(dir, 'a'));
    refuses('not-permitted', () => open(path, {}, { read: true }));
    refuses('not-permitted', () => open(path, { create: true }));
    refuses('not-permitted', () => root.statAt({}, path));
    refuses('not-permitted', () => root.unlinkFileAt(path));
    refuses('not-permitted', () => root.createDirectoryAt(path));
    refuses('not-permitted', () => root.renameAt(path, root, 'stolen'));
    refuses('not-permitted', () => root.renameAt('a', root, path));
  });
}

test('a name with a NUL or no name is refused', () => {
  refuses('invalid', () => open('a\0b', { create: true }));
  refuses('no-entry', () => open('', { create: true }));
});

test('a link that leads out is refused, wherever it stands', () => {
  fs.symlinkSync(outside, join(dir, 'absolute'));
  fs.symlinkSync('../outside', join(dir, 'relative'));
  fs.symlinkSync('../outside/secret', join(dir, 'file'));
  fs.mkdirSync(join(dir, 'a'));
  fs.symlinkSync('../../outside', join(dir, 'a/deep'));
  for (const path of ['absolute/secret', 'relative/secret', 'a/deep/secret', 'absolute/new', 'a/../relative/secret']) {
    refuses('not-permitted', () => open(path, { create: true }));
    refuses('not-permitted', () => root.statAt({}, path));
    refuses('not-permitted', () => root.unlinkFileAt(path));
  }
  for (const path of ['absolute', 'relative', 'file', 'a/deep']) {
    refuses('not-permitted', () => root.openAt({ symlinkFollow: true }, path, {}, { read: true }));
  }
  // Not followed, a link at the end is only a name.
  refuses('loop', () => open('file', {}, { read: true }));
  refuses('loop', () => open('file', { create: true }));
  assert.equal(root.statAt({}, 'file').type, 'symbolic-link');
  root.unlinkFileAt('file');
  assert.equal(fs.readFileSync(join(outside, 'secret'), 'utf8'), 'secret');
  assert.deepEqual(fs.readdirSync(outside), ['secret']);
});

test('a link to a place inside is followed', () => {
  fs.mkdirSync(join(dir, 'a/b'), { recursive: true });
  fs.writeFileSync(join(dir, 'a/file'), 'inside');
  fs.symlinkSync('a/b', join(dir, 'to-directory'));
  fs.symlinkSync('../a/file', join(dir, 'a/to-file'));
  fs.symlinkSync('b/../to-file', join(dir, 'a/to-link'));
  const file = root.openAt({ symlinkFollow: true }, 'a/to-link', {}, { read: true });
  assert.equal(String(file.read(10n, 0n)[0]), 'inside');
  open('to-directory/../file', {}, { read: true })[DISPOSE]();
  open('to-directory/new', { create: true })[DISPOSE]();
  assert.deepEqual(fs.readdirSync(join(dir, 'a/b')), ['new']);
});

test('links in a ring end', () => {
  fs.symlinkSync('two', join(dir, 'one'));
  fs.symlinkSync('one', join(dir, 'two'));
  refuses('loop', () => open('one/x', { create: true }));
  refuses('loop', () => root.openAt({ symlinkFollow: true }, 'one', {}, { read: true }));
});

test('the guest makes no links', () => {
  fs.writeFileSync(join(dir, 'a'), '');
  refuses('not-permitted', () => root.symlinkAt('../outside', 'way-out'));
  refuses('not-permitted', () => root.linkAt({}, 'a', root, 'b'));
});

test('a data directory behind a link is one like any other', () => {
  const link = `${dir}-link`;
  fs.symlinkSync(dir, link);
  const linked = filesystem(link).preopens.getDirectories()[0][0];
  open('a', { create: true }, FILE, linked)[DISPOSE]();
  assert.deepEqual(fs.readdirSync(dir), ['a']);
});

test('a named pipe does not hold the guest', { skip: process.platform === 'win32' }, async () => {
  const { execFileSync } = await import('node:child_process');
  execFileSync('mkfifo', [join(dir, 'pipe')]);
  open('pipe', {}, { read: true })[DISPOSE]();
});

test('streams read and write from an offset', () => {
  const file = open('a', { create: true });
  const writer = file.writeViaStream(2n);
  writer.write(Buffer.from('abc'));
  writer.blockingWriteAndFlush(Buffer.from('def'));
  file.appendViaStream().write(Buffer.from('!'));
  const reader = file.readViaStream(2n);
  assert.equal(String(reader.read(4n)), 'abcd');
  assert.equal(String(reader.blockingRead(100n)), 'ef!');
  assert.throws(() => reader.read(1n), (error) => error.tag === 'closed');
});

test('without a directory nothing is preopened', () => {
  assert.deepEqual(filesystem(undefined).preopens.getDirectories(), []);
});
