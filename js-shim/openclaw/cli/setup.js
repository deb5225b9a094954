// `openclaw strata setup`: explains what is asked for, asks, and writes exactly that.
import { createInterface } from 'node:readline/promises';
import { referenceDirectory } from '../reference.js';
import { PLUGIN_ID, REFERENCE_PLUGIN_ID } from '../settings.js';
import { hasConversationGrant, ownsMemorySlot } from '../slots.js';
import { stateDir } from '../state-dir.js';
import { print } from './print.js';

const EXPLANATION = `Strata remembers conversations. For that OpenClaw must let it see them:

  plugins.entries.${PLUGIN_ID}.hooks.allowConversationAccess = true

With this grant Strata
  - reads the messages of your sessions after each turn and stores them on this machine only;
  - adds what is relevant from earlier sessions to the prompt of the next turn;
  - asks the model that OpenClaw is configured with to distil memories (no key and no service of its own).
Left alone: incognito sessions, scheduled and heartbeat runs, subagents, and what capture.exclude* names.
Without it Strata stores and recalls nothing; its tools can still search what is there.
Take it back with: openclaw config set plugins.entries.${PLUGIN_ID}.hooks.allowConversationAccess false --strict-json
`;

/** Adds the command to `root`. */
export function setupCommand(root, host) {
  root
    .command('setup')
    .description('explain and ask for what Strata needs; nothing is granted silently')
    .option('--yes', 'grant without asking')
    .option('--no-offload', 'leave the context-engine slot to OpenClaw')
    .option('--json', 'print what was done as JSON')
    .action((options) => setup(host, options));
}

async function setup({ api, config: current }, options) {
  const say = options.json ? () => undefined : (line) => print(line);
  const config = current();
  const done = { granted: hasConversationGrant(config), changes: [], offers: [] };
  const wanted = plannedChanges(config, options);
  if (!done.granted) say(EXPLANATION);
  for (const { why } of wanted.filter((change) => change.why)) say(`- ${why}`);
  if (wanted.length === 0) say('Everything that Strata needs is already granted.');
  else if (options.yes || (await ask('Grant this now? [y/N] '))) {
    await api.runtime.config.mutateConfigFile({
      afterWrite: { mode: 'auto' },
      mutate: (draft) => {
        for (const { apply } of wanted) apply(draft);
      },
    });
    done.granted = true;
    done.changes = wanted.map(({ key }) => key);
    say('Done. A running gateway picks it up by itself.');
  } else {
    say('Nothing was changed. To grant it later: openclaw strata setup --yes');
    process.exitCode = 1;
  }
  for (const offer of offers(config, stateDir(api))) {
    done.offers.push(offer);
    say(offer.text);
  }
  if (options.json) print(JSON.stringify(done));
}

function plannedChanges(config, options) {
  const changes = [];
  const entry = (draft) => {
    draft.plugins ??= {};
    draft.plugins.entries ??= {};
    return (draft.plugins.entries[PLUGIN_ID] ??= {});
  };
  const slots = (draft) => {
    draft.plugins ??= {};
    return (draft.plugins.slots ??= {});
  };
  if (!hasConversationGrant(config)) {
    changes.push({
      key: `plugins.entries.${PLUGIN_ID}.hooks.allowConversationAccess`,
      apply: (draft) => {
        const target = entry(draft);
        target.enabled = true;
        target.hooks = { ...target.hooks, allowConversationAccess: true };
      },
    });
  }
  if (!ownsMemorySlot(config)) {
    const owner = config?.plugins?.slots?.memory;
    // A slot that somebody chose is theirs; only an empty one is filled.
    if (!owner)
      changes.push({
        key: 'plugins.slots.memory',
        why: 'take the memory slot, so that two memories do not answer side by side',
        apply: (draft) => (slots(draft).memory = PLUGIN_ID),
      });
  }
  if (config?.plugins?.entries?.[PLUGIN_ID]?.config?.dreaming?.enabled === undefined && (ownsMemorySlot(config) || !config?.plugins?.slots?.memory)) {
    changes.push({
      key: `plugins.entries.${PLUGIN_ID}.config.dreaming.enabled`,
      why: "switch off OpenClaw's own nightly consolidation (dreaming), which would load its memory beside this one",
      apply: (draft) => {
        const target = entry(draft);
        target.config = { ...target.config, dreaming: { ...target.config?.dreaming, enabled: false } };
      },
    });
  }
  if (options.offload !== false && !config?.plugins?.slots?.contextEngine) {
    changes.push({
      key: 'plugins.slots.contextEngine',
      why: 'take the context-engine slot, so that old tool results can leave the prompt',
      apply: (draft) => (slots(draft).contextEngine = PLUGIN_ID),
    });
  }
  return changes;
}

/** What else could be useful here: data and settings of the reference system. */
function offers(config, state) {
  const out = [];
  const directory = referenceDirectory(state);
  if (directory)
    out.push({ kind: 'import', directory, text: `Found memories of memory-tencentdb in ${directory}. To bring them in: openclaw strata import --from tdai` });
  const block = config?.plugins?.entries?.[REFERENCE_PLUGIN_ID];
  // What setup itself has written there, now or earlier, is no choice of the user's.
  const chosen = Object.keys(config?.plugins?.entries?.[PLUGIN_ID]?.config ?? {}).filter((key) => key !== 'dreaming');
  if (block?.config && chosen.length === 0) {
    // The command replaces the whole block, so it carries along what setup itself writes there. It is pasted into a shell.
    const taken = { ...redacted(block.config), dreaming: { ...block.config.dreaming, enabled: false } };
    out.push({
      kind: 'settings',
      text: `Found settings of ${REFERENCE_PLUGIN_ID}; Strata takes the same keys. To use them: openclaw config set plugins.entries.${PLUGIN_ID}.config '${JSON.stringify(taken).replaceAll("'", '\\u0027')}' --strict-json`,
    });
  }
  if (block && block.enabled !== false)
    out.push({
      kind: 'conflict',
      text: `${REFERENCE_PLUGIN_ID} is enabled too, and both would write into the prompt. To switch it off: openclaw plugins disable ${REFERENCE_PLUGIN_ID}`,
    });
  return out;
}

function redacted(value) {
  if (Array.isArray(value)) return value.map(redacted);
  if (!value || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, /key|secret|token/iu.test(key) && typeof inner === 'string' ? '<your key>' : redacted(inner)]),
  );
}

async function ask(question) {
  if (!process.stdin.isTTY) {
    print('This is not a terminal, so nothing is granted. Run `openclaw strata setup --yes` if you agree.');
    return false;
  }
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/iu.test((await lines.question(question)).trim());
  } finally {
    lines.close();
  }
}
