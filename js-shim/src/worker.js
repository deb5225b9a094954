/**
 * The worker thread: one instance of the component, one call at a time.
 *
 * It knows nothing but how to run a call and to hand back what the call asked for. Deadlines, order,
 * models and reopening are the supervisor's.
 */

import { parentPort, workerData } from 'node:worker_threads';
import { callExport, newInstance } from './instance.js';

/**
 * @typedef {import('./instance.js').Models} Models
 * @typedef {import('./instance.js').Outgoing} Outgoing
 * @typedef {{id: number, name: string, values: unknown[], models: Models}} Call
 * @typedef {{id: number, outgoing: Outgoing[]} & ReturnType<typeof callExport>} Reply
 */

const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort);

/** How many of the last printed lines go into the message of a trap. */
const KEPT_LINES = 3;

/** @type {Outgoing[]} */
let outgoing = [];
/** @type {string[]} */
let printed = [];
/** @type {Models} */
let models = workerData.models;

const instance = newInstance(workerData.modules, {
  directory: workerData.directory,
  models: () => models,
  send: (one) => outgoing.push(one),
  printed: (line) => {
    printed.push(line);
    if (printed.length > KEPT_LINES) printed.shift();
  },
});

port.on('message', (/** @type {Call} */ call) => {
  outgoing = [];
  printed = [];
  models = call.models;
  const answer = callExport(instance, call.name, call.values);
  if ('trap' in answer && printed.length > 0) answer.trap = `${answer.trap}: ${printed.join(' ')}`;
  port.postMessage({ id: call.id, outgoing, ...answer });
});
