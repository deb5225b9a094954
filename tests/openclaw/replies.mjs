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
    ['l1-extract', 'You keep the long-term memory of an assistant.'],
    ['l1-settle', 'You keep the long-term memory of an assistant consistent.'],
    ['l2-scenes', 'You keep the scene pages of a memory.'],
    ['l3-persona', 'You write the profile of one user'],
    ['offload-boundary', 'You keep the working memory of an agent. Its work is drawn'],
    ['offload-canvas', 'You keep the working memory of an agent. Its task is drawn'],
    ['offload-summary', 'You keep the working memory of an agent that is in the middle'],
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
const extracts = (request) => {
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

/** Conflicts: everything new is stored beside what is known. */
const settles = (request) => {
  if (purposeOf(request) !== 'l1-settle') return undefined;
  const ids = [...new Set(promptOf(request).match(/(?<="id": ?")n\d+/gu) ?? [])];
  return json({ decisions: ids.map((id) => ({ new: id, action: 'store', targets: [], content: '', type: '', priority: 0 })) });
};

/** Scenes: one page about the user, which rests on every fact that is shown. */
const tellsScenes = (request) => {
  if (purposeOf(request) !== 'l2-scenes') return undefined;
  const atoms = atomsOf(request);
  const page = {
    summary: 'Who the user is, where they live and how they want to be answered.',
    paragraphs: [{ text: 'What the user said about themselves.', atoms }],
  };
  const file = /[\w-]+\.md/u.exec(promptOf(request))?.[0];
  if (atoms.length === 0) return json({ operations: [] });
  return json({ operations: [file ? { op: 'update', scene: file, ...page } : { op: 'create', name: 'about-the-user', ...page }] });
};

/** The persona: one statement that rests on every fact that is shown. */
const portrays = (request) => {
  if (purposeOf(request) !== 'l3-persona') return undefined;
  return json({ sections: [{ heading: 'In one breath', statements: [{ text: 'Zoltan of Lisbon, who likes things metric.', atoms: atomsOf(request) }] }] });
};

/** Offload: a line for each call that is shown, and no change of task or canvas. */
const keepsTheTask = (request) => {
  const purpose = purposeOf(request);
  if (purpose === 'offload-summary') {
    const calls = promptOf(request).split('\n').flatMap(parsed);
    // A good line names the file.
    return json({ summaries: calls.map(({ id, call }) => ({ id, summary: `Read ${/[\w-]+\.txt/u.exec(call)?.[0] ?? 'a file'} of the survey.`, score: 7 })) });
  }
  if (purpose === 'offload-boundary') return json({ decision: 'same', task: 0, goal: '' });
  if (purpose === 'offload-canvas') return json({ nodes: [] });
  return undefined;
};

/** All that the engine asks of a model; what has no answer of its own gets an empty object, which is data and no error. */
export const memoryWork = (request) =>
  extracts(request) ?? settles(request) ?? tellsScenes(request) ?? portrays(request) ?? keepsTheTask(request) ?? (purposeOf(request) ? { text: '{}' } : undefined);

function promptOf(request) {
  return textOf(request.body.messages.at(-1).content);
}

function atomsOf(request) {
  return [...new Set(promptOf(request).match(/\ba_[0-9a-f]+/gu) ?? [])];
}

function json(value) {
  return { text: JSON.stringify(value) };
}

function parsed(line) {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}
