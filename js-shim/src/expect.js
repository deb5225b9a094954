/** What a scenario expects, compared with what came. */

/**
 * Returns how `actual` differs from `expected`; nothing if it matches.
 *
 * Objects match by the members that are named, all else exactly. An object with one `$` member asks for
 * something else: `$contains`, `$not-contains`, `$count`, `$any`, `$json`, `$all`.
 *
 * @param {any} expected
 * @param {any} actual
 * @param {string} path
 * @returns {string | undefined}
 */
export function difference(expected, actual, path) {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return mismatch(path, expected, actual);
    if (expected.length !== actual.length) return `${path}: expected ${expected.length} items, got ${actual.length}: ${short(actual)}`;
    return first(expected.map((one, index) => () => difference(one, actual[index], `${path}[${index}]`)));
  }
  if (expected === null || typeof expected !== 'object') return expected === actual ? undefined : mismatch(path, expected, actual);
  const [key, ...others] = Object.keys(expected);
  if (others.length === 0 && key?.startsWith('$')) return special(key, expected[key], actual, path);
  if (actual === null || typeof actual !== 'object' || Array.isArray(actual)) return mismatch(path, expected, actual);
  return first(
    Object.keys(expected).map((member) => () => (member in actual ? difference(expected[member], actual[member], `${path}.${member}`) : `${path}: there is no ${member} in ${short(actual)}`)),
  );
}

/**
 * @param {string} key
 * @param {any} wanted
 * @param {any} actual
 * @param {string} path
 */
function special(key, wanted, actual, path) {
  switch (key) {
    case '$any':
      return undefined;
    case '$contains':
      return holds(actual, wanted) ? undefined : `${path}: ${short(actual)} does not contain ${short(wanted)}`;
    case '$not-contains':
      return holds(actual, wanted) ? `${path}: ${short(actual)} contains ${short(wanted)}` : undefined;
    case '$count':
      return Array.isArray(actual) && actual.length === wanted ? undefined : `${path}: expected ${wanted} items, got ${short(actual)}`;
    case '$all':
      return first(wanted.map((/** @type {any} */ one) => () => difference(one, actual, path)));
    case '$json': {
      try {
        return difference(wanted, JSON.parse(actual), path);
      } catch {
        return `${path}: ${short(actual)} is not JSON`;
      }
    }
    default:
      return `${path}: ${key} is no expectation`;
  }
}

/**
 * Text holds a part of itself, a list holds an item.
 * @param {any} actual
 * @param {any} wanted
 */
function holds(actual, wanted) {
  if (typeof actual === 'string') return actual.includes(wanted);
  return Array.isArray(actual) && actual.some((one) => difference(wanted, one, '') === undefined);
}

/** @param {(() => string | undefined)[]} checks */
function first(checks) {
  for (const check of checks) {
    const found = check();
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * @param {string} path
 * @param {any} expected
 * @param {any} actual
 */
function mismatch(path, expected, actual) {
  return `${path}: expected ${short(expected)}, got ${short(actual)}`;
}

/** @param {any} value */
function short(value) {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
