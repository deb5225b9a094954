-- Whose rows: reads filter by scope before they rank.
CREATE TABLE scopes (
    id    INTEGER PRIMARY KEY,
    team  TEXT NOT NULL,
    user  TEXT NOT NULL,
    agent TEXT NOT NULL,
    UNIQUE (team, user, agent)
);

CREATE TABLE sessions (
    id             INTEGER PRIMARY KEY,
    scope          INTEGER NOT NULL REFERENCES scopes (id),
    name           TEXT NOT NULL,              -- the host's session key
    created_at     INTEGER NOT NULL,
    active_at      INTEGER NOT NULL,           -- the latest event of the session
    ended_at       INTEGER,                    -- set by session-end, cleared by the next message
    end_reason     TEXT,
    l1_batches     INTEGER NOT NULL DEFAULT 0, -- L1 batches stored so far: the warm-up's round
    last_scene     TEXT NOT NULL DEFAULT '',   -- scene name of the newest L1 batch, for continuity
    UNIQUE (scope, name)
);

-- L0: every message as it was said, cleaned of what memory and hosts had wrapped around it.
CREATE TABLE messages (
    id           INTEGER PRIMARY KEY,          -- grows: the order of arrival
    uid          TEXT NOT NULL UNIQUE,         -- m_<16 hex>, a function of identity alone
    scope        INTEGER NOT NULL REFERENCES scopes (id),
    session      INTEGER NOT NULL REFERENCES sessions (id),
    host_id      TEXT,                         -- the host's id, if it has one
    digest       BLOB NOT NULL,                -- SHA-256 of role and cleaned text, 16 bytes
    occurrence   INTEGER NOT NULL,             -- which of the equal messages of the session
    role         TEXT NOT NULL,
    speaker      TEXT,
    text         TEXT NOT NULL,
    said_at      INTEGER NOT NULL,
    recorded_at  INTEGER NOT NULL,
    worth        INTEGER NOT NULL,             -- 1: may be distilled; 0: stored, but noise to L1
    batch        INTEGER,                      -- the L1 batch that took it; NULL: waits
    UNIQUE (session, digest, occurrence)
);
CREATE UNIQUE INDEX messages_host_id ON messages (session, host_id) WHERE host_id IS NOT NULL;
CREATE INDEX messages_waiting ON messages (session, id) WHERE batch IS NULL;
CREATE INDEX messages_session ON messages (session, id);
CREATE INDEX messages_batch ON messages (batch) WHERE batch IS NOT NULL;

-- What capture did not keep, once a message, without its text.
CREATE TABLE drops (
    session    INTEGER NOT NULL REFERENCES sessions (id),
    digest     BLOB NOT NULL,
    occurrence INTEGER NOT NULL,
    reason     TEXT NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (session, digest, occurrence)
) WITHOUT ROWID;

-- L1: one self-contained fact. Rows are never overwritten; what ends is a row's validity.
CREATE TABLE atoms (
    id             INTEGER PRIMARY KEY,
    uid            TEXT NOT NULL UNIQUE,       -- a_<16 hex>
    scope          INTEGER NOT NULL REFERENCES scopes (id),
    session        INTEGER NOT NULL REFERENCES sessions (id),
    kind           TEXT NOT NULL,              -- persona, episodic, instruction
    text           TEXT NOT NULL,
    priority       INTEGER NOT NULL,           -- 0 to 100; -1: absolute instruction
    scene          TEXT NOT NULL DEFAULT '',
    origin         TEXT NOT NULL,              -- user, assistant, tool, human, rules
    attribute      TEXT,                       -- what the fact is about, where a rule knows it
    valid_from     INTEGER NOT NULL,           -- when it became true
    valid_to       INTEGER,                    -- when it stopped being true
    believed_from  INTEGER NOT NULL,           -- when it was written
    believed_to    INTEGER,                    -- when another atom took its place
    event_start    INTEGER,                    -- episodic: when it happened
    event_end      INTEGER,
    pinned         INTEGER NOT NULL DEFAULT 0,
    metadata       TEXT NOT NULL DEFAULT '{}',
    batch          INTEGER                     -- the batch that made it
);
CREATE INDEX atoms_current ON atoms (scope, id) WHERE believed_to IS NULL;
CREATE INDEX atoms_attribute ON atoms (scope, attribute) WHERE attribute IS NOT NULL AND believed_to IS NULL;
CREATE INDEX atoms_session ON atoms (session);
CREATE INDEX atoms_batch ON atoms (batch) WHERE batch IS NOT NULL;

-- Why an atom is believed: the messages and the words in them.
CREATE TABLE evidence (
    atom    INTEGER NOT NULL REFERENCES atoms (id) ON DELETE CASCADE,
    message INTEGER NOT NULL REFERENCES messages (id),
    quote   TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (atom, message)
) WITHOUT ROWID;
CREATE INDEX evidence_message ON evidence (message);

-- How atoms follow each other: `newer` takes the place of `older`.
CREATE TABLE links (
    newer INTEGER NOT NULL REFERENCES atoms (id) ON DELETE CASCADE,
    older INTEGER NOT NULL REFERENCES atoms (id) ON DELETE CASCADE,
    kind  TEXT NOT NULL,                       -- supersedes, merges
    at    INTEGER NOT NULL,
    PRIMARY KEY (newer, older)
) WITHOUT ROWID;
CREATE INDEX links_older ON links (older);

-- Units of slow work. A batch holds its input by reference, its progress, and why it failed.
CREATE TABLE batches (
    id         INTEGER PRIMARY KEY,
    layer      TEXT NOT NULL,                  -- l1, l2, l3, embed, offload
    scope      INTEGER REFERENCES scopes (id),
    session    INTEGER REFERENCES sessions (id),
    state      TEXT NOT NULL,                  -- due, asked, done, dead
    stage      TEXT NOT NULL DEFAULT '',       -- which step of the layer comes next
    draft      TEXT NOT NULL DEFAULT '',       -- JSON: what earlier steps worked out
    attempts   INTEGER NOT NULL DEFAULT 0,
    due_at     INTEGER NOT NULL,
    reason     TEXT NOT NULL DEFAULT '',       -- why the last attempt failed
    created_at INTEGER NOT NULL,
    done_at    INTEGER
);
CREATE INDEX batches_open ON batches (state, due_at) WHERE state IN ('due', 'asked');
CREATE INDEX batches_layer ON batches (layer, scope, id);

-- The ledger: each request to a model, what it answered, what that changed.
CREATE TABLE requests (
    id            INTEGER PRIMARY KEY,         -- the host sees r<id>
    batch         INTEGER NOT NULL REFERENCES batches (id),
    kind          TEXT NOT NULL,               -- llm, embedding
    purpose       TEXT NOT NULL,
    body          TEXT NOT NULL,               -- JSON of the request
    state         TEXT NOT NULL,               -- asked, answered, failed, abandoned
    asked_at      INTEGER NOT NULL,
    answered_at   INTEGER,
    answer        TEXT,
    reason        TEXT NOT NULL DEFAULT '',
    model         TEXT NOT NULL DEFAULT '',
    input_tokens  INTEGER,
    output_tokens INTEGER,
    changed       TEXT NOT NULL DEFAULT '[]'   -- JSON: ids of what the answer made or ended
);
CREATE INDEX requests_batch ON requests (batch);
CREATE INDEX requests_asked ON requests (state) WHERE state = 'asked';

-- Small facts about the space itself.
CREATE TABLE space (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
