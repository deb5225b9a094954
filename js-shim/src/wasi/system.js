/**
 * The rest of WASI that Rust's standard library asks for: no arguments, no environment, an empty
 * standard input, and standard output and error as lines for whoever listens.
 */

import { randomFillSync } from 'node:crypto';
import { filesystem } from './filesystem.js';
import { InputStream, IoError, OutputStream, Pollable, poll } from './io.js';

/** The longest line that is kept of what a guest prints (a panic's message); the rest is cut. */
const MAX_LINE_BYTES = 4096;

class TerminalInput {}
class TerminalOutput {}

/**
 * Returns all WASI imports of the component.
 * @param {string | undefined} directory the data directory; without one no file can be reached
 * @param {(line: string) => void} printed gets what the guest prints, a line at a time
 * @returns {{imports: Record<string, Record<string, unknown>>, release: () => void}} `release` closes what is open
 */
export function wasiImports(directory, printed) {
  const files = filesystem(directory);
  const output = () => lines(printed);
  const imports = {
    'wasi:cli/environment': { getEnvironment: () => [], getArguments: () => [], initialCwd: () => undefined },
    'wasi:cli/exit': {
      exit() {
        throw new Error('the engine tried to end the process');
      },
    },
    'wasi:cli/stdin': { getStdin: () => new InputStream() },
    'wasi:cli/stdout': { getStdout: output },
    'wasi:cli/stderr': { getStderr: output },
    'wasi:cli/terminal-input': { TerminalInput },
    'wasi:cli/terminal-output': { TerminalOutput },
    'wasi:cli/terminal-stdin': { getTerminalStdin: () => undefined },
    'wasi:cli/terminal-stdout': { getTerminalStdout: () => undefined },
    'wasi:cli/terminal-stderr': { getTerminalStderr: () => undefined },
    'wasi:clocks/monotonic-clock': {
      now: () => process.hrtime.bigint(),
      resolution: () => 1n,
      subscribeDuration: () => new Pollable(),
      subscribeInstant: () => new Pollable(),
    },
    'wasi:clocks/wall-clock': { now: wallClock, resolution: () => ({ seconds: 0n, nanoseconds: 1_000_000 }) },
    'wasi:filesystem/preopens': files.preopens,
    'wasi:filesystem/types': files.types,
    'wasi:io/error': { Error: IoError },
    'wasi:io/poll': { Pollable, poll },
    'wasi:io/streams': { InputStream, OutputStream },
    'wasi:random/insecure-seed': { insecureSeed: () => [randomU64(), randomU64()] },
  };
  return { imports, release: files.release };
}

function randomU64() {
  return randomFillSync(new BigUint64Array(1))[0];
}

function wallClock() {
  const now = Date.now();
  return { seconds: BigInt(Math.floor(now / 1000)), nanoseconds: (now % 1000) * 1_000_000 };
}

/** @param {(line: string) => void} printed */
function lines(printed) {
  let rest = Buffer.alloc(0);
  return new OutputStream((bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
      printed(rest.subarray(0, Math.min(end, MAX_LINE_BYTES)).toString('utf8'));
      rest = rest.subarray(end + 1);
    }
    if (rest.length > MAX_LINE_BYTES) rest = rest.subarray(0, MAX_LINE_BYTES);
  });
}
