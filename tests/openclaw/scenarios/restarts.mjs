// Reload, restart and kill in mid-work: nothing that OpenClaw stored is lost or stored twice.
import { ask, recalled } from '../stage.mjs';

/** Long enough for the signal to come in the middle of the turn. */
const SLOW_MS = 6_000;
const MID_TURN_MS = 2_500;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs on the stage of `remembers`. */
export async function restarts(checks, { host, model, ledger }) {
  model.rules.unshift((r) => (r.kind === 'agent' && r.question.includes('take your time') ? { text: 'Done slowly.', delayMs: SLOW_MS } : undefined));
  const slow = (n) => `Please take your time with number ${n}.`;

  await checks.scenario('hot reload in mid-turn', async () => {
    const turn = host.turn('agent:main:reload', slow(1));
    await pause(MID_TURN_MS);
    const reload = await host.cli(['plugins', 'reload', 'strata']);
    checks.that('the plugin reloads', reload.code === 0, reload);
    const answer = await turn;
    checks.that('the turn ends as if nothing had happened', answer.status === 200 && answer.text.includes('Done slowly'), answer.body);
    ledger.note(slow(1), 1);
    await ledger.turn('agent:main:reload', 'I play the viola in an amateur quartet.');
    await compared(checks, ledger, 'nothing is lost or doubled by a reload');
  });

  for (const [signal, n] of [
    ['SIGTERM', 2],
    ['SIGKILL', 3],
  ]) {
    await checks.scenario(`gateway ended by ${signal} in mid-turn`, async () => {
      await ledger.turn('agent:main:ends', `Before number ${n} I bought a red bicycle in Porto.`);
      const turn = host.turn('agent:main:ends', slow(n)).catch((error) => ({ status: 0, error }));
      await pause(MID_TURN_MS);
      await host.stop(signal);
      const answer = await turn;
      checks.figure('the turn', answer.status === 200 ? 'was finished first' : 'was cut off');
      checks.figure('gateway ready again after', `${Math.round(await host.start())} s`);
      // OpenClaw stores the user's message when the run has begun; what it stored must be there.
      if (await mentions(host, slow(n))) ledger.note(slow(n), answer.status === 200 ? 1 : undefined);
      const after = await ledger.turn('agent:main:ends', `After number ${n}: which bicycle did I buy in Porto?`);
      checks.that('the next turn works', after.status === 200, after.body);
      checks.that(
        'and gets what was said before',
        recalled(model.agentRequests(`After number ${n}: which bicycle`).at(-1)).includes('bicycle'),
        model.agentRequests(`After number ${n}`).at(-1)?.lastUser,
      );
      await compared(checks, ledger, `nothing is lost or doubled by ${signal}`);
      const status = await ask(host, 'status');
      checks.that('the engine reports no damage', !JSON.stringify(status).includes('corrupt'), status);
    });
  }

  await checks.scenario('a second OpenClaw process on the same data', async () => {
    const run = await host.cli(['agent', '--local', '--agent', 'main', '--message', 'From the second process: my cat is called Mirza.', '--json']);
    checks.that('openclaw agent --local works beside the gateway', run.code === 0 && run.stdout.includes('Noted'), run.stderr.slice(-1_500));
    checks.that('no second engine was opened', !/cannot be opened/u.test(run.stderr + run.stdout), run.stderr.slice(-1_500));
    ledger.note('From the second process: my cat is called Mirza.', 1);
    await compared(checks, ledger, "what it said is stored once, by the gateway's engine");
  });
}

async function compared(checks, ledger, name) {
  const result = await ledger.compare();
  checks.that(name, result.ok, result);
}

/** Whether OpenClaw's own transcript has a user message with this text. */
async function mentions(host, text) {
  const history = await host.cli(['gateway', 'call', 'chat.history', '--params', JSON.stringify({ sessionKey: 'agent:main:ends', limit: 50 }), '--json']);
  return history.stdout.includes(text);
}
