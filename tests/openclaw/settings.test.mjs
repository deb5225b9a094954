import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { engineSettings, readSettings } from '../../js-shim/openclaw/settings.js';

const MANIFEST = JSON.parse(fs.readFileSync(new URL('../../js-shim/openclaw.plugin.json', import.meta.url), 'utf8'));

/** Every key of the reference's own schema, with a value that a user may have set. */
const REFERENCE_BLOCK = JSON.parse(fs.readFileSync(new URL('reference-block.json', import.meta.url), 'utf8'));

/** The little of JSON Schema that the manifest uses, checked strictly. */
function validate(schema, value, at = 'config') {
  if (schema.enum) return assert.ok(schema.enum.includes(value), `${at}: ${value}`);
  if (Array.isArray(schema.type)) return undefined;
  if (schema.type === 'object') {
    for (const [key, inner] of Object.entries(value)) {
      const known = schema.properties?.[key];
      if (!known) assert.notEqual(schema.additionalProperties, false, `${at}.${key} is not known`);
      else validate(known, inner, `${at}.${key}`);
    }
  } else if (schema.type === 'array') for (const item of value) validate(schema.items, item, at);
  else if (schema.type === 'integer')
    assert.ok(Number.isInteger(value) && value >= (schema.minimum ?? -Infinity) && value <= (schema.maximum ?? Infinity), `${at}: ${value}`);
  else assert.equal(typeof value, schema.type, at);
}

test('a block of the reference works as it is', () => {
  validate(MANIFEST.configSchema, REFERENCE_BLOCK);
  const settings = readSettings(REFERENCE_BLOCK, '/state');
  assert.equal(settings.model.source, 'endpoint');
  assert.equal(settings.embedding.dimensions, 1024);
  assert.deepEqual(settings.capture.excludeAgents, ['bench-*']);
  assert.deepEqual(settings.unused, ['tcvdb', 'bm25'], 'what has no effect is named; a store that is ours anyway and a report that is off are not');
});

test('an unknown key is refused, also deep inside', () => {
  assert.throws(() => validate(MANIFEST.configSchema, { recall: { maxResult: 5 } }));
  assert.throws(() => validate(MANIFEST.configSchema, { recal: {} }));
});

test("without a configuration everything has a meaning, and the model is the host's", () => {
  const settings = readSettings(undefined, '/state');
  assert.equal(settings.dataDir, '/state/strata/memory');
  assert.equal(settings.model.source, 'host');
  assert.equal(settings.embedding, undefined);
  assert.equal(settings.offload.enabled, true);
  assert.deepEqual([settings.capture.cron, settings.capture.heartbeat, settings.capture.subagents, settings.capture.tools], [false, false, false, false]);
  assert.equal(readSettings({ dataDir: 'elsewhere' }, '/state').root, '/state/elsewhere');
});

test('the engine gets what it knows and nothing else', () => {
  const known = { timezone: 'UTC', capture: { enabled: true }, recall: { strategy: 'hybrid', maxResults: 5 }, evict: [], holder: null };
  assert.deepEqual(engineSettings({ ...REFERENCE_BLOCK, dataDir: 'x' }, known), {
    timezone: 'Asia/Shanghai',
    capture: { enabled: true },
    recall: { maxResults: 5, strategy: 'vector' },
  });
  assert.equal(REFERENCE_BLOCK.recall.strategy, 'embedding', "the user's block is not changed");
});

test("OpenClaw's nightly consolidation is off in our schema", () => {
  assert.equal(MANIFEST.configSchema.properties.dreaming.properties.enabled.default, false);
});

test('every hint and group names a setting', () => {
  const properties = MANIFEST.configSchema.properties;
  for (const path of Object.keys(MANIFEST.uiHints))
    assert.ok(
      path.split('.').reduce((schema, key) => schema?.properties?.[key], MANIFEST.configSchema),
      path,
    );
  const grouped = MANIFEST.configGroups.flatMap((group) => group.properties);
  assert.deepEqual([...grouped].sort(), Object.keys(properties).sort());
});
