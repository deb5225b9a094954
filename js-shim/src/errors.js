/** The one error that this package rejects with. */

const BRAND = Symbol.for('strata.error');

/**
 * @typedef {import('../dist/contract.js').FailureCode | 'trap' | 'deadline'} StrataErrorCode
 * Why a call did nothing: a refusal of the contract, or the end of the engine's instance.
 * `trap`: the engine stopped on a fault. `deadline`: the call ran too long and was ended. After both
 * the engine is opened again by itself, and everything acknowledged is still there.
 */

/** A refusal or a fault: `code` to branch on, `message` for people. */
export class StrataError extends Error {
  /**
   * @param {StrataErrorCode} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.name = 'StrataError';
    /** @type {StrataErrorCode} */
    this.code = code;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /**
   * True for errors of every loaded copy of this package: a host may load the module several times.
   * @param {unknown} value
   * @returns {value is StrataError}
   * @override
   */
  static [Symbol.hasInstance](value) {
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}

/**
 * Returns an `invalid-argument` error.
 * @param {string} message
 */
export function invalid(message) {
  return new StrataError('invalid-argument', message);
}
