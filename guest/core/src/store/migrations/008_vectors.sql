-- Vectors by embedding models of hosts, a generation a model. The built-in model's are in the index.
CREATE TABLE generations (
    id           INTEGER PRIMARY KEY,
    model        TEXT NOT NULL,
    dimensions   INTEGER NOT NULL,
    messages_to  INTEGER NOT NULL DEFAULT 0,   -- rows up to this one have a vector
    atoms_to     INTEGER NOT NULL DEFAULT 0,
    serves       INTEGER NOT NULL DEFAULT 0,   -- every row had one once: it answers queries
    asked        INTEGER NOT NULL DEFAULT 0,   -- the request in flight: the host sees e<asked>; 0: none
    asked_at     INTEGER NOT NULL DEFAULT 0,
    asked_kind   INTEGER NOT NULL DEFAULT 0,   -- 0 messages, 1 atoms, as in the index
    asked_rows   TEXT NOT NULL DEFAULT '[]',   -- JSON; the texts are not copied
    requests     INTEGER NOT NULL DEFAULT 0,   -- requests so far
    attempts     INTEGER NOT NULL DEFAULT 0,   -- failed ones since the last answer
    due_at       INTEGER NOT NULL DEFAULT 0,
    reason       TEXT NOT NULL DEFAULT '',     -- why the last one failed
    UNIQUE (model, dimensions)
);

CREATE TABLE host_vectors (
    generation INTEGER NOT NULL REFERENCES generations (id) ON DELETE CASCADE,
    kind       INTEGER NOT NULL,
    row        INTEGER NOT NULL,
    vector     BLOB NOT NULL,                  -- scale and 8-bit codes, as in the index
    PRIMARY KEY (generation, kind, row)
) WITHOUT ROWID;

-- A vector goes with its text; a row whose text has changed is embedded again.
CREATE TRIGGER messages_lose_vectors AFTER DELETE ON messages BEGIN
    DELETE FROM host_vectors WHERE generation IN (SELECT id FROM generations) AND kind = 0 AND row = old.id;
    UPDATE generations SET messages_to = min(messages_to, old.id - 1);
END;
CREATE TRIGGER messages_change_vectors AFTER UPDATE OF text ON messages BEGIN
    DELETE FROM host_vectors WHERE generation IN (SELECT id FROM generations) AND kind = 0 AND row = old.id;
    UPDATE generations SET messages_to = min(messages_to, old.id - 1);
END;
CREATE TRIGGER atoms_lose_vectors AFTER DELETE ON atoms BEGIN
    DELETE FROM host_vectors WHERE generation IN (SELECT id FROM generations) AND kind = 1 AND row = old.id;
    UPDATE generations SET atoms_to = min(atoms_to, old.id - 1);
END;
CREATE TRIGGER atoms_change_vectors AFTER UPDATE OF text ON atoms BEGIN
    DELETE FROM host_vectors WHERE generation IN (SELECT id FROM generations) AND kind = 1 AND row = old.id;
    UPDATE generations SET atoms_to = min(atoms_to, old.id - 1);
END;
