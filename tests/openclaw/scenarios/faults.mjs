// What goes wrong outside, and what a user sees of it.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { purposeOf } from '../replies.mjs';
import { ask, askAt, injectedSystem, recalled, status } from '../stage.mjs';

/** The engine's pauses after failures grow to minutes; a model that is down for some seconds is asked again within this. */
const BACK_OFF_PATIENCE_MS = 180_000;

/** Runs on the stage of `remembers`. */
export async function faults(checks, place) {
  const { host, model, ledger } = place;

  await checks.scenario('a failing model', async () => {
    let failing = true;
    model.rules.unshift((r) => (failing && purposeOf(r) ? { status: 503, body: { error: { message: 'model down' } } } : undefined));
    const before = (await ask(host, 'status')).atoms;
    const turn = await ledger.turn('agent:main:down', 'My dentist is called Doctor Okafor.');
    checks.that('turns go on', turn.status === 200, turn.body);
    await ask(host, 'flush');
    const [health] = await host.until(
      'the failure is reported',
      async () => {
        const reports = (await ask(host, 'pluginHealth')).filter(({ features }) => features.model && !features.model.ok);
        return reports.length ? reports : undefined;
      },
      60_000,
    );
    checks.that('status names the failure', health.features.model.note.includes('gave no answer'), health.features.model);
    const refusals = model.requests.filter((r) => purposeOf(r)).length;
    failing = false;
    // The engine's own clock asks again, long after the turn is over: OpenClaw refuses calls from a context that has
    // ended ("Async work scope is closed"). No turn, hook or command runs meanwhile.
    const after = await host.until(
      'the message is distilled after all',
      async () => {
        const now = await ask(host, 'status');
        return now.atoms > before ? now : undefined;
      },
      BACK_OFF_PATIENCE_MS,
    );
    checks.that('the engine asks again by itself when the model is back, and nothing was lost', true);
    checks.figure('model requests in vain', refusals);
    checks.that('no call was refused for where it came from', !JSON.stringify(after).includes('scope is closed') && !host.log().includes('scope is closed'));
  });

  await checks.scenario('the memory slot belongs to another plugin', async () => {
    await host.changeConfig((config) => (config.plugins.slots.memory = 'memory-core'));
    const request = await turnUntil(place, 'Which city do I live in, again?', (r) => r.tools.length > 0 && !r.tools.includes('conversation_search'));
    checks.that('recall works without the slot', recalled(request).includes('Lisbon'), request.lastUser);
    checks.that(
      'our tools have names of their own',
      request.tools.some((name) => name.startsWith('strata_')),
      request.tools,
    );
    const report = await status(host);
    checks.that(
      'status says who has the slot',
      report.features['memory-slot']?.ok === false && report.features['memory-slot'].note.includes('memory-core'),
      report.features,
    );
    await host.changeConfig((config) => (config.plugins.slots.memory = 'strata'));
  });

  await checks.scenario('the context-engine slot is refused', async () => {
    await host.changeConfig((config) => (config.plugins.slots.contextEngine = 'legacy'));
    const request = await turnUntil(place, 'Am I allergic to anything?', (r) => recalled(r) !== '');
    checks.that('capture and recall go on', recalled(request).includes('peanuts'), request.lastUser);
    const report = await status(host);
    checks.that(
      'status says what does not work',
      report.features['context-engine']?.ok === false && report.features['context-engine'].note.includes('stay in the prompt'),
      report.features,
    );
    await host.changeConfig((config) => (config.plugins.slots.contextEngine = 'strata'));
  });

  await fullDisk(checks, place);
}

/** The last of everything: takes the plugin away. */
export async function uninstall(checks, { host }) {
  await checks.scenario('uninstall', async () => {
    const removal = await host.cli(['plugins', 'uninstall', 'strata', '--force']);
    checks.that('uninstall works', removal.code === 0, removal);
    const data = path.join(host.stateDir, 'strata', 'memory');
    checks.that(
      'the memory is left',
      fs.readdirSync(data).some((name) => name.endsWith('.db')),
      fs.readdirSync(path.join(host.stateDir, 'strata')),
    );
    checks.that('and it says where', (removal.stdout + removal.stderr + host.log()).includes(data), removal.stdout + removal.stderr);
  });
}

async function fullDisk(checks, place) {
  const { host, model } = place;
  const small = path.join(host.dir, 'small');
  fs.mkdirSync(small);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', small]).status !== 0) {
    checks.skip('a full disk', 'a small file system needs root; run as root to see it');
    return;
  }
  await checks.scenario('a full disk', async () => {
    await host.changeConfig((config) => (config.plugins.entries.strata.config = { ...config.plugins.entries.strata.config, dataDir: small }));
    await turnUntil(place, 'Is the small disk in use?', () => fs.existsSync(path.join(small, 'memory')), { counted: false });
    const filler = path.join(small, 'filler');
    fill(filler);
    const turn = await host.turn('agent:main:full', 'My favourite number is forty-two.');
    checks.that('turns go on', turn.status === 200, turn.body);
    const [report] = await host.until(
      'the fault is reported',
      async () => {
        const bad = (await askAt(small, 'pluginHealth')).filter(({ features }) => features.capture && !features.capture.ok);
        return bad.length ? bad : undefined;
      },
      30_000,
    );
    checks.that('status names it', report.features.capture.note.startsWith('storage-full'), report.features);
    await host.turn('agent:main:full', 'What is my favourite number?');
    checks.that(
      'the prompt tells the model not to promise anything',
      injectedSystem(model.agentRequests('What is my favourite number?').at(-1)).includes('<memory-health>'),
    );
    fs.rmSync(filler);
    await host.turn('agent:main:full', 'There is room again.');
    const rows = await host.until(
      'what waited is stored',
      async () => {
        const page = await askAt(small, 'browse', 'messages', { ids: [] }, undefined, 100);
        return page.items.some(({ text }) => text.includes('There is room again')) ? page.items : undefined;
      },
      60_000,
    );
    checks.that('what was said on the full disk is there, once', rows.filter(({ text }) => text.includes('favourite number is forty-two')).length === 1, rows);
  });
  await host.changeConfig((config) => delete config.plugins.entries.strata.config.dataDir);
  spawnSync('umount', ['-l', small]);
}

/** Writes until the disk is full. */
function fill(file) {
  const fd = fs.openSync(file, 'w');
  try {
    for (;;) fs.writeSync(fd, Buffer.alloc(4_096));
  } catch (error) {
    if (error.code !== 'ENOSPC') throw error;
  } finally {
    fs.closeSync(fd);
  }
}

/** Says `text` until a request shows that the change has arrived, and returns that request. */
async function turnUntil({ host, model, ledger }, text, arrived, { counted = true } = {}) {
  let attempt = 0;
  return host.until(
    'the change has arrived',
    async () => {
      const words = `${text} (${(attempt += 1)})`;
      const turn = counted ? await ledger.turn('agent:main:changed', words) : await host.turn('agent:main:changed', words);
      const request = model.agentRequests(words).at(-1);
      return turn.status === 200 && request && arrived(request) ? request : undefined;
    },
    120_000,
  );
}
