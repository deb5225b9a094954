// What the mock model answers: to the agent, and to the engine's own requests.
import { textOf } from './mock-model.mjs';

/** An agent that acknowledges. Last rule of every list. */
export const acknowledge = (request) => (request.kind === 'agent' ? { text: 'Noted.' } : undefined);

/** Returns a rule: the agent calls `calls` once when the newest user text contains `text`. */
export function callsOn(text, calls) {
  return (request) => (request.kind === 'agent' && request.toolResults.length === 0 && request.lastUser.includes(text) ? { calls } : undefined);
}

/** OpenClaw asks the model for titles, summaries and the like in requests without tools. */
export const hostChores = (request) => (request.kind === 'plain' && purposeOf(request) === undefined ? { text: 'Chat' } : undefined);

/**
 * Returns what an engine request is for ("l1-extract", ...), or undefined for a request of somebody else.
 * Told by the first words of the engine's prompts (`guest/core/prompts/`).
 */
export function purposeOf(request) {
  const name = request.body.response_format?.json_schema?.name;
  if (name) return name.replaceAll('_', '-');
  const known = [
    ['l1-extract', 'You keep the long-term memory of an assistant'],
    ['l1-settle', 'settle'],
    ['l2-scenes', 'scene'],
    ['l3-persona', 'persona'],
    ['offload-summary', 'summar'],
    ['offload-boundary', 'same task'],
    ['offload-canvas', 'canvas'],
  ];
  return request.kind === 'plain' ? known.find(([, words]) => request.system.includes(words))?.[0] : undefined;
}

/** Statements that the mock takes for a memory, by kind; everything else that a user says is small talk to it. */
const STATEMENTS = [
  ['instruction', /\b(always|never|from now on)\b/iu],
  ['persona', /\b(my|i am|i prefer|i like|i live|i have)\b/iu],
  ['episodic', /\b(on \d|yesterday|started|moved)\b/iu],
];

/** The engine's L1 as a good model would answer it: one memory a user statement, quoted letter by letter. */
export const extracts = (request) => {
  if (purposeOf(request) !== 'l1-extract') return undefined;
  const prompt = textOf(request.body.messages.at(-1).content);
  const lines = prompt
    .slice(Math.max(prompt.lastIndexOf('New messages'), 0))
    .split('\n')
    .flatMap(parsed);
  const memories = lines.flatMap(({ id, role, text }) => {
    const kind = STATEMENTS.find(([, words]) => words.test(text ?? ''))?.[0];
    if (role !== 'user' || !kind || text.includes('?')) return [];
    return [{ content: `The user said: ${text}`, type: kind, priority: 90, sources: [{ id, quote: text }], start: '', end: '' }];
  });
  return { text: JSON.stringify({ scenes: memories.length ? [{ scene: 'the user introduces themselves to the assistant', memories }] : [] }) };
};

/** The engine's other requests: nothing to settle, no scene, no persona. An empty object is data, not an error. */
export const otherMemoryWork = (request) => (purposeOf(request) ? { text: '{}' } : undefined);

function parsed(line) {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}
