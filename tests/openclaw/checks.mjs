// What was checked, what came out, and how long it took.

export class Checks {
  constructor() {
    this.results = [];
    this.figures = [];
    this.skipped = [];
    this.closed = false;
  }

  /** Ends the record: what a run that was given up still reports is about its end, and says nothing. */
  close() {
    this.closed = true;
  }

  /** Records one check; a failing one does not stop the others. `detail` is shown when it fails. */
  that(name, ok, detail = '') {
    if (this.closed) return Boolean(ok);
    this.results.push({ name, ok: Boolean(ok), detail: ok ? '' : text(detail) });
    console.log(`  ${ok ? 'ok  ' : 'FAIL'} ${name}${ok || !detail ? '' : `\n       ${text(detail).slice(0, 2_000).replace(/\n/gu, '\n       ')}`}`);
    return Boolean(ok);
  }

  /** Records a measured value for the report. */
  figure(name, value) {
    this.figures.push({ name, value });
    console.log(`  ${name}: ${value}`);
  }

  /** Says loudly that something was not run, and why. */
  skip(name, why) {
    this.skipped.push({ name, why });
    console.log(`  SKIPPED ${name}: ${why}`);
  }

  /** Runs one scenario; an exception in it is a failed check. */
  async scenario(name, work) {
    console.log(`\n${name}`);
    const started = performance.now();
    try {
      await work();
    } catch (error) {
      this.that(`${name} ran to its end`, false, error.stack ?? error);
    }
    console.log(`  (${Math.round((performance.now() - started) / 1000)} s)`);
  }

  /** Prints the summary and returns the exit code. */
  summary(seconds) {
    const failed = this.results.filter(({ ok }) => !ok);
    console.log(
      `\n${this.results.length - failed.length} of ${this.results.length} checks passed in ${Math.round(seconds)} s${this.skipped.length ? `, ${this.skipped.length} skipped` : ''}`,
    );
    for (const { name, why } of this.skipped) console.log(`SKIPPED ${name}: ${why}`);
    for (const { name, detail } of failed) console.log(`FAIL ${name}\n     ${detail.slice(0, 500)}`);
    return failed.length ? 1 : 0;
  }
}

function text(value) {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 1);
}
