/** The host's models: a function, or an OpenAI-compatible HTTP service. A request is not retried here: the engine asks again. */

import { setTimeout as sleep } from 'node:timers/promises';
import { invalid } from './errors.js';

/** The longest reason of a failure that is handed to the engine. */
const MAX_REASON = 500;
/** Texts that one embedding request may carry, if the model does not say. */
const DEFAULT_BATCH = 64;
/** An embedding request has no timeout of its own in the contract. */
export const EMBED_TIMEOUT_MS = 60_000;
/** The first pause after a model did not tell its dimensions; it doubles up to the longest, as the engine's do. */
const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 3_600_000;

/**
 * @typedef {import('../dist/contract.js').Request} LlmRequest
 * @typedef {{text: string, model?: string, inputTokens?: number, outputTokens?: number}} LlmAnswer
 * @typedef {(request: LlmRequest, signal: AbortSignal) => Promise<string | LlmAnswer> | string | LlmAnswer} CompleteFunction
 *   answers a request; `signal` is aborted when the answer is not wanted any more
 * @typedef {{url: string, model: string, key?: string, jsonSchema?: boolean}} LlmService
 *   `url` is the base (`http://127.0.0.1:8080/v1`); `jsonSchema: false` for a service that refuses schemas
 * @typedef {CompleteFunction | {complete: CompleteFunction, model?: string, jsonSchema?: boolean} | LlmService} LlmOption
 *
 * @typedef {(texts: string[], signal: AbortSignal) => Promise<ArrayLike<number>[]> | ArrayLike<number>[]} EmbedFunction
 *   returns one vector for each text, in order
 * @typedef {{url: string, model: string, key?: string, dimensions?: number, batch?: number}} EmbedService
 * @typedef {EmbedFunction | {embed: EmbedFunction, model?: string, dimensions?: number, batch?: number} | EmbedService} EmbedOption
 *   without `dimensions` the model is asked for them in the background, later and later until it answers
 */

/** A language model that answers requests. */
export class LanguageModel {
  /** @param {LlmOption} option */
  constructor(option) {
    if (typeof option === 'function') option = { complete: option };
    if ('url' in option) {
      const service = { ...option, url: baseUrl(option.url, 'llm.url') };
      if (typeof option.model !== 'string' || option.model === '') throw invalid('llm.model must be the name of a model');
      /** @type {CompleteFunction} */
      this.complete = (request, signal) => completeOverHttp(service, request, signal);
    } else if (typeof option.complete === 'function') this.complete = option.complete;
    else throw invalid('llm must be a function, {complete}, or {url, model, key}');
    /** @type {import('../dist/contract.js').Abilities} */
    this.abilities = { available: true, model: option.model ?? 'host', jsonSchema: option.jsonSchema ?? 'url' in option };
  }
}

/** An embedding model. */
export class EmbeddingModel {
  /** What the engine is told; `undefined` until the dimensions are known. @type {import('../dist/contract.js').Model | undefined} */
  model;

  /** @param {EmbedOption} option */
  constructor(option) {
    if (typeof option === 'function') option = { embed: option };
    if ('url' in option) {
      const service = { ...option, url: baseUrl(option.url, 'embed.url') };
      if (typeof option.model !== 'string' || option.model === '') throw invalid('embed.model must be the name of a model');
      /** @type {EmbedFunction} */
      this.embed = (texts, signal) => embedOverHttp(service, texts, signal);
    } else if (typeof option.embed === 'function') this.embed = option.embed;
    else throw invalid('embed must be a function, {embed, model, dimensions}, or {url, model, key}');
    this.name = option.model ?? 'host';
    this.batch = option.batch ?? DEFAULT_BATCH;
    if (option.dimensions !== undefined) this.model = { name: this.name, dimensions: option.dimensions, batch: this.batch };
  }

  /**
   * Learns the dimensions by embedding one word, if they were not told; asks again later and later until the model answers.
   * @param {AbortSignal} over ends it: nobody needs the model any more
   * @param {(error: unknown) => void} failed is told of each failure
   * @param {(ms: number, over: AbortSignal) => Promise<void>} wait pauses; rejects if `over` is aborted
   */
  async learn(over, failed, wait = pause) {
    for (let ms = FIRST_PAUSE_MS; !this.model && !over.aborted; ms = Math.min(2 * ms, LONGEST_PAUSE_MS)) {
      try {
        const [vector] = await this.embed(['memory'], AbortSignal.any([over, AbortSignal.timeout(EMBED_TIMEOUT_MS)]));
        if (!(vector?.length > 0)) throw new Error('the embedding model returned no vector');
        this.model = { name: this.name, dimensions: vector.length, batch: this.batch };
      } catch (error) {
        if (over.aborted) return;
        failed(error);
        await wait(ms, over).catch(() => {}); // The loop looks whether it is over.
      }
    }
  }
}

