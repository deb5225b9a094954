#!/usr/bin/env python3
"""Kills `strata import` at random moments with SIGKILL, finishes the import, and checks what is on disk.

Each round starts with an empty directory: import, kill after a random time (some rounds twice), import again to the end.
Then every message must be there once, and SQLite must find no damage. The moments come from the seed, which is printed.

Usage: kill_import.py STRATA [--file CONVERSATION] [--rounds 50] [--seed N]

Without --file it takes the first space of LoCoMo from the shared corpora ($STRATA_SHARED or ../shared). If they are not
there, it says so and takes the conversation in examples/.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Messages a durable step: small, so that kills fall between and inside of many of them.
BATCH = 5


def conversation():
    shared = pathlib.Path(os.environ.get("STRATA_SHARED", ROOT / "../shared"))
    found = sorted(shared.glob("corpora/locomo/*.json"))
    if found:
        return found[0]
    print(f"kill_import: NO SHARED CORPORA at {shared}; using examples/lena.md instead", file=sys.stderr)
    return ROOT / "examples/lena.md"


def start(strata, data, file):
    command = [strata, "import", str(file), "--batch", str(BATCH), "--data", str(data), "--json", "--quiet"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(strata, data, file):
    process = start(strata, data, file)
    out, err = process.communicate(timeout=300)
    if process.returncode != 0:
        raise SystemExit(f"the import ended with {process.returncode}: {err or out}")
    return json.loads(out)


def rows(data, check=True):
    """Returns the number of messages and of distinct ones, read from a copy, and fails on damage."""
    with tempfile.TemporaryDirectory() as folder:
        for end in ["", "-wal"]:
            if (data / f"strata.db{end}").exists():
                shutil.copy(data / f"strata.db{end}", pathlib.Path(folder) / f"strata.db{end}")
        path = pathlib.Path(folder) / "strata.db"
        if not path.exists() or path.stat().st_size == 0:
            return 0, 0
        db = sqlite3.connect(path)
        try:
            if check:
                verdict = db.execute("PRAGMA integrity_check").fetchall()
                if verdict != [("ok",)]:
                    raise SystemExit(f"integrity_check: {verdict}")
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'messages'").fetchone():
                return 0, 0
            return db.execute("SELECT count(*), count(DISTINCT session || '/' || host_id) FROM messages").fetchone()
        finally:
            db.close()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("strata")
    arguments.add_argument("--file", type=pathlib.Path)
    arguments.add_argument("--rounds", type=int, default=50)
    arguments.add_argument("--seed", type=int, default=int(time.time()))
    options = arguments.parse_args()
    strata = str(pathlib.Path(options.strata).resolve())
    file = options.file or conversation()
    chance = random.Random(options.seed)
    work = pathlib.Path(tempfile.mkdtemp(prefix="strata-kill-"))
    try:
        clean = work / "clean"
        begun = time.monotonic()
        report = finish(strata, clean, file)
        whole = time.monotonic() - begun
        want = report["messages"]
        if rows(clean) != (want, want):
            raise SystemExit(f"a clean import has {rows(clean)} rows, and says {want}")
        print(f"{file.name}: {want} messages, a clean import takes {whole:.2f} s; seed {options.seed}")
        at_kill, kills = [], 0
        while len(at_kill) < options.rounds:
            data = work / f"round-{kills}"
            for _ in range(chance.choice([1, 1, 1, 2])):
                process = start(strata, data, file)
                time.sleep(chance.uniform(0, whole))
                if process.poll() is not None:
                    continue  # It was done before the moment came; that is no kill.
                process.send_signal(signal.SIGKILL)
                process.communicate()
                kills += 1
                at_kill.append(rows(data)[0])
            finish(strata, data, file)
            got = rows(data)
            if got != (want, want):
                raise SystemExit(f"kill {kills}: {got[0]} rows, {got[1]} of them distinct; wanted {want} (seed {options.seed})")
            if finish(strata, data, file)["stored"] != 0:
                raise SystemExit(f"kill {kills}: importing once more stored something (seed {options.seed})")
            shutil.rmtree(data)
        between = sum(1 for count in at_kill if 0 < count < want)
        print(f"{kills} kills, {between} of them with some but not all messages on disk ({min(at_kill)} to {max(at_kill)})")
        print(f"after each: integrity_check ok; after finishing: {want} of {want} messages, none twice, a repeat adds none")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
