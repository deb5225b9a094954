-- Texts that left a context, by content. The file is durable before its row is.
CREATE TABLE offload_refs (
    path       TEXT PRIMARY KEY,               -- refs/<16 hex>.md, relative to the data directory
    sha256     TEXT NOT NULL,
    bytes      INTEGER NOT NULL,               -- of the content
    disk_bytes INTEGER NOT NULL,               -- of the file, which may be compressed
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Which session may read which text, and why it is kept.
CREATE TABLE offload_uses (
    session INTEGER NOT NULL REFERENCES sessions (id),
    path    TEXT NOT NULL REFERENCES offload_refs (path),
    kind    TEXT NOT NULL,                     -- result, arguments, reasoning, said
    call_id TEXT NOT NULL DEFAULT '',
    at      INTEGER NOT NULL,                  -- the last time a context pointed here
    PRIMARY KEY (session, path, kind, call_id)
) WITHOUT ROWID;
CREATE INDEX offload_uses_path ON offload_uses (path);

-- One row a tool call of a session, in the order of delivery.
CREATE TABLE offload_entries (
    id            INTEGER PRIMARY KEY,
    uid           TEXT NOT NULL UNIQUE,        -- o_<16 hex>
    session       INTEGER NOT NULL REFERENCES sessions (id),
    ordinal       INTEGER NOT NULL,
    call_id       TEXT NOT NULL,
    result_print  INTEGER NOT NULL,            -- fingerprint of the result: a host may reuse ids of calls
    result_bytes  INTEGER NOT NULL,
    node_id       TEXT NOT NULL,               -- 001-N1; moves only when a boundary is corrected
    placed_node   TEXT NOT NULL,               -- the node that placeholders name, for good
    tool          TEXT NOT NULL,
    call_line     TEXT NOT NULL,
    intent        TEXT NOT NULL,
    target        TEXT,
    result_ref    TEXT NOT NULL,
    arguments_ref TEXT,
    summary       TEXT NOT NULL,
    summary_by    TEXT NOT NULL,               -- rules, model
    digest        TEXT NOT NULL,
    failed        INTEGER NOT NULL,
    score         INTEGER NOT NULL,            -- replaceability, 0 to 10
    names_used    TEXT NOT NULL,               -- JSON array
    batch         INTEGER,                     -- the batch that summarizes it by a model
    excerpt       TEXT NOT NULL,               -- head and tail of the result, for that question
    shown         TEXT,                        -- the summary that a context showed first; it stays in placeholders
    at            INTEGER NOT NULL,
    UNIQUE (session, ordinal),
    UNIQUE (session, call_id, result_print)
);
CREATE INDEX offload_entries_node ON offload_entries (session, node_id);
CREATE INDEX offload_entries_batch ON offload_entries (batch) WHERE batch IS NOT NULL;

-- The tasks of a session and the state of placement, as JSON.
CREATE TABLE offload_boards (
    session    INTEGER PRIMARY KEY REFERENCES sessions (id),
    board      TEXT NOT NULL,
    updated_at INTEGER NOT NULL
);

-- What a model said of a node; it goes before what the rules derive.
CREATE TABLE offload_nodes (
    session INTEGER NOT NULL REFERENCES sessions (id),
    node_id TEXT NOT NULL,
    label   TEXT NOT NULL,
    status  TEXT NOT NULL,
    summary TEXT NOT NULL,
    PRIMARY KEY (session, node_id)
) WITHOUT ROWID;

-- Context messages that were handed out, so that the same list gets the same bytes.
CREATE TABLE offload_contexts (
    session INTEGER NOT NULL REFERENCES sessions (id),
    covered INTEGER NOT NULL,                  -- ordinal of the newest entry it covers
    text    TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (session, covered)
) WITHOUT ROWID;

-- Token counts that hosts reported, a model.
CREATE TABLE offload_calibration (
    model            TEXT PRIMARY KEY,
    reported_tokens  INTEGER NOT NULL,
    estimated_tokens INTEGER NOT NULL
) WITHOUT ROWID;
