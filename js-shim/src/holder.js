/**
 * Who holds a data directory, and whether that process lives.
 *
 * The engine keeps the claims; only a host can tell whether the process behind one is alive. The
 * native runner writes and judges the same records (`host-runner/src/holder.rs`).
 */

import { readFileSync, readlinkSync } from 'node:fs';
import { randomUUID } from 'node:crypto';

/**
 * What is written into the lock of a data directory.
 * @typedef {object} Holder
 * @property {string} id unique text, 1 to 128 letters, digits, `.`, `_` or `-`
 * @property {number} pid
 * @property {string} host names the machine for good; empty where the system tells nothing
 * @property {string} boot names the machine's present boot; empty likewise
 * @property {number} start when the process began, in clock ticks since boot; 0 if unknown
 *
 * @typedef {{host: string, boot: string, pid: number, startOf: (pid: number) => number}} Here
 */

/**
 * Returns a new holder for this process.
 * @returns {Holder}
 */
export function newHolder() {
  const { host, boot, pid } = here();
  return { id: `node-${pid}-${randomUUID()}`, pid, host, boot, start: startOf(pid) };
}

/**
 * Returns whether `holder` is known to be dead: a process of this machine that is gone, or any of an
 * earlier boot. When in doubt it lives: a wrong `true` would let two engines into one directory.
 *
 * @param {Partial<Holder>} holder
 * @param {Here} machine
 */
export function isDead(holder, machine = here()) {
  if (!holder.id || !holder.host || !holder.boot || typeof holder.pid !== 'number' || holder.host !== machine.host) return false;
  if (holder.boot !== machine.boot) return machine.boot !== '';
  return holder.pid !== machine.pid && Boolean(holder.start) && machine.startOf(holder.pid) !== holder.start;
}

/** @returns {Here} */
function here() {
  return { host: machineName(), boot: read('/proc/sys/kernel/random/boot_id'), pid: process.pid, startOf };
}

/**
 * Returns the machine's id, else its name, and the process namespace, as the native runner writes it: containers of one
 * machine may share a directory, but none sees the processes of another. Empty where the system tells nothing.
 */
function machineName() {
  const id = read('/etc/machine-id') || read('/proc/sys/kernel/hostname');
  try {
    return id && `${id} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return ''; // Not Linux: nobody is ever called dead.
  }
}

/** @param {string} path */
function read(path) {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return ''; // Not Linux: nobody is ever called dead.
  }
}

/**
 * Returns when a process began; 0 if there is none, or it has ended and waits to be reaped.
 * @param {number} pid
 */
function startOf(pid) {
  const stat = read(`/proc/${pid}/stat`);
  // The program's name in parentheses may hold anything. The start is field 22, the state field 3.
  const fields = stat.slice(stat.lastIndexOf(') ') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? 0 : Number(fields[19] ?? 0);
}
