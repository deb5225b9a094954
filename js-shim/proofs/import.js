/**
 * `node proofs/import.js FILE DATA [CHUNK]`: imports a corpus file into a data directory, CHUNK messages a
 * call, and prints a line for what is acknowledged.
 */

import { openMemory } from '../src/index.js';
import { importCalls } from './corpora.js';

const [file, dir, chunk = '5'] = process.argv.slice(2);
const memory = await openMemory({ dir });
console.log(JSON.stringify({ ready: true }));
let acknowledged = 0;
for (const call of importCalls(file, Number(chunk))) {
  const report = await memory.agentEnd(call);
  acknowledged += report.stored.length + report.known;
  console.log(JSON.stringify({ acknowledged }));
}
await memory.idle();
const status = await memory.status();
await memory.close();
console.log(JSON.stringify({ done: true, messages: status.messages, atoms: status.atoms }));
