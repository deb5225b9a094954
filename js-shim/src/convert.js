/**
 * Values between callers and the component, driven by the table of the contract.
 *
 * Three spellings meet here: the API's (`turnId`, numbers for instants, absent members filled in),
 * the scenario's (`turn-id`, every absent member empty), and the component's (`turnId`, `bigint`).
 */

import contract from '../dist/contract.js';
import { OPTIONAL } from './defaults.js';
import { invalid } from './errors.js';

/**
 * @typedef {import('../dist/contract.js').WitType} WitType
 * @typedef {import('../dist/contract.js').WitFunction} WitFunction
 */

/** Largest instant that a number holds exactly. */
const LARGEST_INSTANT = Number.MAX_SAFE_INTEGER;
const LARGEST_U32 = 0xffff_ffff;

/**
 * Returns the function `interface.name` of the contract.
 * @param {string} name
 * @returns {WitFunction}
 */
export function contractFunction(name) {
  const found = contract.functions[name];
  if (!found) throw invalid(`there is no call ${name}`);
  return found;
}

/** Names of all functions, `interface.name`, in the contract's order. */
export function functionNames() {
  return Object.keys(contract.functions);
}

/** How a caller spells and what it may leave out. */
export class ApiSpelling {
  /**
   * @param {import('../dist/contract.js').Scope} scope what an absent scope, or part of one, means
   * @param {() => number} now
   */
  constructor(scope, now) {
    this.scope = scope;
    this.now = now;
  }

  /**
   * @param {{name: string, js: string}} member
   * @param {Record<string, unknown>} record
   */
  pick(member, record) {
    return record[member.js];
  }

  /**
   * @param {{js: string}} member
   */
  spell(member) {
    return member.js;
  }

  /**
   * Returns what an absent member means; throws if it must be given.
   * @param {string} record
   * @param {{name: string, js: string}} member
   * @param {string} path
   */
  absent(record, member, path) {
    const key = `${record}.${member.name}`;
    if (record === 'types.scope') return /** @type {any} */ (this.scope)[member.js] ?? '';
    if (!(key in OPTIONAL)) throw invalid(`${path}${member.js} is missing`);
    const meaning = /** @type {Record<string, unknown>} */ (OPTIONAL)[key];
    if (meaning === '$now') return this.now();
    if (meaning === '$scope') return {};
    return meaning;
  }
}

/** The spelling of scenarios: the contract's own names, and every absent member is empty. */
export const SCENARIO_SPELLING = Object.freeze({
  /**
   * @param {{name: string}} member
   * @param {Record<string, unknown>} record
   */
  pick(member, record) {
    return record[member.name];
  },
  /** @param {{name: string}} member */
  spell(member) {
    return member.name;
  },
  /**
   * @param {string} _record
   * @param {{type: WitType}} member
   */
  absent(_record, member) {
    return empty(member.type);
  },
});

/** @typedef {ApiSpelling | typeof SCENARIO_SPELLING} Spelling */

/**
 * Returns `value` as the component takes it.
 * @param {WitType} type
 * @param {any} value
 * @param {Spelling} spelling
 * @param {string} path names the value in messages
 * @returns {any}
 */
export function lower(type, value, spelling, path) {
  const name = path.replace(/\.$/, '');
  switch (type) {
    case 'string':
      if (typeof value !== 'string') throw invalid(`${name} must be text`);
      return value;
    case 'bool':
      if (typeof value !== 'boolean') throw invalid(`${name} must be true or false`);
      return value;
    case 'u32':
      if (!Number.isInteger(value) || value < 0 || value > LARGEST_U32) throw invalid(`${name} must be a whole number from 0 to ${LARGEST_U32}`);
      return value;
    case 'u64':
      if (value instanceof Date) value = value.getTime();
      if (!Number.isInteger(value) || value < 0 || value > LARGEST_INSTANT) throw invalid(`${name} must be a whole number of milliseconds since 1970`);
      return BigInt(value);
    case 'f32':
      if (typeof value !== 'number') throw invalid(`${name} must be a number`);
      return value;
  }
  if ('option' in type) return value === undefined || value === null ? undefined : lower(type.option, value, spelling, path);
  if ('list' in type) {
    if (type.list === 'f32' && ArrayBuffer.isView(value)) return Float32Array.from(/** @type {Float32Array} */ (value));
    if (!Array.isArray(value)) throw invalid(`${name} must be a list`);
    const inner = type.list;
    const list = value.map((one, index) => lower(inner, one, spelling, `${name}[${index}].`));
    return inner === 'f32' ? Float32Array.from(list) : list;
  }
  if ('tuple' in type) {
    if (!Array.isArray(value) || value.length !== type.tuple.length) throw invalid(`${name} must be a list of ${type.tuple.length}`);
    return type.tuple.map((part, index) => lower(part, value[index], spelling, `${name}[${index}].`));
  }
  const named = contract.types[type.ref];
  switch (named.kind) {
    case 'alias':
      return lower(named.type, value, spelling, path);
    case 'enum':
      if (!named.cases.some((one) => one.name === value)) throw invalid(`${name} must be one of ${named.cases.map((one) => one.name).join(', ')}`);
      return value;
    case 'variant':
      return lowerVariant(named, value, spelling, path);
    case 'record':
      return lowerRecord(type.ref, named, value, spelling, path);
  }
}

