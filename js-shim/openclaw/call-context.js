// From where the host may be called.
//
// OpenClaw ties asynchronous work to the call that began it (a hook, a command, a service's start) and to the
// inventory of plugins of that time, and refuses work whose call has ended or whose inventory was replaced. The
// engine asks for a model when its own clock says so, in the context of whatever happened to wake it, often long
// after that was over. So contexts that live longer are kept, and one after the other is tried.
import { AsyncLocalStorage } from 'node:async_hooks';

/** Contexts kept; the newest is tried first. */
const MAX_KEPT = 4;
/** Where OpenClaw keeps the root that its own detached work runs in: no call, and whatever inventory is current. */
const HOST_ROOT = Symbol.for('openclaw.detachedAsyncContext');
/** Where OpenClaw keeps the scope of the running call; leaving it is the last resort. */
const HOST_SCOPE = Symbol.for('openclaw.asyncWorkScope');
/** What OpenClaw 2026.9 says to a caller that is of the past; the same call is right from elsewhere. */
const STALE_CALLER = /scope is closed|inventory has retired|is retiring|was reloaded or disabled/u;

/** Returns whether an error says that the call was made from the wrong place, and not that it failed. */
export function isStaleCaller(error) {
  return STALE_CALLER.test(error?.message ?? '');
}

export class CallContexts {
  constructor() {
    this.kept = [];
  }

  /** Keeps the context of the running call. */
  keep() {
    this.kept.unshift(AsyncLocalStorage.snapshot());
    this.kept.length = Math.min(this.kept.length, MAX_KEPT);
  }

  /** Runs `call` where the host takes it; rejects as the call does, or as the last try did. */
  async run(call) {
    const places = [(work) => work(), ...this.kept, ...hostPlaces()];
    for (const [at, place] of places.entries()) {
      try {
        return await place(call);
      } catch (error) {
        if (at === places.length - 1 || !isStaleCaller(error)) throw error;
      }
    }
    return undefined;
  }
}

/** The host's own ways out of a call, where this version has them. */
function hostPlaces() {
  const root = globalThis[HOST_ROOT];
  const scope = globalThis[HOST_SCOPE];
  return [
    ...(typeof root?.runInAsyncScope === 'function' ? [(work) => root.runInAsyncScope(work)] : []),
    ...(typeof scope?.exit === 'function' ? [(work) => scope.exit(work)] : []),
  ];
}
