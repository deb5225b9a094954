// The main job: what is said in one session is in the model's request in another.
import fs from 'node:fs';
import path from 'node:path';
import { acknowledge, callsOn, hostChores, memoryWork } from '../replies.mjs';
import { Ledger, ask, injectedSystem, recalled, stage, status } from '../stage.mjs';

/** What the user says in session 1, and the words by which session 2 asks for it. */
const FACTS = [
  { says: 'My name is Zoltan and I live in Lisbon.', asks: 'In which city do I live?', word: 'Lisbon' },
  { says: 'I prefer the editor font JetBrains Mono.', asks: 'Which editor font do I prefer?', word: 'JetBrains Mono' },
  { says: 'I am allergic to peanuts.', asks: 'What am I allergic to?', word: 'peanuts' },
  { says: 'Always give measurements in metric units.', asks: 'Which units should measurements have?', word: 'metric' },
];

/** Returns a running stage whose user has said the facts; for scenarios that are run without this one. */
export async function acquainted({ line, tgz, root }) {
  const place = await stage({ name: `node${line}`, line, tgz, root });
  answers(place);
  await place.host.start();
  for (const { says } of FACTS) await place.ledger.turn('agent:main:one', says);
  await ask(place.host, 'flush');
  return place;
}

/** The mock's rules, and the ledger of what is said. */
function answers(place) {
  place.ledger = new Ledger(place.host);
  const lookUp = callsOn('look it up', [{ name: 'memory_search', args: { query: 'allergic' } }]);
  place.model.rules.push(memoryWork, hostChores, lookUp, acknowledge);
}

/** Installs, asks for the grant, talks in two sessions, lets the model call tools. Returns the running stage. */
export async function remembers(checks, { line, tgz, root }) {
  const place = await stage({ name: `node${line}`, line, tgz, root, granted: false });
  answers(place);
  await asksForTheGrant(checks, place, { line, tgz });
  await spansSessions(checks, place, line);
  return place;
}

/** The same on a stage that has the grant, without what comes before it: one gateway start, for every run. */
export async function remembersQuickly(checks, place, line) {
  answers(place);
  await checks.scenario(`Node ${line}: gateway`, async () => checks.figure('gateway ready after', `${Math.round(await place.host.start())} s`));
  await spansSessions(checks, place, line);
}

async function asksForTheGrant(checks, { model, host }, { line, tgz }) {
  await checks.scenario(`Node ${line}: install`, async () => {
    checks.that('the package is small', fs.statSync(tgz).size < 4 << 20, `${fs.statSync(tgz).size} bytes`);
    checks.figure('package', `${Math.round(fs.statSync(tgz).size / 1024)} KiB packed`);
    const { slots, entries } = host.readConfig().plugins;
    checks.that(
      'install sets both slots and grants nothing',
      slots?.memory === 'strata' && slots?.contextEngine === 'strata' && entries.strata.hooks === undefined,
      host.readConfig().plugins,
    );
    const refused = await host.cli(['strata', 'setup']);
    checks.that(
      'setup without an answer grants nothing and explains',
      refused.code === 1 && refused.stdout.includes('allowConversationAccess') && host.readConfig().plugins.entries.strata.hooks === undefined,
      refused,
    );
  });

  await checks.scenario(`Node ${line}: without the grant`, async () => {
    checks.figure('gateway ready after', `${Math.round(await host.start())} s`);
    const turn = await host.turn('agent:main:before', 'My name is Nobody and this must not be stored.');
    checks.that('a turn works', turn.status === 200 && turn.text.includes('Noted'), turn.body);
    const request = model.agentRequests('must not be stored').at(-1);
    checks.that('nothing is recalled', recalled(request) === '');
    checks.that('the prompt says that memory is impaired', request.system.includes('<memory-health>'), request.system.slice(-2_000));
    checks.that('the log says what to do', host.log().includes('openclaw strata setup'));
    const report = await status(host);
    checks.that('status says so, and nothing was stored', report.granted === false && report.engine?.messages === 0, report);
    const granted = await host.cli(['strata', 'setup', '--yes']);
    checks.that('setup --yes grants', granted.code === 0 && host.readConfig().plugins.entries.strata.hooks?.allowConversationAccess === true, granted);
    const inspect = await host.cli(['plugins', 'inspect', 'strata', '--runtime', '--json']);
    const { plugin, diagnostics = [], typedHooks = [] } = parse(inspect.stdout);
    checks.that(
      'inspect is clean',
      plugin?.status === 'loaded' && diagnostics.length === 0 && (plugin.diagnostics ?? []).length === 0,
      inspect.stdout.slice(-3_000) + inspect.stderr,
    );
    checks.that(
      'inspect lists the conversation hooks',
      ['before_prompt_build', 'agent_end'].every((hook) => JSON.stringify(typedHooks).includes(hook)),
      typedHooks,
    );
  });

}

