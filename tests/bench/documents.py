"""Documents and queries of `make bench`: of the shared corpora where they are, else made from a seed."""

import json
import lzma
import random
import re

# Longest and shortest sentence that counts as an atom, in characters: what L1 writes.
SENTENCE = range(30, 241)

# Words of the made-up language, and the exponent of their frequencies (English is near 1).
VOCABULARY = 60_000
ZIPF = 1.05


def load(corpora, seed=1):
    """Returns long messages, atoms without end (an iterator) and queries."""
    path = corpora and corpora / "beam-500k-speed.json.xz"
    source = json.load(lzma.open(path)) if path and path.is_file() else made(seed)
    messages = [{"session": str(m["session"]), "role": m["role"], "text": m["text"]} for m in source["messages"]]
    queries = list(source["queries"])
    random.Random(seed).shuffle(queries)
    return messages, atoms(messages, seed), queries, bool(path and path.is_file())


def atoms(messages, seed):
    """Yields the sentences of the messages in a seeded order, then again with a word of each exchanged."""
    seen, sentences = set(), []
    for message in messages:
        for sentence in re.split(r"(?<=[.!?])\s+|\n+", message["text"]):
            sentence = sentence.strip()
            if len(sentence) in SENTENCE and sentence not in seen and not sentence.startswith(("|", "`", "#", "//")):
                seen.add(sentence)
                sentences.append((message["session"], sentence))
    draw = random.Random(seed)
    draw.shuffle(sentences)
    words = [word for _, sentence in sentences[:20_000] for word in re.findall(r"[A-Za-z]{5,}", sentence)]
    place = 0
    while True:
        for session, sentence in sentences:
            if place >= len(sentences):
                parts = sentence.split(" ")
                parts[draw.randrange(len(parts))] = draw.choice(words)
                sentence = " ".join(parts)
            yield {"session": f"{session}.{place // 200_000}", "role": "user", "text": sentence}
            place += 1


def made(seed):
    """Returns long messages and questions in words that nobody speaks."""
    draw = random.Random(seed)
    syllables = [a + b for a in "bcdfghjklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "or", "el")]
    words = ["".join(draw.choice(syllables) for _ in range(draw.choice((1, 2, 2, 3, 3, 4)))) for _ in range(VOCABULARY)]
    weights, total = [], 0.0
    for rank in range(VOCABULARY):
        total += 1 / (rank + 1) ** ZIPF
        weights.append(total)

    def sentence():
        return " ".join(draw.choices(words, cum_weights=weights, k=draw.randrange(6, 22))).capitalize() + "."

    messages = []
    for session in range(350):
        for turn in range(108):
            text = " ".join(sentence() for _ in range(draw.randrange(4, 34)))
            messages.append({"session": session, "role": ("user", "assistant")[turn % 2], "text": text})
    queries = [" ".join(draw.choices(words[50:], k=6) + draw.choices(words, cum_weights=weights, k=10)) + "?" for _ in range(700)]
    return {"messages": messages, "queries": queries}
