// What an OpenClaw session key says about a conversation.
//
// The key is the only fact that every hook, transcript row and command agrees on, so all rules about
// who may be remembered start here. Shapes are those of OpenClaw 2026.9 (`agent:<agent>:<rest>`).

/** Process-only sessions: the user asked that they leave no trace. */
const INCOGNITO = /^agent:[^:]+:(?:dashboard|subagent|internal-session-effects):incognito-[^:]+$/u;

/** Kinds of peers that OpenClaw writes into a key, by what they mean here. */
const PEER_KINDS = new Map([
  ['direct', 'direct'],
  ['dm', 'direct'],
  ['group', 'group'],
  ['channel', 'channel'],
]);

/**
 * Returns `{ agentId, kind, channel, peer, incognito }` for a session key.
 *
 * `kind` is "main" (the operator's own conversations, with whatever name), "direct", "group", "channel",
 * "cron", "subagent", "acp" or "hook"; `channel` and `peer` are set for direct, group and channel. An
 * unknown shape is "main", because that is what OpenClaw itself does with an application's own keys.
 */
export function describeSession(sessionKey) {
  const key = String(sessionKey ?? '').trim();
  const match = /^agent:([^:]+):(.+)$/iu.exec(key);
  const agentId = match ? match[1].toLowerCase() : 'main';
  const parts = (match ? match[2] : key).replace(/:thread:.*$/iu, '').split(':');
  const incognito = INCOGNITO.test(key.toLowerCase());
  const head = parts[0].toLowerCase();
  if (['cron', 'subagent', 'acp', 'hook'].includes(head)) return { agentId, kind: head, channel: '', peer: '', incognito };
  // `direct:<peer>`, `<channel>:<kind>:<peer>` or `<channel>:<account>:direct:<peer>`.
  for (const [at, channel] of [
    [0, ''],
    [1, head],
    [2, head],
  ]) {
    const kind = PEER_KINDS.get(parts[at]?.toLowerCase());
    const peer = parts.slice(at + 1).join(':');
    if (kind && peer && !(at === 0 && kind !== 'direct') && !(at === 2 && kind !== 'direct')) return { agentId, kind, channel, peer, incognito };
  }
  return { agentId, kind: 'main', channel: '', peer: '', incognito };
}

/**
 * Returns the name of the person whose memory a conversation belongs to.
 *
 * The operator's own conversations share one memory ("owner"). A stranger's direct conversation and each
 * group have their own, so that what one of them said is not recalled to another.
 */
export function memoryOwner(session, senderIsOwner) {
  if (session.kind === 'group' || session.kind === 'channel') return `${session.channel}:${session.kind}:${session.peer}`;
  if (session.kind === 'direct' && senderIsOwner !== true) return session.channel ? `${session.channel}:${session.peer}` : session.peer;
  return 'owner';
}

/** Returns the scope of a session for the engine. */
export function scopeOf(sessionKey, agentId, senderIsOwner) {
  const session = describeSession(sessionKey);
  return { team: '', user: memoryOwner(session, senderIsOwner), agent: agentId ?? session.agentId, session: sessionKey };
}
