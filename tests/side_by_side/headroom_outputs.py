"""Runs headroom-ai's `compress` over the last list of a recorded session.

Usage: python headroom_outputs.py SESSION.json
Needs: pip install headroom-ai. headroom fetches no model here; it works by its rules.
Prints one JSON document: the tool outputs as they are afterwards, how many are the same or come back from headroom's
store by a mark that the text shows, and the milliseconds of the call.
"""

import json
import pathlib
import re
import sys
import time


def plain(message):
    """The members that chat APIs know."""
    return {key: message[key] for key in ("role", "content", "tool_calls", "tool_call_id", "name") if message.get(key) is not None}


def comes_back(before, after, store):
    if before == after:
        return True
    found = (store.retrieve(mark) for mark in set(re.findall(r"[0-9a-f]{8,64}", after)))
    return any(entry is not None and entry.original_content == before for entry in found)


def main():
    from headroom import compress
    from headroom.cache.compression_store import get_compression_store

    messages = [plain(message) for message in json.loads(pathlib.Path(sys.argv[1]).read_text())["messages"]]
    before = [message["content"] for message in messages if message["role"] == "tool"]
    start = time.perf_counter()
    result = compress(messages, model="gpt-4o", model_limit=200_000)
    took = (time.perf_counter() - start) * 1000
    after = [message.get("content") or "" for message in result.messages if message.get("role") == "tool"]
    after = [text if isinstance(text, str) else json.dumps(text) for text in after]
    store = get_compression_store()
    exact = sum(comes_back(*pair, store) for pair in zip(before, after))
    print(json.dumps({"outputs": after, "exact": exact, "ms": took}))


if __name__ == "__main__":
    main()
