"""The peers of `make bench`: each takes texts and vectors, and answers a query with the places of ten documents.

All run on one thread. Vectors come from Strata's embedder, so that no peer pays for a model; Strata embeds itself.
"""

import os
import re
import time

import numpy as np

TOP = 10
INSERTS = 5000


def words(text):
    return re.findall(r"\w+", text.lower())


class Fts5:
    """SQLite FTS5 with all terms of the query joined by OR, ordered by its BM25."""

    def __init__(self, texts, vectors, directory):
        import apsw

        self.db = apsw.Connection(os.path.join(directory, "fts5.db"))
        # The content is Strata's rows' business: only the index is compared.
        self.db.execute("CREATE VIRTUAL TABLE f USING fts5(t, content='')")
        with self.db:
            self.db.executemany("INSERT INTO f (rowid, t) VALUES (?, ?)", enumerate(texts, 1))

    def ask(self, text, vector):
        terms = " OR ".join(f'"{word}"' for word in words(text))
        return [row[0] - 1 for row in self.db.execute("SELECT rowid FROM f WHERE f MATCH ? ORDER BY bm25(f) LIMIT ?", (terms, TOP))]

    def size(self):
        return self.db.execute("SELECT sum(pgsize) FROM dbstat").fetchall()[0][0]


class Tantivy:
    """Native tantivy, its English stemmer, all terms by OR."""

    def __init__(self, texts, vectors, directory):
        import tantivy

        self.tantivy = tantivy
        schema = tantivy.SchemaBuilder().add_unsigned_field("place", stored=True).add_text_field("text", tokenizer_name="en_stem").build()
        self.index = tantivy.Index(schema)
        writer = self.index.writer(num_threads=1)
        for place, text in enumerate(texts):
            writer.add_document(tantivy.Document(place=place, text=text))
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()
        self.searcher = self.index.searcher()

    def ask(self, text, vector):
        query = self.index.parse_query(" ".join(words(text)), ["text"])
        return [self.searcher.doc(address)["place"][0] for _, address in self.searcher.search(query, TOP).hits]


class Bm25s:
    """bm25s, numpy backend."""

    def __init__(self, texts, vectors, directory):
        import bm25s

        self.bm25s = bm25s
        self.index = bm25s.BM25()
        self.index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def ask(self, text, vector):
        tokens = self.bm25s.tokenize([text], stopwords="en", show_progress=False, return_ids=False)
        places, _ = self.index.retrieve(tokens, k=TOP, show_progress=False)
        return places[0].tolist()


class SqliteVec:
    """sqlite-vec, float32, cosine."""

    def __init__(self, texts, vectors, directory):
        import apsw
        import sqlite_vec

        self.db = apsw.Connection(os.path.join(directory, "vec.db"))
        self.db.enable_load_extension(True)
        self.db.load_extension(sqlite_vec.loadable_path())
        self.db.execute(f"CREATE VIRTUAL TABLE v USING vec0(e float[{vectors.shape[1]}] distance_metric=cosine)")
        with self.db:
            self.db.executemany("INSERT INTO v (rowid, e) VALUES (?, ?)", ((place, v.tobytes()) for place, v in enumerate(vectors, 1)))

    def ask(self, text, vector):
        return [row[0] - 1 for row in self.db.execute("SELECT rowid FROM v WHERE e MATCH ? AND k = ?", (vector.tobytes(), TOP))]

    def size(self):
        return self.db.execute("SELECT sum(pgsize) FROM dbstat").fetchall()[0][0]


def stored_together(texts, vectors, directory):
    """Returns the CPU milliseconds that rows of texts, an FTS5 index of them and a table of sqlite-vec take in one transaction."""
    import apsw
    import sqlite_vec

    path = os.path.join(directory, "together.db")
    begun = time.process_time()
    db = apsw.Connection(path)
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, uid TEXT UNIQUE, text TEXT)")
    db.execute("CREATE VIRTUAL TABLE f USING fts5(text, content='t', content_rowid='id')")
    db.execute(f"CREATE VIRTUAL TABLE v USING vec0(e float[{vectors.shape[1]}] distance_metric=cosine)")
    with db:
        db.executemany("INSERT INTO t VALUES (?, ?, ?)", ((place, f"a_{place:016x}", text) for place, text in enumerate(texts, 1)))
        db.executemany("INSERT INTO f (rowid, text) VALUES (?, ?)", enumerate(texts, 1))
        db.executemany("INSERT INTO v (rowid, e) VALUES (?, ?)", ((place, v.tobytes()) for place, v in enumerate(vectors, 1)))
    took_ms = (time.process_time() - begun) * 1000
    db.close()
    for end in ("", "-wal", "-shm"):
        if os.path.exists(path + end):
            os.remove(path + end)
    return took_ms


