// Coming from memory-tencentdb: its data beside ours, and its block of settings, taken over as `setup` says.
//
// On a stage of its own. OpenClaw 2026.9 restores its configuration from its own backup, which may be from before the
// grant, when a start finds the file less than half as long as the last good one. To edit a long block in and out of
// a shared stage's file does exactly that.
import fs from 'node:fs';
import path from 'node:path';
import { stage } from '../stage.mjs';

/** No gateway runs here: the commands hold the memory one after the other. */
export async function reference(checks, { tgz, root }) {
  await checks.scenario('commands: coming from memory-tencentdb', async () => {
    const place = await stage({ name: 'reference', line: '24', tgz, root, granted: false });
    try {
      await comesOver(checks, place);
    } finally {
      await place.end();
    }
  });
}

async function comesOver(checks, { host }) {
  const old = path.join(host.stateDir, 'memory-tdai', 'conversations');
  fs.mkdirSync(old, { recursive: true });
  const said = { id: 'msg_1', sessionKey: 'agent:main:old', role: 'user', content: 'My boat is called Halcyon.', timestamp: 1_780_279_384_000 };
  fs.writeFileSync(path.join(old, '2026-06-01.jsonl'), `${JSON.stringify(said)}\n`);
  const block = JSON.parse(fs.readFileSync(new URL('../reference-block.json', import.meta.url), 'utf8'));
  // Endpoints of somebody else's are left out: this block is about the keys.
  Object.assign(block, { llm: { ...block.llm, enabled: false }, embedding: { ...block.embedding, enabled: false } });
  host.editConfig((config) => (config.plugins.entries['memory-tencentdb'] = { enabled: false, config: block }));

  const setup = await host.cli(['strata', 'setup', '--yes', '--json']);
  const offers = parse(setup.stdout)?.offers ?? [];
  checks.that('setup offers the import when their data is there', setup.code === 0 && offers.some(({ kind }) => kind === 'import'), setup);
  const command = offers.find(({ kind }) => kind === 'settings')?.text.match(/openclaw (config set \S+) '(.*)' (--strict-json)$/u);
  checks.that('and the settings when their block is there', command, setup);
  const dry = await host.cli(['strata', 'import', '--from', 'tdai', '--dry-run', '--json']);
  checks.that('a dry run says what would come', dry.code === 0 && parse(dry.stdout)?.lines === 1, dry);
  const real = await host.cli(['strata', 'import', '--from', 'tdai', '--json']);
  const found = await host.cli(['strata', 'search', '--messages', 'Halcyon', '--json']);
  checks.that('the import brings it in', real.code === 0 && found.stdout.includes('Halcyon'), { real, found });

  const set = await host.cli([...command[1].split(' '), command[2], command[3]]);
  const entry = host.readConfig().plugins.entries.strata;
  checks.that('the command that setup names takes the block over', set.code === 0 && entry.config.storeBackend === block.storeBackend, { set, entry });
  checks.that('and leaves the grant', entry.hooks?.allowConversationAccess === true, entry);
  checks.that("and OpenClaw's own consolidation off", entry.config.dreaming?.enabled === false, entry);
  const status = await host.cli(['strata', 'status', '--json']);
  const report = parse(status.stdout);
  checks.that("every key of the reference's block is accepted, and what has no effect is named", report?.unused?.includes('tcvdb') && report.error === null, status);
  checks.that('status still sees the grant', report?.granted === true, status);
  const validation = await host.cli(['config', 'validate']);
  checks.that("OpenClaw's own validation takes it", validation.code === 0, validation);
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
