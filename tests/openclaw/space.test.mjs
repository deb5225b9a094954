import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connect, failure, socketPath } from '../../js-shim/openclaw/socket.js';
import { leaseSpace } from '../../js-shim/openclaw/space.js';

const SELF = fileURLToPath(import.meta.url);
const silent = { info() {}, warn() {}, error() {}, debug() {} };

/** An engine that counts its openings and holds its directory by a file with its process id. */
function engine(log = []) {
  return async ({ dir }) => {
    const lock = path.join(dir, 'held');
    if (fs.existsSync(lock) && alive(Number(fs.readFileSync(lock, 'utf8')))) throw failure('busy', 'somebody is in');
    fs.writeFileSync(lock, String(process.pid));
    log.push('open');
    return {
      call: async (method, args) => {
        if (method === 'wait') await new Promise((resolve) => setTimeout(resolve, args[0]));
        return { method, args, pid: process.pid };
      },
      close: async () => {
        log.push('close');
        fs.rmSync(lock);
      },
    };
  };
}

function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function settings() {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'space-'));
  return { root, dataDir: path.join(root, 'memory') };
}

if (process.argv[2] === 'holder') {
  // The other process of a test: opens the space and says so.
  const root = process.argv[3];
  const lease = leaseSpace({ settings: { root, dataDir: path.join(root, 'memory') }, version: '1', open: engine(), client: { logger: silent } });
  await lease.call('hello');
  process.send('in');
  process.on('message', async () => {
    await lease.release();
    process.exit(0);
  });
} else {
  test('instances of one process share one engine, and the last one closes it', async () => {
    const log = [];
    const place = settings();
    const [a, b] = [1, 2].map(() => leaseSpace({ settings: place, version: '1', open: engine(log), client: { logger: silent } }));
    await Promise.all([a.call('x'), b.call('y'), a.call('z')]);
    await a.release();
    await a.release();
    assert.deepEqual(log, ['open']);
    await b.call('x');
    await b.release();
    assert.deepEqual(log, ['open', 'close']);
  });

  test('a hot reload closes before it opens, also when old and new overlap', async () => {
    const log = [];
    const place = settings();
    const old = leaseSpace({ settings: place, version: '1', open: engine(log), client: { logger: silent } });
    const answer = old.call('wait', 50);
    await new Promise((resolve) => setImmediate(resolve));
    const ending = old.release();
    const fresh = leaseSpace({ settings: place, version: '1', open: engine(log), client: { logger: silent } });
    await fresh.call('x');
    await answer;
    await ending;
    assert.deepEqual(log, ['open', 'close', 'open']);
    await fresh.release();
  });

  test("a newer version of the plugin takes over, and the old one's late calls reach it", async () => {
    const log = [];
    const place = settings();
    const old = leaseSpace({ settings: place, version: '1', open: engine(log), client: { logger: silent } });
    await old.call('x');
    const fresh = leaseSpace({ settings: place, version: '2', open: engine(log), client: { logger: silent } });
    await fresh.call('x');
    assert.equal((await old.call('late')).method, 'late');
    assert.deepEqual(log, ['open', 'close', 'open']);
    await Promise.all([old.release(), fresh.release()]);
  });

  test('a second process works through the first, and takes over when it ends or dies', async () => {
    for (const how of ['message', 'SIGKILL']) {
      const place = settings();
      const holder = fork(SELF, ['holder', place.root]);
      await new Promise((resolve) => holder.once('message', resolve));
      const lease = leaseSpace({ settings: place, version: '1', open: engine(), client: { logger: silent } });
      assert.equal((await lease.call('x', { a: 'ü\n' })).pid, holder.pid);
      assert.equal(lease.space.state().role, 'guest');
      how === 'message' ? holder.send('end') : holder.kill(how);
      await new Promise((resolve) => holder.once('close', resolve));
      assert.equal((await lease.call('x')).pid, process.pid, how);
      assert.equal(lease.space.state().role, 'owner');
      await lease.release();
    }
  });

  test('a refusal keeps its code, here and over the line', async () => {
    const place = settings();
    const open = async () => ({ call: async () => Promise.reject(failure('storage-full', 'no room')), close: async () => undefined });
    const lease = leaseSpace({ settings: place, version: '1', open, client: { logger: silent } });
    await assert.rejects(lease.call('x'), { code: 'storage-full' });
    const line = await connect(socketPath(place.root));
    await assert.rejects(line.call('x', []), { code: 'storage-full', message: 'no room' });
    line.close();
    await lease.release();
  });

  test('a space that cannot be opened says why, once, and is not tried at every call', async () => {
    const place = settings();
    let tries = 0;
    const lines = [];
    const open = async () => {
      tries += 1;
      throw failure('newer-version', 'written by 9.9');
    };
    const lease = leaseSpace({ settings: place, version: '1', open, client: { logger: { ...silent, error: (line) => lines.push(line) } } });
    for (let i = 0; i < 5; i += 1) await assert.rejects(lease.call('x'), { code: 'newer-version' });
    assert.equal(tries, 1);
    assert.equal(lines.length, 1);
    assert.deepEqual(lease.space.state(), { role: 'unavailable', code: 'newer-version', message: 'written by 9.9' });
    await lease.release();
  });

  test('a socket path that the system cannot hold moves to a private directory', () => {
    assert.ok(Buffer.byteLength(socketPath(`/tmp/${'x'.repeat(200)}`)) < 104);
    assert.equal(socketPath('/tmp/x'), '/tmp/x/engine.sock');
  });
}
