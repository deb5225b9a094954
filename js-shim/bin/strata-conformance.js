#!/usr/bin/env node
/** `strata-conformance [DIR]`: runs the scenarios under DIR and prints their transcripts. */

import { existsSync } from 'node:fs';
import { runScenarios } from '../src/conformance.js';

const USAGE = `Usage: strata-conformance [DIR]

Runs every scenario (*.json) under DIR (tests/scenarios) on the component in Node, prints the transcripts
as JSON Lines, and fails if an expectation is not met. The same bytes from two hosts mean the same behaviour.`;

const args = process.argv.slice(2);
if (args.includes('--help') || args.includes('-h')) {
  console.log(USAGE);
} else if (args.length > 1 || args[0]?.startsWith('-')) {
  console.error(USAGE);
  process.exitCode = 2;
} else {
  const directory = args[0] ?? 'tests/scenarios';
  if (!existsSync(directory)) {
    console.error(`strata-conformance: there is no directory ${directory}`);
    process.exitCode = 2;
  } else {
    const runs = runScenarios(directory);
    process.stdout.write(runs.map((run) => run.transcript).join(''));
    const failures = runs.flatMap((run) => run.failures);
    for (const failure of failures) console.error(failure);
    console.error(`${runs.length} scenarios, ${failures.length} failures`);
    if (failures.length > 0 || runs.length === 0) process.exitCode = 1;
  }
}
