/** Programs that tests run in processes of their own. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/**
 * Starts Node on a module text that may import `openMemory` and use `dir`; returns the process and a
 * function that resolves to its next line.
 */
export function startChild(text, dir) {
  const prelude = `import { openMemory } from ${JSON.stringify(new URL('../src/index.js', import.meta.url).href)}; const dir = ${JSON.stringify(dir)};\n`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', prelude + text], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error('the child ended without the line that was expected');
    return value;
  };
  return { child, nextLine, ended: once(child, 'exit') };
}
