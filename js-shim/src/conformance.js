/**
 * Runs scenarios (`tests/README.md`) on the component in Node and writes their transcripts. Another host
 * that writes the same bytes behaves the same.
 */

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import contract from '../dist/contract.js';
import { SCENARIO_SPELLING, contractFunction, functionNames, lift, lower } from './convert.js';
import { difference } from './expect.js';
import { DEFAULT_MEMORY_LIMIT_BYTES, NO_MODELS, callExport, engineModules, newInstance } from './instance.js';

/** The name under which every opening claims the directory: the same holder may come back after a crash. */
const HOLDER = 'conformance';

/** What this host is called in a scenario's `skip`. */
const HOST = 'node';

/**
 * @typedef {{call: string, with?: Record<string, any>, expect?: any, requests?: any[], cancelled?: string[], note?: string}} Step
 * @typedef {{about: string, config?: object, llm?: object, embedding?: object, at?: number, requests?: any[], skip?: Record<string, string>, steps: Step[]}} Scenario
 * @typedef {{name: string, transcript: string, failures: string[], skipped?: string}} Run `skipped` is the reason
 */

/**
 * Runs all scenarios under `directory` in the order of their paths. One that is written wrongly fails, and
 * the others run.
 * @param {string} directory
 * @returns {Run[]}
 */
export function runScenarios(directory) {
  return scenarioFiles(directory).map((path) => {
    const name = path.replace(/\.json$/, '');
    try {
      return runScenario(name, JSON.parse(readFileSync(join(directory, path), 'utf8')));
    } catch (error) {
      return { name, transcript: '', failures: [error instanceof Error ? error.message : String(error)] };
    }
  });
}

/**
 * Returns the paths of the scenarios under `directory`, with `/` between the parts, in the order of their bytes.
 * @param {string} directory
 */
export function scenarioFiles(directory) {
  return filesUnder(directory).filter((path) => path.endsWith('.json'));
}

/**
 * Runs one scenario in a fresh data directory.
 * @param {string} name
 * @param {Scenario} scenario
 * @returns {Run}
 */
