// The engine's tools, offered to OpenClaw's model.
import fs from 'node:fs';
import { excludedSession } from './rules.js';
import { scopeOf } from './sessions.js';

/** What `tools.list` of the engine answers, written down by the build: tools register before any engine opens. */
const TOOLS_FILE = new URL('../dist/tools.json', import.meta.url);

/**
 * Goes before our tools' names while OpenClaw's own memory is loaded: it registers `memory_search` too, and
 * the second one of a name is refused.
 */
const PREFIX = 'strata_';

/** Returns `[{ name, description, parameters }]`. */
export function toolDefinitions() {
  return JSON.parse(fs.readFileSync(TOOLS_FILE, 'utf8'));
}

/** Returns the names that the manifest must declare: OpenClaw refuses a tool that it was not told of. */
export function declaredToolNames() {
  const names = toolDefinitions().map(({ name }) => name);
  return [...names, ...names.map((name) => PREFIX + name)];
}

/** Returns how a tool is called in this installation. */
export function toolName(name, ownNames) {
  return ownNames ? name : PREFIX + name;
}

/** Returns `text` with the tools called as they are called in this installation. */
export function renameTools(text, ownNames) {
  if (ownNames || !text) return text;
  return toolDefinitions().reduce((renamed, { name }) => renamed.replace(new RegExp(`(?<![\\w-])${name}(?![\\w-])`, 'gu'), PREFIX + name), text);
}

/**
 * Registers every tool. With `toolVisibility: "direct"` they are in the model's list; with "search" they are
 * found through OpenClaw's tool search like other plugins' tools.
 */
export function registerTools(api, { space, settings, health, log, ownNames }) {
  for (const { name: engineName, description, parameters } of toolDefinitions()) {
    const name = toolName(engineName, ownNames);
    api.registerTool(
      (ctx) => ({
        name,
        label: name.replace(/_/gu, ' '),
        description: renameTools(description, ownNames),
        parameters,
        ...(settings.toolVisibility === 'direct' ? { catalogMode: 'direct-only' } : {}),
        async execute(_toolCallId, params) {
          if (excludedSession(settings.capture, ctx.sessionKey ?? '', undefined)) return refusal('memory is switched off for this session');
          const run = space.runs.get(ctx.sessionKey);
          const request = {
            scope: scopeOf(ctx.sessionKey, ctx.agentId, ctx.senderIsOwner),
            turnId: run?.runId,
            name: engineName,
            argumentsJson: JSON.stringify(params ?? {}),
            at: Date.now(),
          };
          try {
            const answer = await space.call('callTool', [request]);
            health.set('tools', true, ownNames ? '' : `named ${PREFIX}...`);
            return { content: [{ type: 'text', text: answer.text }], details: parsed(answer.structuredJson), ...(answer.isError ? { isError: true } : {}) };
          } catch (error) {
            if (health.set('tools', false, `${error.code ?? 'error'}: ${error.message}`)) log('warn', `${name}: ${error.message}`);
            return refusal(`the memory cannot answer now (${error.message})`);
          }
        },
      }),
      { name },
    );
  }
  health.set('tools', true, ownNames ? '' : `named ${PREFIX}..., because OpenClaw's own memory is loaded too; \`openclaw strata setup\` settles that`);
}

function refusal(text) {
  return { content: [{ type: 'text', text }], details: {}, isError: true };
}

function parsed(json) {
  try {
    return JSON.parse(json);
  } catch {
    // The text is the answer; the structured form is a convenience.
    return {};
  }
}
