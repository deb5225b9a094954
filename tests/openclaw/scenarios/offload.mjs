// A long task: twenty tool results, then the next turn without their bulk and with a way back to each.
import fs from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { textOf } from '../mock-model.mjs';
import { rowsOf } from '../stage.mjs';

const FILES = 20;
/** Files of a task whose results are most of the next request and still fit, so that the model's count says something about them. */
const FEW_FILES = 8;
/** Characters a token of a model that counts more than the engine estimates. */
const DENSE_CHARS = 3.5;
/** Together more than half of the mock's window, so that the engine has a reason to replace results. */
const FILE_BYTES = 16_000;

const name = (n) => `survey-${String(n).padStart(2, '0')}.txt`;
const needle = (n) => `needle-${n}-${(n * 7_919) % 10_007}`;

/** Runs the task in a session of its own on the running stage. */
export async function offload(checks, { host, model, ledger }) {
  for (let n = 1; n <= FILES; n += 1) {
    const filler = `Line of file ${n} about the quarterly survey, with words that nobody needs.\n`.repeat(Math.ceil(FILE_BYTES / 150));
    fs.writeFileSync(path.join(host.workspace, name(n)), `${filler}${needle(n)}\n${filler}`);
  }
  model.rules.unshift(
    (r) =>
      r.kind === 'agent' && r.question.includes('Survey the twenty files')
        ? r.toolCount < FILES
          ? { calls: [{ name: 'read', args: { path: name(r.toolCount + 1) } }] }
          : { text: 'Surveyed.' }
        : undefined,
    (r) => (r.kind === 'agent' && r.question.includes('Which needle is in file 7') ? drillDown(r) : undefined),
    (r) => (r.kind === 'agent' && /Skim the first files|How many did you skim/u.test(r.question) ? { ...skim(r), usage: denseUsage(r) } : undefined),
  );

  await checks.scenario('offload: a task of twenty tool calls', async () => {
    const turn = await ledger.turn('agent:main:survey', 'Survey the twenty files in the workspace, one after the other.');
    checks.that('the task ends', turn.text.includes('Surveyed'), turn.body);
    checks.that('every result is stored whole', stored(host).length === FILES, stored(host));

    await ledger.turn('agent:main:survey', 'Which needle is in file 7? Look it up.');
    const requests = model.requests.filter((r) => r.kind === 'agent' && r.question.includes('Which needle is in file 7'));
    const first = requests[0];
    const tools = first.body.messages.filter((m) => m.role === 'tool').map((m) => textOf(m.content));
    const replaced = tools.filter((text) => text.startsWith('[Offloaded Tool Result'));
    const before = FILES * FILE_BYTES;
    const size = JSON.stringify(first.body.messages).length;
    checks.that(
      'results of the earlier turn are placeholders',
      replaced.length >= 10,
      tools.map((text) => text.slice(0, 200)),
    );
    checks.that(
      'the canvas is in the request',
      first.body.messages.some((m) => textOf(m.content).includes('flowchart')),
      first.users.map((text) => text.slice(0, 300)),
    );
    checks.figure(
      'placeholders',
      `${replaced.length} of ${tools.length} results; request ${Math.round(size / 1024)} KiB instead of over ${Math.round(before / 1024)} KiB`,
    );
    const answers = requests.flatMap((r) => r.toolResults);
    checks.that(
      'the model drills down by tool to the exact bytes',
      answers.join('\n').includes(needle(7)),
      answers.map((text) => text.slice(0, 400)),
    );
    checks.that(
      'nothing was answered that the mock was not told of',
      model.unexpected.length === 0,
      model.unexpected.map((r) => r.system.slice(0, 200) + r.lastUser.slice(0, 200)),
    );
  });

  await checks.scenario("offload: the model's own count of tokens", async () => {
    await ledger.turn('agent:main:skim', 'Skim the first files, please.');
    await ledger.turn('agent:main:skim', 'How many did you skim?');
    const [row] = await host.until(
      'the count has arrived',
      async () => {
        const rows = rowsOf(host, 'SELECT model, reported_tokens AS reported, estimated_tokens AS estimated FROM offload_calibration');
        return rows.length ? rows : undefined;
      },
      30_000,
    );
    checks.figure('calibration', `${row.model}: the model counted ${row.reported} where the engine estimates ${row.estimated}`);
    checks.that('usage that OpenClaw reports calibrates the estimate', row.reported > row.estimated, row);
  });
}

function skim({ question, toolCount }) {
  return question.includes('Skim') && toolCount < FEW_FILES ? { calls: [{ name: 'read', args: { path: name(toolCount + 1) } }] } : { text: 'Skimmed.' };
}

/** The count of a model that needs more tokens for the same text than most. */
function denseUsage({ body }) {
  return { prompt_tokens: Math.ceil(JSON.stringify([body.messages, body.tools]).length / DENSE_CHARS), completion_tokens: 10 };
}

/** A model that follows the placeholder of file 7: the ref that it names is given to the tool that reads refs. */
function drillDown(request) {
  const placeholder = request.body.messages
    .filter((m) => m.role === 'tool')
    .map((m) => textOf(m.content))
    .find((text) => text.startsWith('[Offloaded Tool Result') && text.includes(name(7)));
  const ref = /refs\/[0-9a-f]+\.md/u.exec(placeholder ?? '')?.[0];
  if (!ref) return { text: 'There is no way back.' };
  return request.toolCount > 0 ? { text: 'Found it.' } : { calls: [{ name: 'ref_read', args: { ref, grep: 'needle' } }] };
}

/** Numbers of the files whose whole text lies in the refs. */
function stored(host) {
  const dir = path.join(host.stateDir, 'strata', 'memory', 'refs');
  const files = fs.existsSync(dir) ? fs.readdirSync(dir, { recursive: true }).map((file) => path.join(dir, file)) : [];
  const contents = files
    .filter((file) => fs.statSync(file).isFile())
    .map((file) => (file.endsWith('.gz') ? gunzipSync(fs.readFileSync(file)) : fs.readFileSync(file)).toString('utf8'));
  return Array.from({ length: FILES }, (_, n) => n + 1).filter((n) => contents.some((content) => content.includes(needle(n))));
}
