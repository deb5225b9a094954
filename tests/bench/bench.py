#!/usr/bin/env python3
"""`make bench`: recall's speed, size and cost of writing beside what can be installed, in one run on one machine.

    bench.py --ours BINARY [--node DIR] [--work DIR] [--corpora DIR] [--sizes 1000,10000,100000] [--million]
             [--parts long,sizes,turns] [--peers Fts5,...] [--write FILE]

Everything runs on one CPU. Each peer gets the same texts and the same vectors; see peers.py. Times are what a process
computed (all its threads, user and system), because a clock on a shared machine shows the neighbours; figures are medians
and 95th percentiles over the queries. `--write` puts the tables between the marks of docs/benchmarks.md.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time

# Before anything that makes threads.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS", "LANCE_CPU_THREADS"):
    os.environ[name] = "1"

import documents as sources  # noqa: E402

LONG = 38_058
QUERIES = 200

# Seconds of questions after which a slow peer is asked no more, and the fewest questions that make a median.
PATIENCE_S = 20
FEWEST = 30
BEGIN, END = "<!-- speed: written by `make bench` -->", "<!-- end of speed -->"


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


class Bench:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(options.work or tempfile.mkdtemp(prefix="strata-bench-"))
        self.work.mkdir(parents=True, exist_ok=True)
        self.rows = []
        self.messages, self.atoms, queries, self.real = sources.load(options.corpora, 1)
        self.queries = queries[:QUERIES]
        self.query_file = self.work / "queries.json"
        self.query_file.write_text(json.dumps(self.queries))
        sizes = options.sizes + ([1_000_000] if options.million else [])
        self.atom_file = self.write("atoms.jsonl", (next(self.atoms) for _ in range(max(sizes))))
        self.long_file = self.write("long.jsonl", self.messages[:LONG])
        self.query_vectors = self.embed(self.write("queries.jsonl", ({"text": text} for text in self.queries)), len(self.queries))

    def write(self, name, documents):
        path = self.work / name
        with path.open("w") as file:
            for document in documents:
                file.write(json.dumps(document) + "\n")
        return path

    def texts(self, path, count):
        with path.open() as file:
            return [json.loads(line)["text"] for line, _ in zip(file, range(count))]

    def run(self, *arguments):
        out = subprocess.run([str(argument) for argument in arguments], check=True, stdout=subprocess.PIPE, text=True).stdout
        return json.loads(out.strip().splitlines()[-1])

    def ours(self, *arguments):
        return self.run(self.options.ours, *arguments)

    def embed(self, path, count):
        import numpy as np

        file = self.work / "vectors.f32"
        shape = self.ours("embed", path, count, file)
        return np.fromfile(file, dtype=np.float32).reshape(-1, shape["dimensions"])

    def note(self, group, what, peer, ours, theirs, wanted):
        """Keeps a line of the table: our figure, theirs, and how many times ours it is."""
        self.rows.append((group, what, peer, ours, theirs, theirs / ours if ours else float("nan"), wanted))
        say(f"{group} | {what} | {peer} | {ours:.3f} | {theirs:.3f} | {theirs / ours:.2f} | {wanted}")

    def fact(self, group, what, figure, wanted):
        self.rows.append((group, what, "", figure, None, None, wanted))
        say(f"{group} | {what} | {figure} | {wanted}")

    def space(self, name, layer, path, count):
        directory = self.work / f"space-{name}"
        shutil.rmtree(directory, ignore_errors=True)
        built = self.ours("build", directory, layer, path, count)
        return directory, built

    def peer(self, make, texts, vectors):
        """Returns the peer, filled, and how long that took; times of all queries; what it found."""
        directory = tempfile.mkdtemp(dir=self.work)
        begun = time.process_time()
        peer = make(texts, vectors, directory)
        built_ms = (time.process_time() - begun) * 1000
        times, found = [], []
        begun_asking = time.process_time()
        for text, vector in zip(self.queries[:20], self.query_vectors):
            peer.ask(text, vector)
            if time.process_time() - begun_asking > PATIENCE_S:
                break
        for text, vector in zip(self.queries, self.query_vectors):
            begun = time.process_time()
            found.append(peer.ask(text, vector))
            times.append((time.process_time() - begun) * 1000)
            if sum(times) > PATIENCE_S * 1000 and len(times) >= FEWEST:
                break
        shutil.rmtree(directory, ignore_errors=True)
        return peer, built_ms, times, found

    def ask(self, directory, layer, strategy):
        return self.ours("ask", directory, layer, strategy, self.query_file)

    # What is measured.

    def long_messages(self):
        import peers

        group = f"{LONG:,} long messages"
        texts = self.texts(self.long_file, LONG)
        directory, _ = self.space("long", "messages", self.long_file, LONG)
        ours = self.ask(directory, "messages", "keyword")["cpu-ms"]
        for make, wanted in ((peers.Fts5, "at least 20"), (peers.Tantivy, "at least 0.33"), (peers.Bm25s, "")):
            _, _, times, _ = self.peer(make, texts, self.query_vectors)
            self.note(group, "keyword top-10, p50 ms", make.__name__, percentile(ours, 0.5), percentile(times, 0.5), wanted)
            self.note(group, "keyword top-10, p95 ms", make.__name__, percentile(ours, 0.95), percentile(times, 0.95), "")

    def size(self, count):
        import peers

        group = f"{count:,} atoms"
        texts = self.texts(self.atom_file, count)
        vectors = self.embed(self.atom_file, count)
        directory, built = self.space(str(count), "atoms", self.atom_file, count)
        asked = {strategy: self.ask(directory, "atoms", strategy) for strategy in ("keyword", "vector", "hybrid")}
        ours = {strategy: asked[strategy]["cpu-ms"] for strategy in asked}
        large = count >= 100_000
        filled = {}
        for strategy, make, wanted in (
            ("keyword", peers.Fts5, ""),
            ("keyword", peers.Tantivy, ""),
            ("vector", peers.SqliteVec, "at least 10" if large else ""),
            ("vector", peers.Chroma, ""),
            ("hybrid", peers.Lance, "at least 10" if large else ""),
            ("hybrid", peers.Mem0, "at least 10" if large else ""),
        ):
            if self.options.peers and make.__name__ not in self.options.peers:
                continue
            try:
                peer, built_ms, times, _ = self.peer(make, texts, vectors)
            except Exception as error:  # noqa: BLE001 - a peer that fails is reported, not hidden
                say(f"{make.__name__} failed: {error}")
                self.fact(group, f"{make.__name__} failed: {type(error).__name__}", float("nan"), "")
                continue
            filled[make] = built_ms, peer.size() if hasattr(peer, "size") else None
            self.note(group, f"{strategy} top-10, p50 ms", make.__name__, percentile(ours[strategy], 0.5), percentile(times, 0.5), wanted)
        self.fact(group, "hybrid p95 ms", percentile(ours["hybrid"], 0.95), "below 10" if large else "")
        self.fact(group, "prompt built, p95 ms", percentile(asked["hybrid"]["prompt-ms"], 0.95), "")
        self.fact(group, "open to first recall, ms", asked["hybrid"]["open-to-first-cpu-ms"], "below 50" if large else "")
        self.fact(group, "resident MB after recall", asked["hybrid"]["resident-mb"], "below 150" if large else "")
        index_bytes = self.index_bytes(directory)
        if peers.Fts5 in filled and peers.SqliteVec in filled:
            theirs = filled[peers.Fts5][1] + filled[peers.SqliteVec][1]
            self.note(group, "bytes of the index, MB", "Fts5 + SqliteVec", index_bytes / 1e6, theirs / 1e6, "at least 2" if large else "")
            bulk = filled[peers.Fts5][0] + filled[peers.SqliteVec][0]
            self.note(group, "bulk, theirs an index of given vectors alone, ms", "Fts5 + SqliteVec", built["cpu-ms"], bulk, "at least 3" if large else "")
            stored_ms = peers.stored_together(texts, vectors, self.work)
            self.note(group, "bulk, theirs with the texts in a table, ms", "Fts5 + SqliteVec", built["cpu-ms"], stored_ms, "at least 3" if large else "")
        self.recall(group, directory, texts, vectors)
        self.node(group, directory, ours)
        return percentile(ours["hybrid"], 0.5)

    def index_bytes(self, directory):
        import apsw

        db = apsw.Connection(str(directory / "strata.db"), flags=apsw.SQLITE_OPEN_READWRITE)
        size = db.execute("SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'index_%'").fetchall()[0][0]
        db.close()
        return size

    def recall(self, group, directory, texts, vectors):
        """The share of the ten nearest by exact search that a search by vector finds."""
        import peers

        exact = peers.Exact(texts, vectors, None)
        found = self.ours("found", directory, "atoms", "vector", self.query_file)["found"]
        held = 0
        for vector, mine in zip(self.query_vectors, found):
            nearest = {texts[place] for place in exact.ask("", vector)}
            held += len(nearest.intersection(mine)) / len(nearest)
        self.fact(group, "vector recall@10 against exact search", held / len(found), "at least 0.99")

    def node(self, group, directory, ours):
        if not self.options.node:
            return
        script = pathlib.Path(__file__).with_name("node.mjs")
        for strategy in ("keyword", "vector", "hybrid"):
            times = self.run("node", script, self.options.node, directory, strategy, self.query_file)["cpu-ms"]
            self.note(group, f"{strategy} top-10 in Node, p50 ms", "Node", percentile(ours[strategy], 0.5), percentile(times, 0.5), "at most 2.5")

    def million(self, at_100k):
        group = "1,000,000 atoms"
        directory, built = self.space("1m", "atoms", self.atom_file, 1_000_000)
        for strategy in ("keyword", "vector", "hybrid"):
            asked = self.ask(directory, "atoms", strategy)
            times = asked["cpu-ms"]
            self.fact(group, f"{strategy} p50 ms", percentile(times, 0.5), "")
            self.fact(group, f"{strategy} p95 ms", percentile(times, 0.95), "below 50" if strategy == "hybrid" else "")
        if at_100k:
            self.fact(group, "growth of hybrid p50 from 100,000", percentile(times, 0.5) / at_100k, "at most 8")
        self.fact(group, "open to first recall, ms", asked["open-to-first-cpu-ms"], "")
        self.fact(group, "memory of the guest, MB", asked["guest-mb"], "")
        self.fact(group, "stored and indexed, s", built["cpu-ms"] / 1000, "")

    def turns(self):
        directory, _ = self.space("turns", "messages", self.long_file, 2000)
        told = self.ours("turns", directory, 500)
        assert told["found"] == 2 * told["turns"], "each turn is searchable when the call returns"
        for key, by in (("times-ms", "by the clock"), ("cpu-ms", "computed")):
            self.fact("a turn of two messages, durable and searchable", f"p50 ms, {by}", percentile(told[key], 0.5), "")
            self.fact("a turn of two messages, durable and searchable", f"p99 ms, {by}", percentile(told[key], 0.99), "below 5")

    def table(self):
        lines = ["| what | figure | Strata | beside | theirs | ratio | wanted |", "| --- | --- | --- | --- | --- | --- | --- |"]
        number = lambda value: "" if value is None else f"{value:.3g}" if value < 100 else f"{value:,.0f}"
        for group, what, peer, ours, theirs, ratio, wanted in self.rows:
            lines.append(f"| {group} | {what} | {number(ours)} | {peer} | {number(theirs)} | {number(ratio)} | {wanted} |")
        return "\n".join(lines)

    def conditions(self):
        cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
        load = os.getloadavg()[0]
        texts = "of the shared corpora" if self.real else "made from a seed"
        return (
            f"`make bench`, {time.strftime('%Y-%m-%d')}; {cpu}, one CPU of {os.cpu_count()}, load {load:.1f} at the end; texts {texts}, "
            f"{len(self.queries)} queries. Times are CPU time of the process. A ratio is theirs over Strata's."
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--node", help="the npm package's directory")
    parser.add_argument("--work")
    parser.add_argument("--corpora", type=pathlib.Path)
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",") if size], default=[1000, 10_000, 100_000])
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--parts", default="long,sizes,turns", help="what to measure")
    parser.add_argument("--peers", type=lambda text: text.split(","), help="only these, as peers.py names them")
    parser.add_argument("--write", type=pathlib.Path)
    options = parser.parse_args()
    bench = Bench(options)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    parts = options.parts.split(",")
    at_100k = None
    if "turns" in parts:
        bench.turns()
    if "long" in parts:
        bench.long_messages()
    for size in options.sizes if "sizes" in parts else []:
        at_100k = bench.size(size)
    if options.million:
        bench.million(at_100k if options.sizes and options.sizes[-1] == 100_000 else None)
    text = f"{BEGIN}\n{bench.conditions()}\n\n{bench.table()}\n{END}"
    print(text)
    if options.write:
        page = options.write.read_text()
        before, mark, rest = page.partition(BEGIN)
        # A page without the marks gets the table at its end.
        options.write.write_text(before + text + rest.partition(END)[2] if mark else f"{page.rstrip()}\n\n{text}\n")
    if not options.work:
        shutil.rmtree(bench.work, ignore_errors=True)


if __name__ == "__main__":
    main()
