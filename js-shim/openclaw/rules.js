// Who is remembered: per-agent, per-channel and per-sender rules, and the runs that no person started.
import { describeSession } from './sessions.js';

/** Tools through which OpenClaw's own memory re-enters a conversation; their text is not what a user said. */
const MEMORY_SOURCES = new Set(['memory_search', 'memory_get']);

/** The note by which OpenClaw has a run go on that a restart cut off; its answer is the answer to the person. */
const CONTINUATION = 'main_session_restart_recovery';

/** Replies by which an OpenClaw agent says that it has nothing to say. */
const SILENT_REPLIES = new Set(['NO_REPLY', 'HEARTBEAT_OK']);

/**
 * Returns why a session is left alone ("incognito", "agent excluded", ...), or undefined when it is not.
 *
 * `rules` is the `capture` part of the settings; `trigger` is what OpenClaw says started the run, when it
 * says so. The same rules decide about recall: what may not be remembered is not told either.
 */
export function excludedSession(rules, sessionKey, trigger) {
  const session = describeSession(sessionKey);
  if (session.incognito) return 'incognito session';
  const chosen = excludedByChoice(rules, session);
  if (chosen) return chosen;
  if (session.kind === 'cron' || trigger === 'cron' || trigger === 'schedule' || trigger === 'automation') return rules.cron ? undefined : 'scheduled run';
  if (trigger === 'heartbeat' || /:heartbeat(?::|$)/u.test(sessionKey)) return rules.heartbeat ? undefined : 'heartbeat run';
  if (session.kind === 'subagent') return rules.subagents ? undefined : 'subagent run';
  if (session.kind === 'acp' || session.kind === 'hook') return rules.subagents ? undefined : `${session.kind} run`;
  return undefined;
}

/** Returns why the user's own rules leave a session (`describeSession`) alone, or undefined when they do not. */
export function excludedByChoice(rules, session) {
  if (rules.excludeAgents.some((glob) => matchesGlob(glob, session.agentId))) return `agent ${session.agentId} is excluded`;
  if (rules.excludeChatTypes.includes(session.kind)) return `chat type ${session.kind} is excluded`;
  return undefined;
}

/**
 * Returns why the turn that a user-role message opens is left alone, or undefined when it is not.
 *
 * A turn is that message and everything up to the next user-role message. OpenClaw records where the
 * message came from; a message without provenance was typed by a person.
 */
export function excludedTurn(rules, message) {
  if (message.excludeFromContext === true) return 'command';
  const provenance = message.provenance;
  if (provenance?.kind === 'internal_system') {
    if (MEMORY_SOURCES.has(provenance.sourceTool)) return 'recalled memory';
    if (provenance.sourceTool === 'heartbeat') return rules.heartbeat ? undefined : 'heartbeat run';
    if (provenance.sourceTool === 'cron') return rules.cron ? undefined : 'scheduled run';
    return 'system event';
  }
  if (provenance?.kind === 'inter_session') return rules.subagents ? undefined : 'message of another agent';
  const meta = message.__openclaw ?? {};
  const names = [meta.senderId, meta.senderUsername, meta.senderName].filter(Boolean);
  if (rules.excludeSenders.some((glob) => names.some((name) => matchesGlob(glob, name)))) return 'sender is excluded';
  return undefined;
}

/** Returns true for a user-role message that is not a turn of its own, but has an earlier turn go on. */
export function continuesTurn(message) {
  return message.provenance?.kind === 'internal_system' && message.provenance.sourceTool === CONTINUATION;
}

/** Returns true when an assistant's text only says that it has nothing to say. */
export function isSilentReply(text) {
  return SILENT_REPLIES.has(text.trim());
}

/** Returns true when `text` matches `glob`, in which `*` stands for anything and `?` for one character. */
export function matchesGlob(glob, text) {
  const pattern = glob
    .replace(/[\\^$.|+()[\]{}]/gu, '\\$&')
    .replace(/\*/gu, '.*')
    .replace(/\?/gu, '.');
  return new RegExp(`^${pattern}$`, 'isu').test(text);
}
