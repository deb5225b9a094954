/**
 * `npm run test:versions [MAJOR…]`: runs the tests and the scenarios on each version of Node that this package
 * supports, and compares the transcripts byte for byte. The npm packages `node-<platform>-<arch>` carry the
 * binaries; they go to `target/node-versions/`.
 */

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const VERSIONS = ['20', '22', '24', '26'];

const shim = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(shim);
const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target');
const store = join(target, 'node-versions');
const transcripts = join(target, 'transcripts');
const scenarios = join(root, 'tests/scenarios');

const asked = process.argv.slice(2);
const versions = asked.length > 0 ? asked : VERSIONS;
let failed = false;
/** @type {Map<string, string> | undefined} */
let reference;

for (const version of versions) {
  const node = binary(version);
  const exact = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
  const tests = readdirSync(join(shim, 'test')).filter((name) => name.endsWith('.test.js'));
  const started = Date.now();
  const run = spawnSync(node, ['--test', '--test-reporter=tap', ...tests.map((name) => join('test', name))], { cwd: shim, encoding: 'utf8', maxBuffer: 64 << 20 });
  const count = (word) => Number(run.stdout.match(new RegExp(`^# ${word} (\\d+)`, 'm'))?.[1] ?? 0);
  console.log(`Node ${exact}: ${count('pass')} tests passed, ${count('fail')} failed, ${count('skipped')} skipped, ${Date.now() - started} ms`);
  if (run.status !== 0) {
    failed = true;
    for (const [found] of run.stdout.matchAll(/^not ok [\s\S]*?^ {2}\.\.\.$/gm)) console.log(found);
    process.stderr.write(run.stderr);
  }
  if (!existsSync(scenarios)) {
    console.log('  there are no scenarios: transcripts NOT compared');
    continue;
  }
  const out = join(transcripts, `node-${version}`);
  rmSync(out, { recursive: true, force: true });
  const conformance = spawnSync(node, [join(shim, 'bin/strata-conformance.js'), scenarios, '--transcripts', out], { encoding: 'utf8' });
  if (conformance.status !== 0) {
    failed = true;
    process.stderr.write(conformance.stderr);
    continue;
  }
  const written = read(out);
  reference ??= written;
  const differing = [...new Set([...written.keys(), ...reference.keys()])].filter((name) => written.get(name) !== reference?.get(name));
  console.log(`  ${written.size} transcripts, ${differing.length} differ from those of Node ${versions[0]}`);
  if (differing.length > 0) {
    failed = true;
    console.log(`  ${differing.join('\n  ')}`);
  }
}
process.exitCode = failed ? 1 : 0;

/** Returns the path of Node `version`, installing it if it is not there. */
function binary(version) {
  const carrier = `node-${process.platform}-${process.arch}`;
  const home = join(store, version);
  const path = join(home, 'node_modules', carrier, 'bin/node');
  if (!existsSync(path)) {
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, 'package.json'), '{"private": true}\n');
    execFileSync('npm', ['install', '--no-save', '--ignore-scripts', `${carrier}@${version}`], { cwd: home, stdio: ['ignore', 'ignore', 'inherit'] });
  }
  return path;
}

/** Returns the transcripts under a directory, by path. */
function read(directory) {
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.jsonl'));
  return new Map(files.map((name) => [name, readFileSync(join(directory, name), 'utf8')]));
}
