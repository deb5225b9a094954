// Who is remembered: sessions that are left alone, and conversations that have a memory of their own.
import { ask, recalled, rowsOf } from '../stage.mjs';

/** Sessions that no person's own conversation runs in, and one that asked to leave no trace. */
const LEFT_ALONE = ['agent:main:cron:nightly', 'agent:main:subagent:helper', 'agent:main:dashboard:incognito-1'];
const GROUP = 'agent:main:telegram:group:-5';

/** Runs on the stage of `remembers`; what is said while a rule arrives may be stored or not, so nothing is counted after it. */
export async function rules(checks, { host, model, ledger }) {
  const stored = (words) => rowsOf(host, `SELECT count(*) AS n FROM messages WHERE text LIKE '%${words}%'`)[0].n;

  await checks.scenario('rules: what is left alone without being asked', async () => {
    const taken = [];
    for (const [n, session] of LEFT_ALONE.entries()) {
      const turn = await host.turn(session, `My secret word number ${n} is Quetzal.`);
      if (turn.status === 200) taken.push(session);
    }
    checks.figure('sessions that OpenClaw ran', taken.join(', ') || 'none');
    const marker = 'After the sessions that are left alone: I like Porto.';
    await ledger.turn('agent:main:rules', marker);
    await host.until('the turn after them is stored', () => stored(marker) === 1, 60_000);
    checks.that('cron, subagents and incognito sessions are not stored', taken.length > 0 && stored('Quetzal') === 0, taken);
    const requests = model.requests.filter((r) => r.kind === 'agent' && r.question.includes('Quetzal'));
    checks.that('and get no memories', requests.length > 0 && requests.every((r) => recalled(r) === ''));
  });

  await checks.scenario('rules: a group has a memory of its own', async () => {
    const said = 'In this group we call the project Nightingale.';
    await ledger.turn(GROUP, said);
    await host.until('it is stored', () => stored(said) === 1, 60_000);
    const [row] = rowsOf(host, `SELECT scopes.user FROM messages JOIN scopes ON scopes.id = messages.scope WHERE text = '${said}'`);
    checks.that('it belongs to the group', row.user === 'telegram:group:-5', row);
    await ask(host, 'flush');
    await ledger.turn('agent:main:rules', 'What do we call the project?');
    const request = model.agentRequests('What do we call the project?').at(-1);
    checks.that('and is not told elsewhere', !recalled(request).includes('Nightingale'), request.lastUser);
  });

  for (const [name, rule, session] of [
    ['chat type', { excludeChatTypes: ['group'] }, GROUP],
    ['agent', { excludeAgents: ['ma*'] }, 'agent:main:rules'],
  ]) {
    await checks.scenario(`rules: a ${name} that the user leaves out`, async () => {
      await withCapture(host, rule, async () => {
        // The change has arrived when a prompt of the session gets nothing any more.
        const silent = await arrives(host, model, session);
        checks.that('gets no memories', silent !== undefined);
        const said = `Left out by ${name}: the parrot is called Ultramarine.`;
        await host.turn(session, said);
        checks.that('is not stored', stored(said) === 0);
      });
      await host.until('the rule is gone', async () => {
        const text = `I like it that the ${name} rule is gone, attempt ${attempt()}.`;
        await ledger.turn('agent:main:rules', text);
        return host.until('stored', () => stored(text) === 1, 5_000).catch(() => undefined);
      });
      checks.that('what was said meanwhile stays out', stored('Ultramarine') === 0);
    });
  }
}

let attempts = 0;
function attempt() {
  attempts += 1;
  return attempts;
}

async function withCapture(host, rule, work) {
  const change = (apply) => host.changeConfig((config) => apply(config.plugins.entries.strata));
  await change((entry) => (entry.config = { ...entry.config, capture: { ...entry.config?.capture, ...rule } }));
  try {
    await work();
  } finally {
    await change((entry) => {
      for (const key of Object.keys(rule)) delete entry.config.capture[key];
    });
  }
}

/** Asks in a session until its prompt gets nothing from memory, and returns that request. */
async function arrives(host, model, session) {
  return host.until(
    'the rule has arrived',
    async () => {
      const text = `Is the rule there? Attempt ${attempt()}.`;
      await host.turn(session, text);
      const request = model.agentRequests(text).at(-1);
      return request && !request.system.includes('memory-tools-guide') && recalled(request) === '' ? request : undefined;
    },
    120_000,
  );
}
