// Taking out of a stored message what memory had put into the prompt.
//
// OpenClaw calls `before_message_write` on its main thread and does not wait for promises, so this is the
// one engine function that exists twice: here, and as `hooks.before-message-write` (`capture/injected.rs`).
// Both give the same bytes for `tests/openclaw/strip-vectors.json` and for what a seeded generator makes.

const TAGS = ['relevant-memories', 'user-persona', 'relevant-scenes', 'scene-navigation', 'memory-tools-guide', 'current_task_context', 'history_task_context'];

/** Beginnings of the first line of a block where a host has joined the lines of a block. */
const FRAMES = ['Recalled from earlier sessions', '以下是当前对话召回的相关记忆'];

/**
 * Returns `text` without injected blocks; the same again for its own result.
 *
 * A block is an opening tag at the start of a line, followed by the end of that line or by a framing
 * sentence, up to the first closing tag. A tag inside a sentence is what somebody wrote, and stays.
 */
export function stripInjected(text) {
  let kept = '';
  let rest = text;
  // Tags that are never closed in what is left; see the engine's copy.
  const unclosed = new Set();
  for (let open = rest.indexOf('<'); open >= 0; open = rest.indexOf('<')) {
    const lineStart = open === 0 ? kept === '' || kept.endsWith('\n') : rest[open - 1] === '\n';
    const block = lineStart ? opening(rest.slice(open + 1)) : undefined;
    if (block && !unclosed.has(block.tag)) {
      const closing = `</${block.tag}>`;
      const close = block.inside.indexOf(closing);
      if (close >= 0) {
        kept += rest.slice(0, open);
        rest = block.inside.slice(close + closing.length).replace(/^[\n\r ]+/u, '');
        continue;
      }
      unclosed.add(block.tag);
    }
    kept += rest.slice(0, open + 1);
    rest = rest.slice(open + 1);
  }
  return kept + rest;
}

/** Returns the tag and what follows it, if `text` (after `<`) opens a block. */
function opening(text) {
  const tag = TAGS.find((candidate) => text.startsWith(candidate));
  if (!tag) return undefined;
  const after = text.slice(tag.length);
  let inside;
  if (after.startsWith('>')) inside = after.slice(1);
  else if (after.startsWith(' ')) {
    // The reference system names the file of a past task in the tag.
    const end = after.search(/[><\n]/u);
    if (end < 0 || after[end] !== '>') return undefined;
    inside = after.slice(end + 1);
  } else return undefined;
  const line = inside.replace(/^[ \t\r]+/u, '');
  return line.startsWith('\n') || FRAMES.some((frame) => line.startsWith(frame)) ? { tag, inside } : undefined;
}

/**
 * Returns the message without recalled memories, or undefined when there was nothing to take out.
 * Only user messages carry them.
 */
export function stripMessage(message) {
  if (message?.role !== 'user') return undefined;
  const { content } = message;
  if (typeof content === 'string') {
    const clean = stripInjected(content);
    return clean === content ? undefined : { ...message, content: clean };
  }
  if (!Array.isArray(content)) return undefined;
  let changed = false;
  const parts = content.map((part) => {
    if (part?.type !== 'text' || typeof part.text !== 'string') return part;
    const text = stripInjected(part.text);
    changed ||= text !== part.text;
    return text === part.text ? part : { ...part, text };
  });
  return changed ? { ...message, content: parts } : undefined;
}
