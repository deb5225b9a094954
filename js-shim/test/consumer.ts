// Compiled, never run: the types that callers see (`npm run build` checks it).
import { StrataError, beforeMessageWriteSync, openMemory, type Memory } from '@strata-memory/strata';

export async function use(): Promise<string> {
  const memory: Memory = await openMemory({ dir: 'x', llm: async (request, signal) => (signal.aborted ? '' : request.prompt), embed: { url: 'http://h/v1', model: 'm' } });
  const { dynamic, recalled } = await memory.beforePromptBuild({ prompt: 'p', scope: { session: 's' } });
  const { stored, dropped } = await memory.agentEnd({ messages: [{ role: 'user', content: [{ type: 'text', text: 't' }], saidAt: new Date() }], success: false });
  const [reason, count]: [string, number] = dropped[0];
  // @ts-expect-error a prompt is needed
  await memory.beforePromptBuild({}).catch((error: unknown) => error instanceof StrataError && error.code === 'deadline');
  // @ts-expect-error there is no such code
  if (new StrataError('busy', 'x').code === 'bussy') return reason;
  const found: unknown = await memory.memory.search({ query: 'q', layer: 'messages' });
  await memory.close();
  return beforeMessageWriteSync({ content: dynamic }) + recalled.join() + stored.join() + count + String(found);
}
