// `openclaw strata ...`: what people need, on the command line.
import { carryCommands } from './cli/carry.js';
import { inspectCommands } from './cli/inspect.js';
import { memoryCommands } from './cli/memory.js';
import { setupCommand } from './cli/setup.js';
import { openEngine } from './engine.js';
import { gatewaysModel } from './model.js';
import { readSettings } from './settings.js';
import { leaseSpace } from './space.js';
import { stateDir } from './state-dir.js';

/** Registers the command tree; works in every registration mode, and does nothing until a command runs. */
export function registerCommands(api, version) {
  api.registerCli(
    ({ program, config, workspaceDir }) => {
      const root = program.command('strata').description('Strata memory: look, ask why, correct, forget, carry away');
      const host = {
        api,
        version,
        workspaceDir,
        config: () => api.runtime?.config?.current?.() ?? config ?? api.config,
        withSpace: (work) => withSpace(api, version, work),
      };
      for (const add of [setupCommand, inspectCommands, memoryCommands, carryCommands]) add(root, host);
    },
    { descriptors: [{ name: 'strata', description: 'Strata memory: set-up, status, search, trace, forget, import, export', hasSubcommands: true }] },
  );
}

/**
 * Runs `work(space, settings)` with the memory, through the gateway if it runs and directly if not, and
 * closes it again. A refusal of the engine becomes one sentence and exit code 1.
 */
async function withSpace(api, version, work) {
  const settings = readSettings(api.pluginConfig, stateDir(api));
  const logger = { info() {}, debug() {}, warn: (line) => console.error(line), error: (line) => console.error(line) };
  const lease = leaseSpace({
    settings,
    version,
    open: (options) => openEngine({ ...options, packageDir: api.rootDir }),
    client: { logger, complete: settings.model.source === 'host' ? gatewaysModel : undefined },
  });
  try {
    return await work(lease.space, settings);
  } catch (error) {
    console.error(`strata: ${error.message}`);
    process.exitCode = 1;
    return undefined;
  } finally {
    await lease.release();
  }
}