export function runScenario(name, scenario) {
  const skipped = scenario.skip?.[HOST];
  if (skipped !== undefined) return { name, transcript: '', failures: [], skipped };
  const directory = mkdtempSync(join(tmpdir(), 'strata-scenario-'));
  try {
    const play = new Play(name, scenario, directory);
    play.run();
    return { name, transcript: play.lines.map((line) => `${canonical(line)}\n`).join(''), failures: play.failures };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const STEP_MEMBERS = new Set(['call', 'with', 'expect', 'requests', 'cancelled', 'note']);

/** One run of a scenario. */
class Play {
  /** @type {object[]} */
  lines = [];
  /** @type {string[]} */
  failures = [];
  /** @type {any[]} */
  #requests = [];
  /** @type {string[]} */
  #cancelled = [];
  /** @type {import('./instance.js').Instance | undefined} */
  #instance;
  #open = false;

  /**
   * @param {string} name
   * @param {Scenario} scenario
   * @param {string} directory
   */
  constructor(name, scenario, directory) {
    this.name = name;
    this.scenario = scenario;
    this.directory = directory;
    this.at = scenario.at ?? 0;
    this.models = NO_MODELS;
    this.#setModels(scenario);
  }

  run() {
    this.#step(0, { call: 'open', requests: this.scenario.requests });
    this.scenario.steps.forEach((step, index) => this.#step(index + 1, step));
    if (this.#open) this.#call('close', { at: this.at });
    this.#instance?.release();
    for (const path of ownFiles(this.directory)) {
      this.lines.push({ file: path, sha256: createHash('sha256').update(readFileSync(join(this.directory, path))).digest('hex') });
    }
  }

  /**
   * @param {number} number
   * @param {Step} step
   */
  #step(number, step) {
    this.#requests = [];
    this.#cancelled = [];
    const stranger = Object.keys(step).find((member) => !STEP_MEMBERS.has(member));
    if (stranger !== undefined) throw new Error(`${this.name}, step ${number}: a step has no ${stranger}`);
    const given = step.with ?? {};
    this.at = given.at ?? given.now ?? this.at;
    /** @type {{result: any} | {failure: any} | {trap: string}} */
    let outcome;
    try {
      outcome = this.#perform(step.call, given);
    } catch (error) {
      throw new Error(`${this.name}, step ${number} (${step.call}): ${error instanceof Error ? error.message : error}`, { cause: error });
    }
    this.lines.push({ step: number, call: step.call, ...outcome, requests: this.#requests, cancelled: this.#cancelled });
    this.#check(`${this.name}, step ${number} (${step.call})`, step, outcome);
  }

  /**
   * @param {string} where
   * @param {Step} step
   * @param {any} outcome
   */
  #check(where, step, outcome) {
    const wanted = step.expect?.$failure;
    let found;
    if ('trap' in outcome) found = `: the engine stopped: ${outcome.trap}`;
    else if (wanted !== undefined) found = outcome.failure?.code === wanted ? undefined : `: expected the failure ${wanted}, got ${JSON.stringify(outcome)}`;
    else if ('failure' in outcome) found = `: ${outcome.failure.code}: ${outcome.failure.message}`;
    else if (step.expect !== undefined) found = difference(step.expect, outcome.result, '');
    if (found !== undefined) this.failures.push(`${where}${found}`);
    const requests = difference(step.requests ?? [], this.#requests, ' requests');
    if (requests !== undefined) this.failures.push(`${where}${requests}`);
    const cancelled = step.cancelled && difference(step.cancelled, this.#cancelled, ' cancelled');
    if (cancelled !== undefined) this.failures.push(`${where}${cancelled}`);
  }

  /**
   * @param {string} call
   * @param {Record<string, any>} given
   */
  #perform(call, given) {
    switch (call) {
      case 'open':
        return this.#reopen();
      case 'reopen': {
        const closed = this.#call('close', { at: this.at });
        return 'result' in closed ? this.#reopen() : closed;
      }
      case 'crash':
        return this.#reopen();
      case 'close':
        return this.#call('close', { at: this.at });
      case 'models':
        this.#setModels(given);
        return { result: null };
      case 'file': {
        const path = this.#inside(given.path);
        return { result: existsSync(path) ? readFileSync(path, 'utf8') : null };
      }
      case 'files':
        return { result: ownFiles(this.directory) };
      case 'write-file': {
        const path = this.#inside(given.path);
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, given.text);
        return { result: null };
      }
      default:
        return this.#call(call, given);
    }
  }

  /** Opens the directory in a new instance. */
  #reopen() {
    this.#instance?.release();
    this.#instance = newInstance(engineModules(DEFAULT_MEMORY_LIMIT_BYTES), {
      directory: this.directory,
      models: () => this.models,
      send: (one) => this.#send(one),
      printed: () => {},
    });
    const config = { ...this.scenario.config, holder: { id: HOLDER } };
    const outcome = this.#call('open', { 'config-json': JSON.stringify(config), at: this.at });
    this.#open = 'result' in outcome;
    return outcome;
  }

  /**
   * @param {string} call
   * @param {Record<string, any>} given
   */
  #call(call, given) {
    const name = functionNames().find((one) => one.endsWith(`.${call}`));
    if (!name) throw new Error(`there is no call ${call}`);
    const { params, result } = contractFunction(name);
    // A call with one record takes it as it stands; all others take their arguments by name.
    const whole = params.length === 1 && isRecord(params[0].type);
    const strangers = whole ? [] : Object.keys(given).filter((member) => !params.some((one) => one.name === member));
    if (strangers.length > 0) throw new Error(`${call} takes no ${strangers.join(', ')}`);
    const values = params.map(({ name: member, type }) => lower(type, whole ? given : (given[member] ?? (isRecord(type) ? {} : undefined)), SCENARIO_SPELLING, `${member}.`));
    const answer = callExport(/** @type {import('./instance.js').Instance} */ (this.#instance), name, values);
    if (call === 'close' && 'value' in answer) this.#open = false;
    return 'value' in answer ? { result: lift(result, answer.value, SCENARIO_SPELLING) } : answer;
  }

  /** @param {import('./instance.js').Outgoing} one */
  #send(one) {
    switch (one.kind) {
      case 'ask-model':
        this.#requests.push({ kind: 'llm', id: one.id, ...lift({ ref: 'llm.request' }, one.request, SCENARIO_SPELLING) });
        break;
      case 'embed':
        this.#requests.push({ kind: 'embedding', id: one.id, texts: one.texts });
        break;
      case 'cancel-model':
      case 'cancel-embed':
        this.#cancelled.push(one.id);
        break;
    }
  }

  /** @param {{llm?: object, embedding?: object | null}} told */
  #setModels(told) {
    this.models = {
      llm: lower({ ref: 'llm.abilities' }, told.llm ?? {}, SCENARIO_SPELLING, 'llm.'),
      embedding: lower({ option: { ref: 'embedding.model' } }, told.embedding, SCENARIO_SPELLING, 'embedding.'),
    };
  }

  /** @param {string} path */
  #inside(path) {
    const full = join(this.directory, path);
    if (relative(this.directory, full).startsWith('..')) throw new Error(`${path} is not in the data directory`);
    return full;
  }
}

/**
 * Returns the files of a data directory that all hosts must have alike: without the database, whose
 * pages are SQLite's business, and the lock.
 * @param {string} directory
 */
function ownFiles(directory) {
  return filesUnder(directory).filter((path) => !path.startsWith('strata.db') && !path.startsWith('lock/'));
}

/** @param {string} directory */
function filesUnder(directory) {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath ?? entry.path, entry.name)).split(sep).join('/'))
    .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

/** @param {import('../dist/contract.js').WitType} type */
function isRecord(type) {
  return typeof type === 'object' && 'ref' in type && contract.types[type.ref].kind === 'record';
}

/**
 * Returns `value` as compact JSON whose object members are sorted by name at every depth.
 * @param {unknown} value
 * @returns {string}
 */
function canonical(value) {
  return JSON.stringify(value, (_, one) => {
    if (one === null || typeof one !== 'object' || Array.isArray(one)) return one;
    return Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
