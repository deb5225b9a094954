# Strata's commands. Each sets up what it needs: `make demo` and `make test` work on a fresh clone with a C compiler,
# Python 3, Node 20 and rustup. Everything that is built goes to target/ (CARGO_TARGET_DIR is obeyed) and js-shim/.

CARGO ?= cargo
NPM ?= npm
NODE ?= node

TARGET := $(or $(CARGO_TARGET_DIR),target)
COMPONENT := $(TARGET)/wasm32-wasip2/component/strata_component.wasm
RUNNER := $(TARGET)/release/strata

# What the tests may take on a cold machine, downloads included; what has no time left says so and is skipped.
TEST_LIMIT_S ?= 1140
STARTED := $(shell date +%s)

# Node parts are built and tested where Node and npm exist.
HAVE_NODE := $(shell command -v $(NODE) >/dev/null 2>&1 && command -v $(NPM) >/dev/null 2>&1 && echo yes)

.PHONY: demo test component runner node test-core test-hosts test-node test-node-versions test-openclaw test-openclaw-quick test-openclaw-in-time fetch-openclaw fmt-check clippy clean proof-kill proof-simulation proof-throughput proof-offload measure-offload measure-offload-speed measure-tokens test-mermaid side-by-side bench

## demo: remember a conversation of some weeks, and show what enters the next prompt
demo: runner
	$(RUNNER) demo

## test: every test; ends with one line that says so
test: fetch-openclaw fmt-check test-core test-hosts test-node test-openclaw-in-time
	@echo "strata: all tests passed"

## component: the engine as a WebAssembly component
component:
	rustup target add wasm32-wasip2 2>/dev/null || true
	$(CARGO) build --quiet -p strata-component --target wasm32-wasip2 --profile component
	@echo "$(COMPONENT): $$(wc -c < $(COMPONENT)) bytes"

## runner: the `strata` command
runner: component
	$(CARGO) build --quiet --release -p strata-host
	@$(RUNNER) config-schema >/dev/null # compiles the component for this machine, once

## proof-kill: kill -9 during 50 imports; needs the shared corpora, else it takes the example
proof-kill: runner
	python3 tests/proofs/kill_import.py $(RUNNER)

## proof-simulation: random lives of a space under crashes, full disks and wrong answers; SEEDS=0..1000 chooses them
proof-simulation:
	STRATA_SEEDS=$(or $(SEEDS),0..1000) $(CARGO) test --release -p strata-tests --test simulation -- --nocapture

## proof-throughput: the same import and questions on the core, in wasmtime and on Node, as ratios; needs the shared corpora
proof-throughput: runner node
	$(CARGO) build --quiet --release -p strata-tests --features hosts --example throughput
	python3 tests/proofs/throughput.py $(TARGET)/release/examples/throughput

## proof-offload: a million random lists keep what must stay; 20,000 give the same bytes on core, wasmtime and Node
proof-offload: node
	STRATA_OFFLOAD_CASES=$(or $(CASES),1000000) $(CARGO) test --release -p strata-tests --test offload_properties -- --nocapture
	STRATA_OFFLOAD_DRIVER_CASES=$(or $(DRIVER_CASES),20000) $(CARGO) test --release -p strata-tests --features hosts --test offload_drivers -- --nocapture
ifeq ($(HAVE_NODE),yes)
	rm -rf $(TARGET)/offload-drivers/node
	$(NODE) js-shim/bin/strata-conformance.js $(TARGET)/offload-drivers/scenarios --transcripts $(TARGET)/offload-drivers/node
	diff -r $(TARGET)/offload-drivers/core $(TARGET)/offload-drivers/node
	@echo "strata: core, wasmtime and Node give the same bytes"
endif

## measure-offload: recorded sessions in STRATA_SHARED/sessions: tokens, facts within reach, strings in sight, prefixes
measure-offload:
	$(CARGO) test --release -p strata-tests --test offload_recordings -- --nocapture

## measure-offload-speed: milliseconds of assemble in wasmtime for 600 to 6,000 messages; wants a quiet machine
measure-offload-speed: component
	$(CARGO) test --release -p strata-tests --features hosts --test offload_figures -- --ignored --nocapture

