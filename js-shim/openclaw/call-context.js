// From where the host may be called.
//
// OpenClaw ties asynchronous work to the call that began it (a hook, a command, a service's start) and refuses
// work whose call has ended: "Async work scope is closed". The engine asks for a model when its own clock says
// so, in the context of whatever happened to wake it, often long after that was over. So contexts that live
// longer are kept, and one after the other is tried.
import { AsyncLocalStorage } from 'node:async_hooks';

/** Contexts kept; the newest is tried first. */
const MAX_KEPT = 4;
/** Where OpenClaw keeps the scope of the running call; leaving it is the last resort. */
const HOST_SCOPE = Symbol.for('openclaw.asyncWorkScope');

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
    const scope = globalThis[HOST_SCOPE];
    const places = [(work) => work(), ...this.kept, ...(typeof scope?.exit === 'function' ? [(work) => scope.exit(work)] : [])];
    for (const [at, place] of places.entries()) {
      try {
        return await place(call);
      } catch (error) {
        if (at === places.length - 1 || !/scope is closed/u.test(error?.message ?? '')) throw error;
      }
    }
    return undefined;
  }
}
