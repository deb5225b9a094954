// What was checked, what came out, and how long it took.
import fs from 'node:fs';

/** USER_HZ, the same on every Linux that Node runs on. */
const TICKS_PER_S = 100;

export class Checks {
  constructor() {
    this.results = [];
    this.figures = [];
    this.skipped = [];
    this.closed = false;
    this.print = (line) => console.log(line);
    this.flush = () => undefined;
  }

  /** Returns checks that count here and print a scenario when it has ended, so that two that run side by side do not mix their lines. */
  lane() {
    const held = [];
    return Object.assign(Object.create(this), {
      print: (line) => held.push(line),
      flush: () => console.log(held.splice(0).join('\n')),
    });
  }

  /** Ends the record: what a run that was given up still reports is about its end, and says nothing. */
  close() {
    this.closed = true;
  }

  /** Records one check; a failing one does not stop the others. `detail` is shown when it fails. */
  that(name, ok, detail = '') {
    if (this.closed) return Boolean(ok);
    this.results.push({ name, ok: Boolean(ok), detail: ok ? '' : text(detail) });
    this.print(`  ${ok ? 'ok  ' : 'FAIL'} ${name}${ok || !detail ? '' : `\n       ${text(detail).slice(0, 2_000).replace(/\n/gu, '\n       ')}`}`);
    return Boolean(ok);
  }

  /** Records a measured value for the report. */
  figure(name, value) {
    this.figures.push({ name, value });
    this.print(`  ${name}: ${value}`);
  }

  /** Says loudly that something was not run, and why. */
  skip(name, why) {
    this.skipped.push({ name, why });
    this.print(`  SKIPPED ${name}: ${why}`);
  }

  /** Runs one scenario; an exception in it is a failed check. */
  async scenario(name, work) {
    this.print(`\n${name}`);
    const started = performance.now();
    try {
      await work();
    } catch (error) {
      this.that(`${name} ran to its end`, false, error.stack ?? error);
    }
    this.print(`  (${Math.round((performance.now() - started) / 1000)} s)`);
    this.flush();
  }

  /** Prints the summary and returns the exit code; `seconds` is how long everything took. */
  summary(seconds) {
    const failed = this.results.filter(({ ok }) => !ok);
    console.log(
      `\n${this.results.length - failed.length} of ${this.results.length} checks passed in ${Math.round(seconds)} s${processorTime()}${this.skipped.length ? `, ${this.skipped.length} skipped` : ''}`,
    );
    for (const { name, why } of this.skipped) console.log(`SKIPPED ${name}: ${why}`);
    for (const { name, detail } of failed) console.log(`FAIL ${name}\n     ${detail.slice(0, 500)}`);
    return failed.length ? 1 : 0;
  }
}

/** Returns the processor seconds of this process and all that it started and has seen end; nothing where the system does not tell. */
function processorTime() {
  try {
    // Fields 14 to 17 of proc(5): user and system ticks, own and children's; the name in field 2 may hold spaces.
    const fields = fs.readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1).split(' ');
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return ` (${Math.round(ticks / TICKS_PER_S)} s of processor time)`;
  } catch {
    // Not Linux.
    return '';
  }
}

function text(value) {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 1);
}
