// Waiting, but not for ever.

/** Resolves as `promise` does, or rejects with code "late" after `ms`. The promise itself is left running. */
export function within(ms, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(Object.assign(new Error(`not within ${ms} ms`), { code: 'late' })), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
