-- What session end and flush ask for: L1 is due for the session's waiting messages up to this id.
ALTER TABLE sessions ADD COLUMN flushed INTEGER NOT NULL DEFAULT 0;

-- The order in which results were stored; a rebuild follows it.
ALTER TABLE batches ADD COLUMN applied INTEGER;
CREATE UNIQUE INDEX batches_applied ON batches (applied) WHERE applied IS NOT NULL;
CREATE INDEX batches_session ON batches (session, state);
-- Batches that the rules distilled: a model looks at them again when one appears.
CREATE INDEX batches_by_rules ON batches (id) WHERE layer = 'l1' AND state = 'done' AND stage = 'rules';
CREATE INDEX batches_waiting ON batches (layer, due_at) WHERE state = 'due';

DROP INDEX messages_waiting;
CREATE INDEX messages_waiting ON messages (session, id) WHERE batch IS NULL AND worth = 1;

-- Hash of an atom's words in order, without articles: equal folds say the same thing.
ALTER TABLE atoms ADD COLUMN fold TEXT NOT NULL DEFAULT '';
CREATE INDEX atoms_fold ON atoms (scope, fold) WHERE believed_to IS NULL;

-- What the checks of a layer did not take from an answer, by reason.
CREATE TABLE refusals (
    batch  INTEGER NOT NULL REFERENCES batches (id),
    reason TEXT NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (batch, reason)
) WITHOUT ROWID;

-- Keyword indexes. They hold our own tokens, separated by blanks, under the row's id; the text
-- itself is in its table, so the index is contentless.
CREATE VIRTUAL TABLE atoms_index USING fts5 (tokens, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co M*'");
CREATE VIRTUAL TABLE messages_index USING fts5 (tokens, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co M*'");
