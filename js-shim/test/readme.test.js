/** README's code for Node runs as it stands, but for the package's name and the directory. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from './temporary.js';

test('the code in README remembers and recalls', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const blocks = [...readme.matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) => code);
  assert.equal(blocks.length, 1);
  const here = new URL('../src/index.js', import.meta.url).href;
  const code = blocks[0].replace("'@strata-memory/strata'", JSON.stringify(here)).replace("'./memory'", JSON.stringify(join(temporaryDirectory(), 'memory')));
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' });
  assert.match(printed, /peanuts/);
});
