import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { declaredToolNames, renameTools, toolDefinitions } from '../../js-shim/openclaw/toolset.js';

const at = (path) => new URL(`../../js-shim/${path}`, import.meta.url);
const manifest = JSON.parse(fs.readFileSync(at('openclaw.plugin.json'), 'utf8'));

const built = fs.existsSync(at('dist/tools.json'));

test('the manifest declares every tool, and only tools that exist', (t) => {
  if (!built) return t.skip('the Node package is not built');
  assert.deepEqual(manifest.contracts.tools, declaredToolNames(), 'run tests/openclaw/declare.mjs');
});

test('the manifest, the package and the plugin have one id and one version', () => {
  const pkg = JSON.parse(fs.readFileSync(at('package.json'), 'utf8'));
  assert.equal(manifest.version, pkg.version);
  assert.equal(manifest.id, 'strata');
  assert.deepEqual(pkg.openclaw.extensions, ['./openclaw/index.js']);
  for (const path of ['openclaw', 'openclaw.plugin.json']) assert.ok(pkg.files.includes(path), `${path} is not in the package`);
});

test('tools are renamed as whole words only', (t) => {
  if (!built) return t.skip('the Node package is not built');
  const [first] = toolDefinitions();
  assert.equal(
    renameTools(`Use ${first.name}, not tdai_${first.name} or ${first.name}s.`, false),
    `Use strata_${first.name}, not tdai_${first.name} or ${first.name}s.`,
  );
  assert.equal(renameTools(first.name, true), first.name);
});