async function spansSessions(checks, place, line) {
  const { model, host } = place;
  await checks.scenario(`Node ${line}: session 1 states, session 2 gets`, async () => {
    let attempts = 0;
    await host.until(
      'the reloaded plugin sees the grant',
      async () => {
        await place.ledger.turn('agent:main:warm', `Is the memory there yet? Attempt ${(attempts += 1)}.`);
        return !injectedSystem(model.requests.filter((r) => r.kind === 'agent').at(-1)).includes('not granted');
      },
      120_000,
    );
    for (const { says } of FACTS) checks.that(`said: ${says}`, (await place.ledger.turn('agent:main:one', says)).status === 200);
    const report = await host.until(
      'all is distilled',
      async () => {
        // A session's end makes its last turns due; here nobody waits ten quiet minutes for them.
        await ask(host, 'flush');
        const now = await ask(host, 'status');
        return (now.atoms ?? 0) >= FACTS.length ? now : undefined;
      },
      120_000,
    );
    checks.figure('after session 1', `${report.messages} messages, ${report.atoms} atoms`);
    const systems = [];
    for (const { asks, word } of FACTS) {
      await place.ledger.turn('agent:main:two', asks);
      const request = model.agentRequests(asks).at(-1);
      checks.that(
        `session 2's request holds "${word}" before the user's words`,
        recalled(request).includes(word) && request.lastUser.indexOf('</relevant-memories>') < request.lastUser.indexOf(asks),
        request.lastUser,
      );
      systems.push(injectedSystem(request));
    }
    checks.that(
      'the stable part is at the end of the system prompt and byte-identical over the turns',
      systems[0].includes('memory') && new Set(systems).size === 1,
      systems,
    );
    checks.that(
      'history holds no recalled memories',
      !model.requests
        .at(-1)
        .users.slice(0, -2)
        .some((text) => text.includes('<relevant-memories>')),
      model.requests.at(-1).users,
    );
  });

  await checks.scenario(`Node ${line}: tools`, async () => {
    await place.ledger.turn('agent:main:tools', 'Please look it up.');
    const requests = model.requests.filter((r) => r.kind === 'agent' && r.toolResults.length > 0);
    checks.that(
      "our tools are in the model's list, not behind tool search",
      requests.at(-1)?.tools.includes('memory_search') && requests.at(-1)?.tools.includes('conversation_search'),
      requests.at(-1)?.tools,
    );
    checks.that('a search by the model finds the fact', requests.at(-1)?.toolResults.join('\n').includes('peanuts'), requests.at(-1)?.toolResults);
  });

  await checks.scenario(`Node ${line}: exactly once`, async () => {
    const result = await place.ledger.compare();
    checks.that('every message is stored exactly once', result.ok, result);
    checks.figure('messages', result.messages);
    const files = fs.readdirSync(path.join(host.stateDir, 'strata'));
    checks.that("state is under OpenClaw's state directory", files.includes('memory'), files);
  });
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
