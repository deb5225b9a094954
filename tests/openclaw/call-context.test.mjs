import assert from 'node:assert/strict';
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { test } from 'node:test';
import { CallContexts } from '../../js-shim/openclaw/call-context.js';

const scope = (globalThis[Symbol.for('openclaw.asyncWorkScope')] ??= new AsyncLocalStorage());

/** A host call that is refused in a scope that has ended, as OpenClaw's are. */
function hostCall() {
  if (scope.getStore()?.closed) throw new Error('Async work scope is closed');
  return scope.getStore()?.name ?? 'outside';
}

test('a call that is refused where it began is made where the host still takes it', async () => {
  const contexts = new CallContexts();
  const service = { name: 'service' };
  scope.run(service, () => contexts.keep());
  assert.equal(await scope.run({ name: 'hook' }, () => contexts.run(hostCall)), 'hook', 'a live context is the right one');
  assert.equal(await scope.run({ name: 'hook', closed: true }, () => contexts.run(hostCall)), 'service');
  service.closed = true;
  assert.equal(await scope.run({ name: 'hook', closed: true }, () => contexts.run(hostCall)), 'outside');
});

test('other failures are not tried again', async () => {
  const contexts = new CallContexts();
  contexts.keep();
  let calls = 0;
  await assert.rejects(
    contexts.run(() => {
      calls += 1;
      throw new Error('model down');
    }),
    { message: 'model down' },
  );
  assert.equal(calls, 1);
});

test('a context of an inventory that was replaced is passed over too', async () => {
  const inventory = new AsyncLocalStorage();
  globalThis[Symbol.for('openclaw.detachedAsyncContext')] ??= new AsyncResource('root');
  const contexts = new CallContexts();
  inventory.run('old', () => contexts.keep());
  const call = () => {
    if (inventory.getStore() === 'old') throw new Error('Plugin inventory has retired; begin a new plugin operation.');
    return 'answer';
  };
  assert.equal(await inventory.run('old', () => contexts.run(call)), 'answer');
});