## test-mermaid: every canvas of a space of hostile words, parsed by the real mermaid package
test-mermaid: node
	cd tests/mermaid && $(NPM) ci --silent --no-audit --no-fund && $(NPM) test --silent

## side-by-side: headroom-ai and context-mode on SESSIONS="a.json b.json" (unpacked); PYTHON has headroom-ai
side-by-side: runner
	cd tests/side_by_side && $(NPM) ci --silent --no-audit --no-fund
	$(NODE) tests/side_by_side/compare.mjs $(RUNNER) $(or $(PYTHON),python3) $(SESSIONS)

## measure-tokens: the token estimate against o200k_base on SESSIONS="a.json b.json"
measure-tokens: node
	cd tests/side_by_side && $(NPM) ci --silent --no-audit --no-fund
	$(NODE) tests/side_by_side/token_error.mjs $(SESSIONS)

## node: the npm package
node: component
ifeq ($(HAVE_NODE),yes)
	cd js-shim && $(NPM) ci --silent --no-audit --no-fund && $(NPM) run --silent build
else
	@echo "strata: no node and npm; the npm package is not built"
endif

## bench: recall's speed, size and cost of writing beside the peers from PyPI, in one run; writes docs/benchmarks.md.
##        STRATA_SHARED names the folder of the shared corpora, without which texts are made from a seed.
bench: runner node
	$(CARGO) build --quiet --release -p strata-tests --features hosts --bin strata-bench
	python3 -m venv $(TARGET)/bench-venv
	$(TARGET)/bench-venv/bin/pip install --quiet -r tests/bench/requirements.txt
	$(TARGET)/bench-venv/bin/python tests/bench/bench.py --ours $(TARGET)/release/strata-bench $(if $(HAVE_NODE),--node js-shim) \
		--corpora $(or $(STRATA_SHARED),../shared)/corpora --million --write docs/benchmarks.md

test-core:
	$(CARGO) test --quiet -p strata-core

# The runner's own binary is built with its tests, and the scenarios run on the core and in wasmtime.
test-hosts: component
	$(CARGO) test --quiet --release -p strata-host -p strata-tests --features strata-tests/hosts

test-node: node runner
ifeq ($(HAVE_NODE),yes)
	cd js-shim && $(NPM) test --silent
	$(NODE) --test --test-reporter=dot tests/openclaw/*.test.mjs
else
	@echo "strata: no node and npm; the npm package is NOT TESTED"
endif

## test-node-versions: the Node package on Node 20, 22, 24 and 26, which it fetches; transcripts must be alike
test-node-versions: node
	cd js-shim && $(NPM) run --silent test:versions

## test-openclaw: the plugin in a real OpenClaw from npm, on Node 24 and 26, beside mem0; STRATA_OPENCLAW=skip leaves it out
test-openclaw: node
ifeq ($(HAVE_NODE),yes)
	$(NODE) tests/openclaw/run.mjs
else
	@echo "strata: no node and npm; the OpenClaw plugin is NOT TESTED"
endif

## test-openclaw-quick: install, two sessions, tools and exactly once in a real OpenClaw: the part that every run affords
test-openclaw-quick: node
ifeq ($(HAVE_NODE),yes)
	$(NODE) tests/openclaw/quick.mjs
else
	@echo "strata: no node and npm; the OpenClaw plugin is NOT TESTED"
endif

# As part of `make test`: OpenClaw (850 MB) is fetched while the compiler works, and the test runs if the time suffices.
fetch-openclaw:
ifeq ($(HAVE_NODE),yes)
	@$(NODE) tests/openclaw/quick.mjs --fetch
endif

test-openclaw-in-time: node
ifeq ($(HAVE_NODE),yes)
	$(NODE) tests/openclaw/quick.mjs --until $$(($(STARTED) + $(TEST_LIMIT_S)))
endif

fmt-check:
	$(CARGO) fmt --all --check

## clippy: every lint, on every target
clippy: component
	$(CARGO) clippy --quiet --features strata-tests/hosts -- -D warnings
	$(CARGO) clippy --quiet --all-targets --features strata-tests/hosts -- -D warnings -A clippy::panic # what tests call may end them
	$(CARGO) clippy --quiet -p strata-component --target wasm32-wasip2 -- -D warnings

clean:
	$(CARGO) clean
	rm -rf js-shim/dist js-shim/types js-shim/node_modules
