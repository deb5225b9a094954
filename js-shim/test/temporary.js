/** Data directories of tests. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

/** Returns a new directory, removed when the tests of the file have ended. */
export function temporaryDirectory() {
  const directory = mkdtempSync(join(tmpdir(), 'strata-'));
  after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
