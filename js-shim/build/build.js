/**
 * Builds `dist/` from the component and the contract: jco's glue, the core modules, the contract as a
 * table and as types, and the types of this package.
 *
 * `STRATA_COMPONENT` names the component, if it is not where `make component` puts it.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transpileBytes } from '@bytecodealliance/jco-transpile';
import { minifySync } from 'oxc-minify';
import { typeDeclarations } from './types.js';
import { readContract } from './wit.js';

const shim = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(shim);
const dist = join(shim, 'dist');

/**
 * What the component may ask of the host. A new import is a new permission: it must be put here by
 * hand, and served in `src/`.
 */
const IMPORTS = [
  'strata:memory/embedding',
  'strata:memory/llm',
  'strata:memory/log',
  'wasi:cli/environment',
  'wasi:cli/exit',
  'wasi:cli/stderr',
  'wasi:cli/stdin',
  'wasi:cli/stdout',
  'wasi:cli/terminal-input',
  'wasi:cli/terminal-output',
  'wasi:cli/terminal-stderr',
  'wasi:cli/terminal-stdin',
  'wasi:cli/terminal-stdout',
  'wasi:clocks/monotonic-clock',
  'wasi:clocks/wall-clock',
  'wasi:filesystem/preopens',
  'wasi:filesystem/types',
  'wasi:io/error',
  'wasi:io/poll',
  'wasi:io/streams',
  'wasi:random/insecure-seed',
];

const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target');
const component = process.env.STRATA_COMPONENT ?? join(target, 'wasm32-wasip2/component/strata_component.wasm');
if (!existsSync(component)) {
  console.error(`${component} does not exist; build it with \`make component\`, or name it in STRATA_COMPONENT`);
  process.exit(1);
}

for (const old of [dist, join(shim, 'types')]) rmSync(old, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });

const contract = readContract(join(root, 'wit'));
writeFileSync(join(dist, 'contract.js'), `// Generated from wit/ by \`npm run build\`.\nexport default ${JSON.stringify(withoutDocs(contract))};\n`);
writeFileSync(join(dist, 'contract.d.ts'), typeDeclarations(contract) + readFileSync(join(shim, 'build/table.d.ts'), 'utf8'));

const { files, imports } = await transpileBytes(readFileSync(component), {
  name: 'engine',
  instantiation: 'sync',
  base64Cutoff: 0,
  validLiftingOptimization: true,
  nodejsCompat: false,
  tlaCompat: false,
  wasiShim: false,
  noComponentErrorWrapping: true,
  emitTypescriptDeclarations: false,
});
const strangers = imports.filter((name) => !IMPORTS.includes(name));
if (strangers.length > 0) {
  console.error(`the component asks for more than it may: ${strangers.join(', ')}`);
  process.exit(1);
}

const modules = Object.keys(files).filter((name) => name.endsWith('.wasm'));
for (const name of modules) writeFileSync(join(dist, name), files[name]);
writeFileSync(join(dist, 'modules.json'), JSON.stringify(modules));
const glue = withoutDebugLog(keepByteOrderMarks(Buffer.from(files['engine.js']).toString('utf8')));
writeFileSync(join(dist, 'engine.js'), minified(glue));
writeFileSync(join(dist, 'engine.d.ts'), 'export function instantiate(module: (name: string) => WebAssembly.Module, imports: object): object;\n');

// What the OpenClaw plugin must know before any engine opens: to ask an engine on the gateway's thread takes 0.2 s of it.
const { configSchemaSync, listToolsSync } = await import('../src/pure.js');
writeFileSync(join(dist, 'tools.json'), JSON.stringify(listToolsSync()));
writeFileSync(join(dist, 'settings.json'), JSON.stringify(configSchemaSync().default ?? {}));

if (!process.argv.includes('--no-types')) {
  // First the types of this package from its sources, then a caller that is written against them.
  for (const project of ['tsconfig.json', 'test/tsconfig.json']) {
    const { status } = spawnSync(process.execPath, [join(shim, 'node_modules/typescript/bin/tsc'), '-p', join(shim, project)], { stdio: 'inherit' });
    if (status !== 0) process.exit(1);
  }
}

/** jco decodes text with a decoder that swallows U+FEFF at the beginning; then hosts would disagree. */
function keepByteOrderMarks(glue) {
  const decoders = glue.match(/new TextDecoder\(\)/g) ?? [];
  if (decoders.length !== 1) throw new Error(`expected one text decoder in jco's glue, found ${decoders.length}: look at it again`);
  return glue.replace('new TextDecoder()', "new TextDecoder('utf-8', { ignoreBOM: true })");
}

/** jco's glue looks into the environment for each of its debug lines, several a file call; they cost more than the file. */
function withoutDebugLog(glue) {
  const calls = /(?<![\w.$])_debugLog\((?!\.\.\.)/g;
  if (!/const _debugLog = \(/.test(glue) || !calls.test(glue)) throw new Error("there is no debug log in jco's glue: look at it again");
  // What can never run is dropped by the minifier, arguments and all.
  return glue.replace(calls, 'false && _debugLog(');
}

function minified(glue) {
  const { code, errors } = minifySync('engine.js', glue, { compress: { target: 'node20' }, mangle: true, codegen: { removeWhitespace: true }, module: true });
  if (errors.length > 0) throw new Error(`jco's glue cannot be minified: ${errors[0].message}`);
  return code;
}

function withoutDocs(value) {
  return JSON.parse(JSON.stringify(value, (key, one) => (key === 'doc' ? undefined : one)));
}

