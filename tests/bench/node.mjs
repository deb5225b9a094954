// The Node side of `make bench`: asks a space of atoms that the runner has built.
//
//   node node.mjs PACKAGE_DIR SPACE_DIR STRATEGY QUERIES
//
// Prints {"times-ms": [...], "cpu-ms": [...]}: each query by the clock and as the process computed, after the same
// warm-up as the runner's.

import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';
import { join, resolve } from 'node:path';

const [packageDirectory, dir, strategy, queryFile] = process.argv.slice(2);
const { openMemory } = await import(pathToFileURL(join(resolve(packageDirectory), 'src', 'index.js')).href);

const NOW = 1_780_000_000_000;
const WARM_UP = 20;
const NEVER_S = 1_000_000_000;

const settings = { extraction: { enabled: false }, pipeline: { l2DelayAfterL1Seconds: NEVER_S, l2MaxIntervalSeconds: NEVER_S } };
const memory = await openMemory({ dir, settings });
const queries = JSON.parse(readFileSync(queryFile, 'utf8'));
const ask = (query) => memory.memory.search({ query, layer: 'atoms', strategy, limit: 10, at: NOW });
for (const query of queries.slice(0, WARM_UP)) await ask(query);
const times = [];
const cpu = [];
for (const query of queries) {
  const begun = performance.now();
  const before = process.cpuUsage();
  await ask(query);
  const spent = process.cpuUsage(before);
  times.push(performance.now() - begun);
  cpu.push((spent.user + spent.system) / 1000);
}
await memory.close();
console.log(JSON.stringify({ 'times-ms': times, 'cpu-ms': cpu }));
