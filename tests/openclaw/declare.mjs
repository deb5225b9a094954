// Writes into the manifest what OpenClaw checks against it: the names of the tools, and the version.
// Run after the package was built; `declared.test.mjs` fails when this was forgotten.
import fs from 'node:fs';
import { declaredToolNames } from '../../js-shim/openclaw/toolset.js';

const at = (path) => new URL(`../../js-shim/${path}`, import.meta.url);

const manifest = JSON.parse(fs.readFileSync(at('openclaw.plugin.json'), 'utf8'));
manifest.contracts.tools = declaredToolNames();
manifest.version = JSON.parse(fs.readFileSync(at('package.json'), 'utf8')).version;
fs.writeFileSync(at('openclaw.plugin.json'), `${JSON.stringify(manifest, null, 2)}\n`);
