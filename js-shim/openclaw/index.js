// The OpenClaw plugin's entry.
import { readFileSync } from 'node:fs';
import { register } from './register.js';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

export default {
  id: 'strata',
  name: 'Strata',
  description: 'Layered, auditable long-term and short-term memory: remembers conversations across sessions and keeps long tasks short.',
  register: (api) => register(api, version),
};
