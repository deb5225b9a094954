/** Every canvas of a space is a flowchart to the real mermaid, whatever words its task and tools used. */

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { JSDOM } from 'jsdom';
import { openMemory } from '../../js-shim/src/index.js';

// Mermaid sanitizes labels with the DOM of a browser.
const { window } = new JSDOM('<!doctype html><body></body>');
globalThis.window = window;
globalThis.document = window.document;
const { default: mermaid } = await import('mermaid');

const GOALS = [
  'Fix "quoted" <b>goal</b>; {braces} [brackets] (parens) %% comment #hash `code` \\ back | pipe & amp',
  '修复解析器：让“嵌套”测试通过',
  'end subgraph graph click style linkStyle classDef default',
  '--> --- -.-> ==> o--o x--x @{ shape: rect } ::: :::class',
];
const OUTPUTS = [
  'test result: FAILED. 1 passed; 2 failed; 0 ignored\ntest a::b ... FAILED\n',
  '{"error": "end", "items": [1, 2, 3]}',
  '<html><title>x --> y</title></html>',
  'src/a.rs:1: end\nsrc/b.rs:2: subgraph "q"\n',
  '%%{init: {"theme":"dark"}}%%\nflowchart TD\n a-->b\n',
  '',
];
const COMMANDS = ['cargo test', 'curl -s https://example.org/"x"', 'rg "end" src/', 'sed -i s/a/b/ src/[x].rs', 'git commit -m "end; {x}"', 'echo `date`; kubectl get pods'];

test('canvases parse, folded and whole', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'strata-mermaid-'));
  const scope = { session: 'draw' };
  const memory = await openMemory({ dir, scope });
  let at = 1_780_000_000_000;
  for (let call = 0; call < 160; call += 1) {
    at += 1000;
    if (call % 40 === 0) {
      await memory.beforePromptBuild({ prompt: `New task: ${GOALS[(call / 40) % GOALS.length]} in file${call}.rs, and let us move on to it now.`, at });
    }
    await memory.afterToolCall({
      toolCallId: `call_${call}`,
      toolName: 'bash',
      argumentsJson: JSON.stringify({ command: `${COMMANDS[call % COMMANDS.length]} # ${call}` }),
      output: `${OUTPUTS[(call * 7) % OUTPUTS.length]}`,
      isError: call % 9 === 0,
      at,
    });
  }
  let drawn = 0;
  for (let task = 1; task < 20; task += 1) {
    const answer = await memory.callTool({ name: 'canvas_read', argumentsJson: JSON.stringify({ task }), at });
    if (answer.isError) break;
    const text = answer.text.slice(0, answer.text.lastIndexOf('\ntasks: '));
    assert.equal((await mermaid.parse(text)).diagramType, 'flowchart-v2');
    drawn += 1;
  }
  assert.ok(drawn > 0, 'no canvas was drawn');
  await memory.close();
  const files = readdirSync(join(dir, 'canvases')).filter((name) => name.endsWith('.mmd'));
  assert.ok(files.length > 0);
  for (const name of files) {
    const text = readFileSync(join(dir, 'canvases', name), 'utf8');
    assert.ok(text.length < 4000, `${name} has ${text.length} characters`);
    assert.equal((await mermaid.parse(text)).diagramType, 'flowchart-v2', name);
  }
  rmSync(dir, { recursive: true });
});
