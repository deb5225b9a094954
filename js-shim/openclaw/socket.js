// The line between the process that holds a data directory and the others that want to use it.
//
// A space has one opener. On one machine OpenClaw is often several processes: the gateway, `openclaw agent
// --local`, `openclaw strata ...`. The first one opens the space and listens on a socket beside it; the
// others send their calls there. One JSON object a line each way: `{id, method, args}` and
// `{id, value}` or `{id, failure: {code, message}}`. The directory's mode (0700) is the access control.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

/** A Unix socket's path is at most 104 bytes on macOS and 108 on Linux. */
const MAX_SOCKET_PATH = 100;
/** Longest line, to bound what a peer can make us hold. A tool result is at most 64 MiB before escaping. */
const MAX_LINE = 160 << 20;
/** Longest wait for a connection to a socket that exists. */
const CONNECT_TIMEOUT_MS = 2_000;

/** Returns the socket's path for a plugin root; the same for every process of this user. */
export function socketPath(root) {
  if (process.platform === 'win32') return `\\\\.\\pipe\\strata-${digest(root)}`;
  const near = path.join(root, 'engine.sock');
  if (Buffer.byteLength(near) <= MAX_SOCKET_PATH) return near;
  // The private directory is checked on use: in a shared /tmp the name could belong to somebody else.
  return path.join(os.tmpdir(), `strata-${process.getuid?.() ?? 0}-${digest(root)}`, 'engine.sock');
}

function digest(root) {
  return createHash('sha256').update(path.resolve(root)).digest('hex').slice(0, 16);
}

/** Returns an error that carries the contract's failure code. */
export function failure(code, message) {
  return Object.assign(new Error(message), { code });
}

/**
 * Listens at `file` and answers each call by `handle(method, args)`.
 * Returns `close()`. Neither the listener nor its connections keep the process alive.
 */
export async function listen(file, handle) {
  if (process.platform !== 'win32') {
    const dir = path.dirname(file);
    fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
    assertPrivate(dir);
    // Only the holder of the space gets here, so a socket file that is left belongs to a dead process.
    fs.rmSync(file, { force: true });
  }
  const peers = new Set();
  const server = net.createServer((socket) => {
    peers.add(socket);
    socket.unref();
    socket.on('close', () => peers.delete(socket));
    socket.on('error', () => socket.destroy());
    readLines(socket, async ({ id, method, args }) => {
      let answer;
      try {
        answer = { id, value: await handle(method, args) };
      } catch (error) {
        answer = { id, failure: { code: error.code ?? 'io', message: error.message } };
      }
      if (!socket.destroyed) socket.write(`${JSON.stringify(answer)}\n`);
    });
  });
  server.unref();
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(file, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
  return {
    close: () =>
      new Promise((resolve) => {
        for (const peer of peers) peer.destroy();
        server.close(() => resolve());
      }),
  };
}

/**
 * Connects to a holder's socket. Returns `{ call(method, args), close(), closed }` or undefined when nobody
 * listens. `closed` resolves when the line is gone; calls under way then fail with `not-open`.
 */
export async function connect(file) {
  if (process.platform !== 'win32') {
    if (!fs.existsSync(file)) return undefined;
    assertPrivate(path.dirname(file));
  }
  const socket = net.createConnection(file);
  const alive = await new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), CONNECT_TIMEOUT_MS);
    socket.once('connect', () => (clearTimeout(timer), resolve(true)));
    socket.once('error', () => (clearTimeout(timer), resolve(false)));
  });
  if (!alive) {
    socket.destroy();
    return undefined;
  }
  const waiting = new Map();
  let serial = 0;
  let open = true;
  const closed = new Promise((resolve) => {
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      open = false;
      for (const { reject } of waiting.values()) reject(failure('not-open', 'the process that holds the memory went away'));
      waiting.clear();
      resolve();
    });
  });
  readLines(socket, ({ id, value, failure: refusal }) => {
    const caller = waiting.get(id);
    waiting.delete(id);
    // A waiting call keeps the process alive, an idle line does not.
    if (waiting.size === 0) socket.unref();
    if (refusal) caller?.reject(failure(refusal.code, refusal.message));
    else caller?.resolve(value);
  });
  socket.unref();
  return {
    closed,
    close: () => socket.destroy(),
    call(method, args) {
      return new Promise((resolve, reject) => {
        if (!open) return reject(failure('not-open', 'the process that holds the memory went away'));
        const id = (serial += 1);
        waiting.set(id, { resolve, reject });
        socket.ref();
        socket.write(`${JSON.stringify({ id, method, args })}\n`);
      });
    },
  };
}

function readLines(socket, onValue) {
  let chunks = [];
  let size = 0;
  socket.on('data', (chunk) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      chunks.push(chunk.subarray(from, at));
      const line = Buffer.concat(chunks).toString('utf8');
      chunks = [];
      size = 0;
      from = at + 1;
      let value;
      try {
        value = JSON.parse(line);
      } catch {
        // A peer that does not speak the protocol is not one of ours.
        socket.destroy();
        return;
      }
      onValue(value);
    }
    chunks.push(chunk.subarray(from));
    size += chunk.length - from;
    if (size > MAX_LINE) socket.destroy();
  });
}

function assertPrivate(dir) {
  const stat = fs.statSync(dir);
  const mine = process.getuid?.();
  if (mine !== undefined && stat.uid !== mine) throw failure('io', `${dir} belongs to another user`);
}
