-- The search index of messages and atoms. It holds hashes of terms, numbers and vectors, no words.
DROP TABLE atoms_index;
DROP TABLE messages_index;

-- How far each index follows its table.
CREATE TABLE index_states (
    kind     INTEGER PRIMARY KEY,              -- 0 messages, 1 atoms
    format   INTEGER NOT NULL,                 -- of terms and vectors: another one is built again
    next_doc INTEGER NOT NULL DEFAULT 0,       -- documents are numbered from 0 in order of arrival
    last_row INTEGER NOT NULL DEFAULT 0,       -- rows up to this one are indexed
    layout   INTEGER NOT NULL DEFAULT 0        -- grows when segments change or documents go
);

-- Documents that are not in a segment yet.
CREATE TABLE index_tail (
    kind   INTEGER NOT NULL,
    doc    INTEGER NOT NULL,
    facts  BLOB NOT NULL,                      -- see index/facts.rs
    terms  BLOB NOT NULL,                      -- hash and count of each term, by hash
    vector BLOB NOT NULL,                      -- scale and 8-bit codes
    PRIMARY KEY (kind, doc)
) WITHOUT ROWID;

-- Documents [first, last) of a kind: facts and vectors in order, and where each block of terms begins.
CREATE TABLE index_segments (
    id        INTEGER PRIMARY KEY,
    kind      INTEGER NOT NULL,
    level     INTEGER NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    directory BLOB NOT NULL,
    facts     BLOB NOT NULL,
    vectors   BLOB NOT NULL
);
CREATE INDEX index_segments_order ON index_segments (kind, first);

CREATE TABLE index_blocks (
    id   INTEGER PRIMARY KEY,                  -- segment * 2^20 + place
    data BLOB NOT NULL                         -- see index/segment.rs
);

-- Rows whose document has to leave the index; `again`: and to enter it anew.
CREATE TABLE index_gone (
    kind  INTEGER NOT NULL,
    row   INTEGER NOT NULL,
    again INTEGER NOT NULL,
    PRIMARY KEY (kind, row)
) WITHOUT ROWID;
CREATE TRIGGER messages_leave_index AFTER DELETE ON messages BEGIN
    INSERT OR REPLACE INTO index_gone VALUES (0, old.id, 0);
END;
CREATE TRIGGER messages_reenter_index AFTER UPDATE OF text, scope, session ON messages BEGIN
    INSERT OR REPLACE INTO index_gone VALUES (0, old.id, 1);
END;
CREATE TRIGGER atoms_leave_index AFTER DELETE ON atoms BEGIN
    INSERT OR REPLACE INTO index_gone VALUES (1, old.id, 0);
END;
CREATE TRIGGER atoms_reenter_index AFTER UPDATE OF text, scope, session ON atoms BEGIN
    INSERT OR REPLACE INTO index_gone VALUES (1, old.id, 1);
END;
