// What works and what does not, feature by feature.
//
// OpenClaw gives a plugin less than it asks for without failing it: a hook without the grant is silently
// absent, a slot may belong to somebody else, an old host has no transcript feed. Each feature says here
// whether it works and why not; `status`, the log and the prompt read it from here.

/** Features in the order in which people ask about them. */
export const FEATURES = ['storage', 'capture', 'recall', 'tools', 'model', 'offload', 'memory-slot', 'context-engine'];

/** Durations kept for the percentiles that `status` shows. */
const MAX_DURATIONS = 512;

export class Health {
  constructor(mode) {
    this.mode = mode;
    this.features = new Map();
    this.durations = new Map();
  }

  /** Records how long a prompt waited for a feature, in milliseconds. */
  timed(feature, ms) {
    const list = this.durations.get(feature) ?? [];
    list.push(ms);
    if (list.length > MAX_DURATIONS) list.shift();
    this.durations.set(feature, list);
  }

  /** Records a feature's state and returns true when that is news. */
  set(feature, ok, note = '') {
    const before = this.features.get(feature);
    this.features.set(feature, { ok, note });
    return !before || before.ok !== ok || before.note !== note;
  }

  /**
   * Returns `{ mode, features: { name: { ok, note } }, latencyMs: { name: { count, p50, p95, max } } }` with the
   * features that have reported, and the waits of the last calls.
   */
  report() {
    const features = {};
    for (const name of FEATURES) if (this.features.has(name)) features[name] = this.features.get(name);
    const latencyMs = {};
    for (const [name, list] of this.durations) {
      const sorted = [...list].sort((a, b) => a - b);
      const at = (share) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] * 100) / 100;
      latencyMs[name] = { count: sorted.length, p50: at(0.5), p95: at(0.95), max: at(1) };
    }
    return { mode: this.mode, features, latencyMs };
  }

  /**
   * Returns the line that tells the model that memory is impaired, or empty text.
   *
   * Only what changes what the model may claim is worth its tokens: nothing is remembered, or nothing is
   * recalled.
   */
  promptLine() {
    const broken = ['storage', 'capture', 'recall'].map((name) => [name, this.features.get(name)]).filter(([, state]) => state && !state.ok);
    if (broken.length === 0) return '';
    const what = broken.map(([name, { note }]) => `${name}: ${note}`).join('; ');
    return `<memory-health>Long-term memory is impaired (${escapeText(what)}). Do not claim to remember or to have stored things; if the user asks, say so and point to \`openclaw strata status\`.</memory-health>`;
  }
}

/** Returns `text` with the characters that could open or close a tag replaced. */
export function escapeText(text) {
  return text.replace(/&/gu, '&amp;').replace(/</gu, '&lt;').replace(/>/gu, '&gt;');
}