class Chroma:
    """chromadb in memory: vectors only."""

    def __init__(self, texts, vectors, directory):
        import chromadb

        client = chromadb.EphemeralClient(chromadb.config.Settings(anonymized_telemetry=False))
        try:
            client.delete_collection("bench")
        except Exception:  # noqa: BLE001 - there is none at the first size
            pass
        self.collection = client.create_collection("bench", metadata={"hnsw:space": "cosine", "hnsw:num_threads": 1})
        for at in range(0, len(texts), INSERTS):
            part = slice(at, at + INSERTS)
            ids = [str(place) for place in range(at, min(at + INSERTS, len(texts)))]
            self.collection.add(ids=ids, embeddings=vectors[part], documents=list(texts[part]))

    def ask(self, text, vector):
        return [int(place) for place in self.collection.query(query_embeddings=[vector], n_results=TOP)["ids"][0]]


class Lance:
    """lancedb hybrid: its full-text index, its flat vector search, and its RRF."""

    def __init__(self, texts, vectors, directory):
        import lancedb
        import pyarrow as pa

        rows = pa.table(
            {
                "place": pa.array(range(len(texts))),
                "text": pa.array(list(texts)),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1]),
            }
        )
        self.table = lancedb.connect(directory).create_table("t", data=rows, mode="overwrite")
        self.table.create_fts_index("text")

    def ask(self, text, vector):
        found = self.table.search(query_type="hybrid").vector(vector).text(" ".join(words(text))).limit(TOP).to_list()
        return [row["place"] for row in found]


class Mem0:
    """mem0ai, infer=False, its default store (qdrant, local). Beyond 1,000 memories they are put into that store directly,
    with the payload that `add` makes: only the search is compared."""

    ADDED = 200

    def __init__(self, texts, vectors, directory):
        os.environ.update(OPENAI_API_KEY="unused", MEM0_TELEMETRY="False", MEM0_DIR=directory)
        import uuid

        from mem0 import Memory

        store = {"path": os.path.join(directory, "qdrant"), "collection_name": "bench", "embedding_model_dims": vectors.shape[1]}
        self.memory = Memory.from_config(
            {"vector_store": {"provider": "qdrant", "config": store}, "history_db_path": os.path.join(directory, "history.db")}
        )
        self.vector = None

        class Given:
            config = type("Config", (), {"embedding_dims": vectors.shape[1]})()
            embed = staticmethod(lambda text, action=None: self.vector)
            embed_batch = staticmethod(lambda texts, action=None: [self.vector for _ in texts])

        self.memory.embedding_model = Given()
        self.places = {text: place for place, text in enumerate(texts)}
        begun = time.perf_counter()
        for text, vector in list(zip(texts, vectors))[: self.ADDED]:
            self.vector = vector.tolist()
            self.memory.add(text, user_id="u", infer=False)
        self.add_ms = (time.perf_counter() - begun) * 1000 / min(self.ADDED, len(texts))
        for at in range(self.ADDED, len(texts), INSERTS):
            part = slice(at, at + INSERTS)
            payloads = [{"data": text, "hash": "", "user_id": "u", "role": "user", "created_at": "2026-01-01"} for text in texts[part]]
            self.memory.vector_store.insert(vectors[part].tolist(), payloads, [str(uuid.uuid4()) for _ in payloads])

    def ask(self, text, vector):
        self.vector = vector.tolist()
        return [self.places[found["memory"]] for found in self.memory.search(text, filters={"user_id": "u"}, top_k=TOP)["results"]]


class Exact:
    """Exact search over the vectors, for recall; not a peer."""

    def __init__(self, texts, vectors, directory):
        self.vectors = vectors

    def ask(self, text, vector):
        scores = self.vectors @ vector
        near = np.argpartition(-scores, TOP)[:TOP]
        return near[np.argsort(-scores[near], kind="stable")].tolist()