/**
 * Waits, without keeping the process alive.
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function pause(ms, signal) {
  return sleep(ms, undefined, { ref: false, signal });
}

/**
 * Asks the language model; returns the outcome as the component takes it.
 * @param {LanguageModel} model
 * @param {LlmRequest} request
 * @param {AbortSignal} signal
 */
export async function askModel(model, request, signal) {
  const answer = await model.complete(request, signal);
  const { text, model: name, inputTokens, outputTokens } = typeof answer === 'string' ? /** @type {LlmAnswer} */ ({ text: answer }) : answer;
  if (typeof text !== 'string') throw new Error('the model function returned no text');
  return { tag: 'text', val: { text, model: String(name ?? model.abilities.model), inputTokens: count(inputTokens), outputTokens: count(outputTokens) } };
}

/**
 * Asks the embedding model; returns the outcome as the component takes it.
 * @param {EmbeddingModel} model
 * @param {string[]} texts
 * @param {AbortSignal} signal
 */
export async function askEmbedding(model, texts, signal) {
  const vectors = await model.embed(texts, signal);
  if (!Array.isArray(vectors) || vectors.length !== texts.length) throw new Error(`the embedding model returned ${vectors?.length} vectors for ${texts.length} texts`);
  return { tag: 'vectors', val: vectors.map((vector) => Float32Array.from(vector)) };
}

/**
 * Returns why a request failed, for the engine's ledger.
 * @param {unknown} error
 */
export function reasonOf(error) {
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `${error instanceof Error ? error.message : String(error)}${cause}`.slice(0, MAX_REASON);
}

/**
 * @param {LlmService} service
 * @param {LlmRequest} request
 * @param {AbortSignal} signal
 * @returns {Promise<LlmAnswer>}
 */
async function completeOverHttp(service, request, signal) {
  const messages = [{ role: 'user', content: request.prompt }];
  if (request.system !== '') messages.unshift({ role: 'system', content: request.system });
  /** @type {Record<string, unknown>} */
  const body = { model: service.model, messages, max_tokens: request.maxTokens, temperature: 0, stream: false };
  if (request.schemaJson !== '' && service.jsonSchema !== false) {
    body.response_format = { type: 'json_schema', json_schema: { name: request.purpose.replace(/[^A-Za-z0-9_-]/g, '_'), schema: JSON.parse(request.schemaJson) } };
  }
  const answer = await post(`${service.url}/chat/completions`, service.key, body, signal);
  const text = answer.choices?.[0]?.message?.content;
  if (typeof text !== 'string') throw new Error('the model service answered without text');
  return { text, model: answer.model, inputTokens: answer.usage?.prompt_tokens, outputTokens: answer.usage?.completion_tokens };
}

/**
 * @param {EmbedService} service
 * @param {string[]} texts
 * @param {AbortSignal} signal
 * @returns {Promise<number[][]>}
 */
async function embedOverHttp(service, texts, signal) {
  const answer = await post(`${service.url}/embeddings`, service.key, { model: service.model, input: texts, encoding_format: 'float' }, signal);
  if (!Array.isArray(answer.data)) throw new Error('the embedding service answered without data');
  const rows = /** @type {{index?: number, embedding: number[]}[]} */ (answer.data);
  // The order of `data` is promised by `index` only.
  return rows.map((row, index) => ({ index: row.index ?? index, embedding: row.embedding })).sort((a, b) => a.index - b.index).map((row) => row.embedding);
}

/**
 * @param {string} url
 * @param {string | undefined} key never part of a message or a log line
 * @param {object} body
 * @param {AbortSignal} signal
 * @returns {Promise<any>}
 */
async function post(url, key, body, signal) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key ? { authorization: `Bearer ${key}` } : {}) },
    body: JSON.stringify(body),
    signal,
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${new URL(url).host} answered ${response.status}: ${text.slice(0, 200)}`);
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${new URL(url).host} answered something that is not JSON`);
  }
}

/**
 * @param {string} url
 * @param {string} name
 */
function baseUrl(url, name) {
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw invalid(`${name} must be an http or https URL`);
  return url.replace(/\/+$/, '');
}

/** @param {number | undefined} value */
function count(value) {
  return Number.isInteger(value) && Number(value) >= 0 ? value : undefined;
}
