-- L2 takes atoms as L1 takes messages: by naming its batch in the row.
ALTER TABLE atoms ADD COLUMN scene_batch INTEGER; -- the L2 batch that took it; NULL: waits
CREATE INDEX atoms_unscened ON atoms (scope, id) WHERE scene_batch IS NULL AND believed_to IS NULL;
CREATE INDEX atoms_scene_batch ON atoms (scene_batch) WHERE scene_batch IS NOT NULL;

-- Where a scope's files lie: the first scope of a space at its root, others under scopes/.
CREATE TABLE folders (
    scope  INTEGER PRIMARY KEY REFERENCES scopes (id),
    folder TEXT NOT NULL UNIQUE                -- empty, or scopes/<name>/
);

-- L2 and L3: Markdown pages. The rows are the truth, the files are projections.
CREATE TABLE pages (
    id          INTEGER PRIMARY KEY,
    uid         TEXT NOT NULL UNIQUE,          -- s_<16 hex> for a scene, p_<16 hex> for a persona
    scope       INTEGER NOT NULL REFERENCES scopes (id),
    kind        TEXT NOT NULL,                 -- scene, persona
    path        TEXT NOT NULL,                 -- of the file, relative to the data directory
    revision    INTEGER NOT NULL,              -- the current one
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    archived_at INTEGER,
    merged_into INTEGER REFERENCES pages (id)
);
CREATE UNIQUE INDEX pages_path ON pages (path) WHERE archived_at IS NULL;
CREATE INDEX pages_scope ON pages (scope, kind) WHERE archived_at IS NULL;

CREATE TABLE revisions (
    page    INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    number  INTEGER NOT NULL,
    body    TEXT NOT NULL,                     -- Markdown with the ids behind each block in comments
    summary TEXT NOT NULL DEFAULT '',
    heat    INTEGER NOT NULL DEFAULT 0,
    author  TEXT NOT NULL,                     -- model, rules, human, imported
    how     TEXT NOT NULL,                     -- create, update, merge, archive, file, edit, rollback, forget, import
    hand    TEXT NOT NULL DEFAULT '[]',        -- JSON: texts of the blocks that a human wrote
    hash    TEXT NOT NULL,                     -- SHA-256 of body, hex
    beats   INTEGER,                           -- the revision that this one set aside in a conflict
    pruned  INTEGER NOT NULL DEFAULT 0,        -- 1: the body was dropped by backupCount
    batch   INTEGER,                           -- the batch that made it
    at      INTEGER NOT NULL,
    PRIMARY KEY (page, number)
) WITHOUT ROWID;
CREATE INDEX revisions_batch ON revisions (batch) WHERE batch IS NOT NULL;

-- What each block of a revision rests on. Atoms by public id: they may expire before the page.
CREATE TABLE grounds (
    page     INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    place    INTEGER NOT NULL,                 -- which block, from 0
    atom     TEXT NOT NULL,
    PRIMARY KEY (page, revision, place, atom),
    FOREIGN KEY (page, revision) REFERENCES revisions (page, number) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX grounds_atom ON grounds (atom);

-- Atoms whose statement a human removed from a page: no model may bring it back.
CREATE TABLE struck (
    page INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    atom TEXT NOT NULL,
    PRIMARY KEY (page, atom)
) WITHOUT ROWID;

-- L3's memory of what it has seen, a scope.
CREATE TABLE persona_states (
    scope     INTEGER PRIMARY KEY REFERENCES scopes (id),
    requested TEXT,                            -- why somebody asked for a new persona; NULL: nobody
    asked_at  INTEGER,
    lost_at   INTEGER,                         -- when the body was found empty
    seen_atom INTEGER NOT NULL DEFAULT 0,      -- the newest atom when the last persona was made
    ran_at    INTEGER                          -- when L3 last finished
);
CREATE TABLE persona_seen (
    scope    INTEGER NOT NULL REFERENCES scopes (id),
    page     INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    revision INTEGER NOT NULL,                 -- the revision of the scene that the persona knows
    PRIMARY KEY (scope, page)
) WITHOUT ROWID;

-- Files that show pages. `shown` is the hash of what we last wrote: other bytes are a human's.
CREATE TABLE projections (
    path  TEXT PRIMARY KEY,
    page  INTEGER REFERENCES pages (id) ON DELETE SET NULL, -- NULL: the file has to go
    shown TEXT NOT NULL DEFAULT '',
    stale INTEGER NOT NULL DEFAULT 1           -- 1: the file may differ from the page
) WITHOUT ROWID;
CREATE INDEX projections_stale ON projections (stale) WHERE stale = 1;

-- Mirrors by day: how much of each file is ours. What is beyond is the ruin of a crash.
CREATE TABLE mirrors (
    path  TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
) WITHOUT ROWID;

-- Identities of forgotten messages (hashes, not text), so that a host that tells the whole session
-- again does not bring them back.
CREATE TABLE forgotten (
    identity TEXT PRIMARY KEY,                 -- m_<16 hex>, or h_<16 hex> of the host's id
    at       INTEGER NOT NULL
) WITHOUT ROWID;
