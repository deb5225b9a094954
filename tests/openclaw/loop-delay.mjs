// Preloaded into the gateway by the latency scenario: writes how late its event loop was, second by second.
import fs from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const file = process.env.STRATA_LOOP_DELAY_FILE;
if (file && isMainThread) {
  const histogram = monitorEventLoopDelay({ resolution: 5 });
  histogram.enable();
  setInterval(() => {
    fs.appendFileSync(
      file,
      `${JSON.stringify({ at: Date.now(), p50: histogram.percentile(50) / 1e6, p99: histogram.percentile(99) / 1e6, max: histogram.max / 1e6 })}\n`,
    );
    histogram.reset();
  }, 1_000).unref();
}
