/** `wasi:io`, synchronous: nothing here ever has to wait. */

/** The largest piece that a stream takes or gives at once. */
const MAX_PIECE_BYTES = 1 << 20;

/** A stream's error. */
export class IoError {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }

  toDebugString() {
    return this.text;
  }
}

/** Something to wait for that is ready already. */
export class Pollable {
  ready() {
    return true;
  }

  block() {}
}

/** A stream to read, here an empty one. */
export class InputStream {
  /**
   * @param {bigint} length
   * @returns {Uint8Array}
   */
  read(length) {
    void length;
    throw { tag: 'closed' };
  }

  /** @param {bigint} length */
  blockingRead(length) {
    return this.read(length);
  }

  subscribe() {
    return new Pollable();
  }
}

/** A stream to write, here one that hands each piece to a function. */
export class OutputStream {
  /** @param {(bytes: Uint8Array) => void} take */
  constructor(take) {
    this.take = take;
  }

  checkWrite() {
    return BigInt(MAX_PIECE_BYTES);
  }

  /** @param {Uint8Array} bytes */
  write(bytes) {
    this.take(bytes);
  }

  /** @param {Uint8Array} bytes */
  blockingWriteAndFlush(bytes) {
    this.write(bytes);
  }

  flush() {}

  blockingFlush() {}

  subscribe() {
    return new Pollable();
  }
}

/**
 * Runs a file call of a stream; its error becomes the stream's.
 * @template T
 * @param {() => T} call
 * @returns {T}
 */
function streaming(call) {
  try {
    return call();
  } catch (error) {
    throw { tag: 'last-operation-failed', val: new IoError(String(error)) };
  }
}

/** Reads a file from an offset on. */
export class FileInputStream extends InputStream {
  /**
   * @param {{read(length: bigint, offset: bigint): [Uint8Array, boolean]}} file
   * @param {bigint} offset
   */
  constructor(file, offset) {
    super();
    this.file = file;
    this.offset = offset;
  }

  /**
   * @param {bigint} length
   * @override
   */
  read(length) {
    const wanted = length < BigInt(MAX_PIECE_BYTES) ? length : BigInt(MAX_PIECE_BYTES);
    const [bytes] = streaming(() => this.file.read(wanted, this.offset));
    if (bytes.length === 0 && length > 0n) throw { tag: 'closed' };
    this.offset += BigInt(bytes.length);
    return bytes;
  }
}

/** Writes a file from an offset on. */
export class FileOutputStream extends OutputStream {
  /**
   * @param {{write(bytes: Uint8Array, offset: bigint): bigint}} file
   * @param {bigint} offset
   */
  constructor(file, offset) {
    super((bytes) => {
      for (let written = 0; written < bytes.length; ) {
        const count = streaming(() => file.write(bytes.subarray(written), this.offset));
        written += Number(count);
        this.offset += count;
      }
    });
    this.offset = offset;
  }
}

/**
 * `wasi:io/poll.poll`: everything is ready.
 * @param {Pollable[]} pollables
 */
export function poll(pollables) {
  return Uint32Array.from(pollables.keys());
}
