// Writes down what OpenClaw must know before any engine opens: the tools, their names in the manifest, the
// version. Run after the component was built; `declared.test.mjs` fails when this was forgotten.
import fs from 'node:fs';

const at = (path) => new URL(`../../js-shim/${path}`, import.meta.url);
const write = (path, value) => fs.writeFileSync(at(path), `${JSON.stringify(value, null, 2)}\n`);

const { listToolsSync } = await import(at('src/index.js'));
write('openclaw/tools.json', listToolsSync());
const { declaredToolNames } = await import(at('openclaw/toolset.js'));
const manifest = JSON.parse(fs.readFileSync(at('openclaw.plugin.json'), 'utf8'));
manifest.contracts.tools = declaredToolNames();
manifest.version = JSON.parse(fs.readFileSync(at('package.json'), 'utf8')).version;
write('openclaw.plugin.json', manifest);
