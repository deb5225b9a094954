// `openclaw strata status | doctor`: what works, what waits, what failed, and what to do.
import fs from 'node:fs';
import path from 'node:path';
import { referenceDirectory } from '../reference.js';
import { PLUGIN_ID, REFERENCE_PLUGIN_ID, readSettings } from '../settings.js';
import { hasConversationGrant, mayInject, ownsMemorySlot } from '../slots.js';
import { stateDir } from '../state-dir.js';
import { print } from './print.js';

/** Below this much free space `doctor` warns. */
const LOW_DISK_BYTES = 200 << 20;

/** Adds the commands to `root`. */
export function inspectCommands(root, host) {
  root
    .command('status')
    .description('counts by layer, what waits, what failed, which features work')
    .option('--json', 'as JSON')
    .action((options) => host.withSpace((space, settings) => status(host, space, settings, options)));
  root
    .command('doctor')
    .description('check the installation and say what to do; exit code 1 if something needs attention')
    .option('--json', 'as JSON')
    .action((options) => doctor(host, options));
}

async function status(host, space, settings, options) {
  const config = host.config();
  const engine = await attempt(() => space.call('status', []));
  const instances = (await attempt(() => space.call('pluginHealth', []))).value ?? [];
  const report = {
    plugin: { version: host.version, dataDir: settings.dataDir, role: space.state().role },
    granted: hasConversationGrant(config),
    slots: { memory: config?.plugins?.slots?.memory ?? null, contextEngine: config?.plugins?.slots?.contextEngine ?? null },
    features: mergedFeatures(instances),
    latencyMs: Object.assign({}, ...instances.map(({ latencyMs }) => latencyMs)),
    unused: settings.unused,
    engine: engine.value ?? null,
    error: engine.error ?? null,
  };
  if (options.json) print(JSON.stringify(report, null, 2));
  else printStatus(report, instances.length > 0);
  if (engine.error || !report.granted) process.exitCode = 1;
}

/** A feature works when the newest instance that tried it says so. */
function mergedFeatures(instances) {
  const merged = {};
  for (const { features } of instances)
    for (const [name, state] of Object.entries(features)) if (!merged[name] || (merged[name].ok && !state.ok)) merged[name] = state;
  return merged;
}

function printStatus(report, live) {
  print(`Strata ${report.plugin.version}, data in ${report.plugin.dataDir}`);
  print(`opened ${report.plugin.role === 'guest' ? 'through the process that holds it' : 'by this command'}`);
  print(`access to conversations: ${report.granted ? 'granted' : 'NOT granted; run `openclaw strata setup`'}`);
  print(`slots: memory ${report.slots.memory ?? 'not set'}, context engine ${report.slots.contextEngine ?? 'not set'}`);
  if (live) for (const [name, { ok, note }] of Object.entries(report.features)) print(`  ${ok ? 'ok  ' : 'FAIL'} ${name}${note ? `: ${note}` : ''}`);
  else print('  (no running gateway reports its features)');
  for (const [name, { count, p50, p95, max }] of Object.entries(report.latencyMs))
    print(`  ${name} took ${p50} ms (half), ${p95} ms (19 of 20), ${max} ms (longest) over the last ${count} prompts`);
  if (report.unused.length) print(`set and without effect: ${report.unused.join(', ')}`);
  if (report.error) print(`memory: ${report.error}`);
  else print(JSON.stringify(report.engine, null, 2));
}

async function doctor(host, options) {
  const checks = [];
  const check = (name, ok, note, remedy) => checks.push({ name, ok, note, ...(ok || !remedy ? {} : { remedy }) });
  const config = host.config();
  const state = stateDir(host.api);
  const settings = readSettings(host.api.pluginConfig, state);
  const entry = config?.plugins?.entries?.[PLUGIN_ID] ?? {};
  check('enabled', entry.enabled !== false, entry.enabled === false ? 'the plugin is disabled' : '', `openclaw plugins enable ${PLUGIN_ID}`);
  check(
    'access to conversations',
    hasConversationGrant(config),
    hasConversationGrant(config) ? 'granted' : 'not granted: nothing is stored or recalled',
    'openclaw strata setup',
  );
  check(
    'prompt additions',
    mayInject(config),
    mayInject(config) ? 'allowed' : 'hooks.allowPromptInjection is false: nothing is recalled',
    `openclaw config set plugins.entries.${PLUGIN_ID}.hooks.allowPromptInjection true --strict-json`,
  );
  check(
    'memory slot',
    ownsMemorySlot(config),
    `plugins.slots.memory is ${config?.plugins?.slots?.memory ?? 'not set'}`,
    `openclaw config set plugins.slots.memory '"${PLUGIN_ID}"' --strict-json`,
  );
  const engineSlot = config?.plugins?.slots?.contextEngine === PLUGIN_ID;
  check(
    'context-engine slot',
    engineSlot || !settings.offload.enabled,
    engineSlot ? 'ours' : 'not ours: tool results are stored but stay in the prompt',
    `openclaw config set plugins.slots.contextEngine '"${PLUGIN_ID}"' --strict-json`,
  );
  const other = config?.plugins?.entries?.[REFERENCE_PLUGIN_ID];
  check(
    'one memory only',
    !other || other.enabled === false,
    other && other.enabled !== false ? `${REFERENCE_PLUGIN_ID} is enabled too` : '',
    `openclaw plugins disable ${REFERENCE_PLUGIN_ID}`,
  );
  const directory = diskCheck(settings.root);
  check('data directory', directory.ok, directory.note, directory.remedy);
  const reference = referenceDirectory(state);
  if (reference) check('memories of memory-tencentdb', true, `${reference}; to bring them in: openclaw strata import --from tdai`);
  const engine = await host.withSpace((space) => attempt(() => space.call('status', [])));
  check('engine', !engine?.error, engine?.error ?? 'opens and answers', 'see the message; `openclaw strata backup` and `docs/openclaw.md` help');
  if (options.json) print(JSON.stringify({ ok: checks.every(({ ok }) => ok), checks }, null, 2));
  else
    for (const { name, ok, note, remedy } of checks) print(`${ok ? 'ok  ' : 'FAIL'} ${name}${note ? `: ${note}` : ''}${remedy ? `\n     -> ${remedy}` : ''}`);
  if (!checks.every(({ ok }) => ok)) process.exitCode = 1;
}

function diskCheck(root) {
  let dir = root;
  while (!fs.existsSync(dir)) dir = path.dirname(dir);
  try {
    fs.accessSync(dir, fs.constants.W_OK);
    const { bavail, bsize } = fs.statfsSync(dir);
    const free = bavail * bsize;
    return free < LOW_DISK_BYTES
      ? { ok: false, note: `${Math.trunc(free / 2 ** 20)} MiB free under ${dir}`, remedy: 'make room: nothing can be stored on a full disk' }
      : { ok: true, note: `${root}, ${Math.trunc(free / 2 ** 30)} GiB free` };
  } catch (error) {
    return { ok: false, note: error.message, remedy: `make ${dir} writable` };
  }
}

async function attempt(work) {
  try {
    return { value: await work() };
  } catch (error) {
    return { error: `${error.code ?? 'error'}: ${error.message}` };
  }
}
