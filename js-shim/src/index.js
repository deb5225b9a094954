/** Strata for Node: layered, auditable memory for agents, as one WebAssembly component. */

export { Memory, Documents, openMemory } from './memory.js';
export { StrataError } from './errors.js';
export { beforeMessageWriteSync, configSchemaSync, listToolsSync, queryTextSync } from './pure.js';
