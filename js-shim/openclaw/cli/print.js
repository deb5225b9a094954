// Output for programs and people.

/**
 * Prints a line on standard output. Not `console.log`: OpenClaw sends that to standard error when a command
 * is asked for JSON, to keep its own notices out of it.
 */
export function print(line) {
  process.stdout.write(`${line}\n`);
}
