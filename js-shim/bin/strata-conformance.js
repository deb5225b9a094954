#!/usr/bin/env node
/** `strata-conformance [DIR]`: runs the scenarios under DIR and prints or writes their transcripts. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { runScenarios } from '../src/conformance.js';

const USAGE = `Usage: strata-conformance [DIR] [--transcripts OUT]

Runs every scenario (*.json) under DIR (tests/scenarios) on the component in Node and fails if an expectation is
not met. The transcripts are printed, or written to OUT/<area>/<name>.jsonl. The same bytes from two hosts mean
the same behaviour.`;

function main() {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { transcripts: { type: 'string' }, help: { type: 'boolean', short: 'h' } } });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const directory = positionals[0] ?? 'tests/scenarios';
  if (positionals.length > 1 || !existsSync(directory)) {
    console.error(positionals.length > 1 ? USAGE : `strata-conformance: there is no directory ${directory}`);
    return 2;
  }
  const runs = runScenarios(directory);
  for (const { name, transcript, skipped } of runs) {
    if (skipped !== undefined) console.error(`${name}: left out: ${skipped}`);
    else if (values.transcripts === undefined) process.stdout.write(`{"scenario":${JSON.stringify(name)}}\n${transcript}`);
    else {
      const path = join(values.transcripts, `${name}.jsonl`);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, transcript);
    }
  }
  const failures = runs.flatMap((run) => run.failures);
  for (const failure of failures) console.error(failure);
  console.error(`${runs.length} scenarios, ${failures.length} failures`);
  return failures.length > 0 || runs.length === 0 ? 1 : 0;
}

try {
  process.exitCode = main();
} catch (error) {
  console.error(`strata-conformance: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 2;
}
