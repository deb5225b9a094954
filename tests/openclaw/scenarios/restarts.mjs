// Reload, restart and kill in mid-work: nothing that OpenClaw stored is lost or stored twice.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { memoryWork, purposeOf } from '../replies.mjs';
import { ask, recalled } from '../stage.mjs';

/** Long enough for the signal to come in the middle of the turn. */
const SLOW_MS = 6_000;
const MID_TURN_MS = 2_500;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs on the stage of `remembers`. */
export async function restarts(checks, { host, model, ledger }) {
  model.rules.unshift((r) => (r.kind === 'agent' && r.question.includes('take your time') ? { text: 'Done slowly.', delayMs: SLOW_MS } : undefined));
  const slow = (n) => `Please take your time with number ${n}.`;

  await checks.scenario('hot reload in mid-work', async () => {
    let slowModel = true;
    model.rules.unshift((r) => (slowModel && purposeOf(r) === 'l1-extract' ? { ...memoryWork(r), delayMs: 60_000 } : undefined));
    const before = (await ask(host, 'status')).atoms;
    await ledger.turn('agent:main:reload', 'I have a viola from 1890.');
    await host.until('a model request is in flight', async () => (await ask(host, 'status')).waiting.requests.length > 0, 30_000);
    slowModel = false;
    const turn = host.turn('agent:main:reload', slow(1));
    await pause(MID_TURN_MS);
    // OpenClaw does not replace a plugin whose turn is under way, and says so; it is asked again until it does.
    let refusals = 0;
    const reload = await host.until(
      'the plugin is reloaded',
      async () => {
        const run = await host.cli(['plugins', 'reload', 'strata']);
        if (run.code === 0) return run;
        if (!run.stderr.includes('active retained work')) throw new Error(run.stderr);
        refusals += 1;
        return undefined;
      },
      300_000,
    );
    checks.that('the plugin reloads', reload.code === 0, reload);
    checks.figure('refused while the turn was under way', refusals);
    const answer = await turn;
    checks.that('the turn ends as if nothing had happened', answer.status === 200 && answer.text.includes('Done slowly'), answer.body);
    ledger.note(slow(1), 1);
    await compared(checks, ledger, 'no message is lost or doubled by a reload');
    await host.until('the request that was in flight is asked again', async () => (await ask(host, 'status')).atoms > before, 60_000);
    checks.that('memory work in flight is made up', true);
  });

  for (const [signal, n] of [
    ['SIGTERM', 2],
    ['SIGKILL', 3],
  ]) {
    await checks.scenario(`gateway ended by ${signal} in mid-turn`, async () => {
      const session = `agent:main:ends-${n}`;
      await ledger.turn(session, `I have bought bicycle number ${n} in Porto.`);
      const turn = host.turn(session, slow(n)).catch((error) => ({ status: 0, error }));
      await pause(MID_TURN_MS);
      await host.stop(signal);
      const answer = await turn;
      checks.figure('the turn', answer.status === 200 ? 'was finished first' : 'was cut off');
      checks.figure('gateway ready again after', `${Math.round(await host.start())} s`);
      // OpenClaw stores the user's message when the run has begun; what it stored must be there.
      if (await mentions(host, session, slow(n))) ledger.note(slow(n), answer.status === 200 ? 1 : undefined);
      const question = `After number ${n}: which bicycle have I bought in Porto?`;
      // Right after a crash OpenClaw itself resumes the session, and tells a turn that comes in between to come again.
      const after = await host.until(
        'the session takes turns again',
        async () => {
          const turn = await host.turn(session, question);
          return turn.status === 200 ? turn : undefined;
        },
        120_000,
      );
      ledger.note(question, 1);
      checks.that('the next turn works', after.status === 200, after.body);
      const request = model.agentRequests(question).at(-1);
      checks.that('and gets what was said before', recalled(request).includes('bicycle'), request.lastUser);
      await compared(checks, ledger, `nothing is lost or doubled by ${signal}`);
      const status = await ask(host, 'status');
      checks.that('the engine reports no damage', !JSON.stringify(status).includes('corrupt'), status);
    });
  }
}

/** What other processes on the same directory see and do. */
export async function processes(checks, { host, model, ledger }) {
  await checks.scenario('other processes on the same data', async () => {
    const search = await host.cli(['strata', 'search', 'peanuts', '--json']);
    checks.that('a command works through the gateway that holds the memory', search.code === 0 && search.stdout.includes('peanuts'), search);
    await host.stop();
    const holder = await holdDirectory(host);
    try {
      await host.start();
      const text = 'While somebody else holds the directory: my cat is called Mirza.';
      const turn = await host.turn('agent:main:held', text);
      checks.that('a turn works while a foreign process holds the directory', turn.status === 200, turn.body);
      const request = model.agentRequests(text).at(-1);
      checks.that(
        'the prompt says that memory is impaired',
        request.system.includes('<memory-health>') && request.system.includes('busy'),
        request.system.slice(-1_500),
      );
      const status = await host.cli(['strata', 'status']);
      checks.that('status says who is in', status.code === 1 && status.stdout.includes('busy'), status);
      ledger.note(text, 1);
    } finally {
      holder.kill('SIGKILL');
    }
    await ledger.turn('agent:main:held', 'Is the memory back now?');
    await host.until('the gateway takes the directory over', async () => ask(host, 'status').catch(() => undefined), 60_000);
    await ledger.turn('agent:main:held', 'And what is stored now?');
    await compared(checks, ledger, 'what was said meanwhile waited in the transcript and is stored once');
  });
}

/** Opens the gateway's directory in another process through the plain Node package, which offers no socket. */
async function holdDirectory(host) {
  const script = `
    const { openMemory } = await import(process.argv[1]);
    await openMemory({ dir: process.argv[2] });
    process.send('in');
    setInterval(() => {}, 1000);`;
  const entry = new URL('../../../js-shim/src/index.js', import.meta.url).href;
  const child = spawn(path.join(host.nodeBin, 'node'), ['--input-type=module', '-e', script, entry, path.join(host.stateDir, 'strata', 'memory')], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  await new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`the holder ended with ${code}`)));
  });
  return child;
}

async function compared(checks, ledger, name) {
  const result = await ledger.compare();
  checks.that(name, result.ok, result);
}

/** Whether OpenClaw's own transcript has a user message with this text. */
async function mentions(host, sessionKey, text) {
  const history = await host.cli(['gateway', 'call', 'chat.history', '--params', JSON.stringify({ sessionKey, limit: 50 }), '--json']);
  return history.stdout.includes(text);
}
