/**
 * Puts a maximum into a module's own memory, so that a guest that asks for more is refused by the
 * engine of JavaScript itself: `memory.grow` fails, and the guest sees an allocation error.
 */

const MEMORY_SECTION = 5;
const PAGE_BYTES = 65536;
/** Flag of limits: a maximum follows. Other flags (shared, 64-bit) are of features that we do not use. */
const HAS_MAXIMUM = 1;

/**
 * Returns `module` with its memory limited to `limitBytes`, rounded down to whole pages, but never
 * under what the module begins with. A module without a memory of its own is returned as it is.
 * @param {Uint8Array} module
 * @param {number} limitBytes
 * @returns {Uint8Array}
 */
export function limitMemory(module, limitBytes) {
  let at = 8; // Magic and version.
  while (at < module.length) {
    const start = at;
    const id = module[at++];
    const size = readUnsigned(module, at);
    const body = size.next;
    at = body + size.value;
    if (id !== MEMORY_SECTION) continue;
    const count = readUnsigned(module, body);
    if (count.value !== 1) return module;
    const flags = module[count.next];
    if (flags > HAS_MAXIMUM) throw new Error('the memory of the engine is of a kind that cannot be limited');
    const initial = readUnsigned(module, count.next + 1);
    const own = flags === HAS_MAXIMUM ? readUnsigned(module, initial.next).value : 65536;
    const maximum = Math.min(own, Math.max(initial.value, Math.floor(limitBytes / PAGE_BYTES)));
    const limited = [1, HAS_MAXIMUM, ...unsigned(initial.value), ...unsigned(maximum)];
    return Uint8Array.from(Buffer.concat([module.subarray(0, start), Buffer.from([MEMORY_SECTION, ...unsigned(limited.length), ...limited]), module.subarray(at)]));
  }
  return module;
}

/**
 * @param {Uint8Array} bytes
 * @param {number} at
 */
function readUnsigned(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return { value, next: at };
  }
}

/** @param {number} value */
function unsigned(value) {
  const bytes = [];
  for (; value >= 0x80; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80);
  bytes.push(value);
  return bytes;
}
