// OpenClaw's state directory, where the memory lives.
import os from 'node:os';
import path from 'node:path';

/** Returns OpenClaw's state directory; works in every registration mode. */
export function stateDir(api) {
  try {
    const dir = api.runtime?.state?.resolveStateDir?.(process.env);
    if (dir) return dir;
  } catch {
    // Without a runtime (command metadata) the documented environment variable and default decide.
  }
  return process.env.OPENCLAW_STATE_DIR ? path.resolve(process.env.OPENCLAW_STATE_DIR) : path.join(os.homedir(), '.openclaw');
}