/**
 * @param {string} key
 * @param {Extract<import('../dist/contract.js').WitNamed, {kind: 'record'}>} named
 * @param {any} value
 * @param {Spelling} spelling
 * @param {string} path
 */
function lowerRecord(key, named, value, spelling, path) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(`${path.replace(/\.$/, '')} must be an object`);
  const known = new Set(named.fields.map((field) => spelling.spell(field)));
  const stranger = Object.keys(value).find((member) => !known.has(member));
  if (stranger !== undefined) throw invalid(`${path}${stranger} is not known; known are ${[...known].join(', ')}`);
  /** @type {Record<string, unknown>} */
  const record = {};
  for (const field of named.fields) {
    let member = spelling.pick(field, value);
    if (member === undefined && !isOption(field.type)) member = spelling.absent(key, field, path);
    record[field.js] = lower(field.type, member, spelling, `${path}${spelling.spell(field)}.`);
  }
  return record;
}

/**
 * A variant is `{tag, val}` for the component, and `{tag: val}` in scenarios.
 * @param {Extract<import('../dist/contract.js').WitNamed, {kind: 'variant'}>} named
 * @param {any} value
 * @param {Spelling} spelling
 * @param {string} path
 */
function lowerVariant(named, value, spelling, path) {
  const name = path.replace(/\.$/, '');
  const [tag, inner] = typeof value?.tag === 'string' ? [value.tag, value.val] : (Object.entries(value ?? {})[0] ?? []);
  const found = named.cases.find((one) => one.name === tag);
  if (!found) throw invalid(`${name} must be one of ${named.cases.map((one) => one.name).join(', ')}`);
  return found.type ? { tag, val: lower(found.type, inner, spelling, path) } : { tag };
}

/**
 * Returns what the component gave, as callers see it: members in the contract's order, instants as
 * numbers, an absent option as `undefined` (API) or `null` (scenario).
 * @param {WitType | null} type
 * @param {any} value
 * @param {Spelling} spelling
 * @returns {any}
 */
export function lift(type, value, spelling) {
  if (type === null) return spelling === SCENARIO_SPELLING ? null : undefined;
  if (typeof type === 'string') return type === 'u64' ? Number(value) : value;
  if ('option' in type) {
    if (value === undefined || value === null) return spelling === SCENARIO_SPELLING ? null : undefined;
    return lift(type.option, value, spelling);
  }
  if ('list' in type) {
    const inner = type.list;
    return Array.from(value, (one) => lift(inner, one, spelling));
  }
  if ('tuple' in type) return type.tuple.map((part, index) => lift(part, value[index], spelling));
  const named = contract.types[type.ref];
  if (named.kind === 'alias') return lift(named.type, value, spelling);
  if (named.kind !== 'record') return value;
  return Object.fromEntries(named.fields.map((field) => [spelling.spell(field), lift(field.type, value[field.js], spelling)]));
}

/**
 * Returns the arguments of `name` as the component takes them.
 * @param {string} name
 * @param {unknown[]} values one a parameter; an absent instant or scope is filled in by the spelling
 * @param {ApiSpelling} spelling
 */
export function lowerArguments(name, values, spelling) {
  return contractFunction(name).params.map((param, index) => {
    let value = values[index];
    if (value === undefined && !isOption(param.type)) {
      if (isRef(param.type, 'types.instant')) value = spelling.now();
      else if (isRef(param.type, 'types.scope')) value = {};
      else if (isRecord(param.type)) value = {};
    }
    return lower(param.type, value, spelling, isRecord(param.type) ? '' : `${param.js}.`);
  });
}

/**
 * Returns the empty value of a type, as serde's default: `""`, 0, false, `[]`, a record of empty members.
 * @param {WitType} type
 * @returns {unknown}
 */
function empty(type) {
  if (type === 'string') return '';
  if (type === 'bool') return false;
  if (typeof type === 'string') return 0;
  if ('option' in type) return undefined;
  if ('list' in type) return [];
  if ('tuple' in type) return type.tuple.map(empty);
  const named = contract.types[type.ref];
  if (named.kind === 'alias') return empty(named.type);
  return named.kind === 'record' ? {} : undefined;
}

/** @param {WitType} type */
function isOption(type) {
  return typeof type === 'object' && 'option' in type;
}

/**
 * @param {WitType} type
 * @param {string} key
 */
function isRef(type, key) {
  return typeof type === 'object' && 'ref' in type && type.ref === key;
}

/** @param {WitType} type */
function isRecord(type) {
  return typeof type === 'object' && 'ref' in type && contract.types[type.ref].kind === 'record';
}
