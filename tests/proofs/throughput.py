"""Imports all corpora and asks their questions on the core, in wasmtime and on Node, in turns, and prints the ratios.

    python3 tests/proofs/throughput.py target/release/examples/throughput [ROUNDS]

The same calls go to each host; the best of the rounds counts, because a shared machine is never faster than it is.
Needs the shared corpora (STRATA_SHARED, else ../shared).
"""

import json
import os
import subprocess
import sys
import tempfile

ROUNDS = 3

program = os.path.abspath(sys.argv[1])
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
shim = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "js-shim")


def run(command, directory=None):
    lines = subprocess.run(command, cwd=directory, check=True, stdout=subprocess.PIPE, text=True).stdout.strip().splitlines()
    if not lines or not lines[-1].startswith("{"):
        sys.exit(f"{command[0]} printed no figures: {lines[-1:]}")
    return json.loads(lines[-1])


with tempfile.TemporaryDirectory() as scratch:
    calls = os.path.join(scratch, "calls.jsonl")
    hosts = {
        "node": lambda: run(["node", "proofs/throughput.js", calls], shim),
        "core": lambda: run([program, "core", calls]),
        "wasmtime": lambda: run([program, "wasmtime", calls]),
    }
    best = {}
    for _ in range(rounds):
        for host, measure in hosts.items():
            figures = measure()
            print(json.dumps(figures), flush=True)
            if host not in best or figures["messages-per-second"] > best[host]["messages-per-second"]:
                best[host] = figures

core = best["core"]
if len({(figures["messages"], figures["atoms"]) for figures in best.values()}) != 1:
    sys.exit("the hosts did not do the same work")
for host, figures in best.items():
    slower = core["messages-per-second"] / figures["messages-per-second"]
    print(f"{host}: {figures['messages-per-second']} messages/s, {slower:.2f} times the core's time; recall p50 {figures['recall-p50-ms']} ms")
