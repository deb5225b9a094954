-- What `status` counts, kept by triggers: counting rows would take longer the more a space holds. `counted` says what
-- the counts have to be.
CREATE TABLE tallies (
    what  TEXT NOT NULL,
    part  TEXT NOT NULL,
    count INTEGER NOT NULL,                    -- 0: there were some
    PRIMARY KEY (what, part)
) WITHOUT ROWID;

CREATE VIEW counted (what, part, count) AS
    SELECT 'messages', '', count(*) FROM messages
    UNION ALL SELECT 'messages-waiting', '', count(*) FROM messages WHERE batch IS NULL AND worth = 1
    UNION ALL SELECT 'sessions', '', count(*) FROM sessions
    UNION ALL SELECT 'atoms-by-kind', kind, count(*) FROM atoms WHERE believed_to IS NULL GROUP BY kind
    UNION ALL SELECT 'atoms-by-origin', origin, count(*) FROM atoms WHERE believed_to IS NULL GROUP BY origin
    UNION ALL SELECT 'atoms-replaced', '', count(*) FROM atoms WHERE believed_to IS NOT NULL
    UNION ALL SELECT 'batches', layer || ' ' || state, count(*) FROM batches GROUP BY layer, state
    UNION ALL SELECT 'batches-to-reexamine', '', count(*) FROM batches WHERE layer = 'l1' AND state = 'done' AND stage = 'rules'
    UNION ALL SELECT 'requests', purpose, count(*) FROM requests GROUP BY purpose
    UNION ALL SELECT 'drops', reason, count(*) FROM drops GROUP BY reason
    UNION ALL SELECT 'refusals', reason, sum(count) FROM refusals GROUP BY reason
    UNION ALL SELECT 'pages', kind || iif(archived_at IS NULL, '', ' archived'), count(*) FROM pages GROUP BY kind, archived_at IS NULL
    UNION ALL SELECT 'revisions', author, count(*) FROM revisions GROUP BY author
    UNION ALL SELECT 'forgotten', '', count(*) FROM forgotten
    UNION ALL SELECT iif(vector = x'', 'vectors-refused', 'vectors'), CAST(generation AS TEXT), count(*) FROM host_vectors GROUP BY generation, vector = x'';

INSERT INTO tallies SELECT what, part, count FROM counted;

CREATE TRIGGER messages_in AFTER INSERT ON messages BEGIN
    INSERT INTO tallies VALUES ('messages', '', 1), ('messages-waiting', '', new.batch IS NULL AND new.worth = 1)
        ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;
CREATE TRIGGER messages_out AFTER DELETE ON messages BEGIN
    INSERT INTO tallies VALUES ('messages', '', -1), ('messages-waiting', '', -(old.batch IS NULL AND old.worth = 1))
        ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;
CREATE TRIGGER messages_taken AFTER UPDATE OF batch, worth ON messages BEGIN
    INSERT INTO tallies VALUES ('messages-waiting', '', (new.batch IS NULL AND new.worth = 1) - (old.batch IS NULL AND old.worth = 1))
        ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

CREATE TRIGGER sessions_in AFTER INSERT ON sessions BEGIN
    INSERT INTO tallies VALUES ('sessions', '', 1) ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER sessions_out AFTER DELETE ON sessions BEGIN
    UPDATE tallies SET count = count - 1 WHERE what = 'sessions' AND part = '';
END;

CREATE TRIGGER atoms_in AFTER INSERT ON atoms BEGIN
    INSERT INTO tallies VALUES ('atoms-by-kind', new.kind, new.believed_to IS NULL), ('atoms-by-origin', new.origin, new.believed_to IS NULL),
                               ('atoms-replaced', '', new.believed_to IS NOT NULL)
        ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;
CREATE TRIGGER atoms_out AFTER DELETE ON atoms BEGIN
    INSERT INTO tallies VALUES ('atoms-by-kind', old.kind, -(old.believed_to IS NULL)), ('atoms-by-origin', old.origin, -(old.believed_to IS NULL)),
                               ('atoms-replaced', '', -(old.believed_to IS NOT NULL))
        ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;
CREATE TRIGGER atoms_changed AFTER UPDATE OF kind, origin, believed_to ON atoms BEGIN
    INSERT INTO tallies VALUES ('atoms-by-kind', old.kind, -(old.believed_to IS NULL)), ('atoms-by-origin', old.origin, -(old.believed_to IS NULL)),
                               ('atoms-replaced', '', -(old.believed_to IS NOT NULL)),
                               ('atoms-by-kind', new.kind, new.believed_to IS NULL), ('atoms-by-origin', new.origin, new.believed_to IS NULL),
                               ('atoms-replaced', '', new.believed_to IS NOT NULL)
        ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

CREATE TRIGGER batches_in AFTER INSERT ON batches BEGIN
    INSERT INTO tallies VALUES ('batches', new.layer || ' ' || new.state, 1),
                               ('batches-to-reexamine', '', new.layer = 'l1' AND new.state = 'done' AND new.stage = 'rules')
        ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;
CREATE TRIGGER batches_out AFTER DELETE ON batches BEGIN
    INSERT INTO tallies VALUES ('batches', old.layer || ' ' || old.state, -1),
                               ('batches-to-reexamine', '', -(old.layer = 'l1' AND old.state = 'done' AND old.stage = 'rules'))
        ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;
CREATE TRIGGER batches_changed AFTER UPDATE OF layer, state, stage ON batches BEGIN
    INSERT INTO tallies VALUES ('batches', old.layer || ' ' || old.state, -1), ('batches', new.layer || ' ' || new.state, 1),
                               ('batches-to-reexamine', '', (new.layer = 'l1' AND new.state = 'done' AND new.stage = 'rules')
                                                          - (old.layer = 'l1' AND old.state = 'done' AND old.stage = 'rules'))
        ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

CREATE TRIGGER requests_in AFTER INSERT ON requests BEGIN
    INSERT INTO tallies VALUES ('requests', new.purpose, 1) ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER requests_out AFTER DELETE ON requests BEGIN
    UPDATE tallies SET count = count - 1 WHERE what = 'requests' AND part = old.purpose;
END;

CREATE TRIGGER drops_in AFTER INSERT ON drops BEGIN
    INSERT INTO tallies VALUES ('drops', new.reason, 1) ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER drops_out AFTER DELETE ON drops BEGIN
    UPDATE tallies SET count = count - 1 WHERE what = 'drops' AND part = old.reason;
END;

CREATE TRIGGER refusals_in AFTER INSERT ON refusals BEGIN
    INSERT INTO tallies VALUES ('refusals', new.reason, new.count) ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;
CREATE TRIGGER refusals_out AFTER DELETE ON refusals BEGIN
    UPDATE tallies SET count = count - old.count WHERE what = 'refusals' AND part = old.reason;
END;
CREATE TRIGGER refusals_changed AFTER UPDATE OF reason, count ON refusals BEGIN
    INSERT INTO tallies VALUES ('refusals', old.reason, -old.count), ('refusals', new.reason, new.count)
        ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

CREATE TRIGGER pages_in AFTER INSERT ON pages BEGIN
    INSERT INTO tallies VALUES ('pages', new.kind || iif(new.archived_at IS NULL, '', ' archived'), 1) ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER pages_out AFTER DELETE ON pages BEGIN
    UPDATE tallies SET count = count - 1 WHERE what = 'pages' AND part = old.kind || iif(old.archived_at IS NULL, '', ' archived');
END;
CREATE TRIGGER pages_changed AFTER UPDATE OF kind, archived_at ON pages BEGIN
    INSERT INTO tallies VALUES ('pages', old.kind || iif(old.archived_at IS NULL, '', ' archived'), -1),
                               ('pages', new.kind || iif(new.archived_at IS NULL, '', ' archived'), 1)
        ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

CREATE TRIGGER revisions_in AFTER INSERT ON revisions BEGIN
    INSERT INTO tallies VALUES ('revisions', new.author, 1) ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER revisions_out AFTER DELETE ON revisions BEGIN
    UPDATE tallies SET count = count - 1 WHERE what = 'revisions' AND part = old.author;
END;
CREATE TRIGGER revisions_changed AFTER UPDATE OF author ON revisions BEGIN
    INSERT INTO tallies VALUES ('revisions', old.author, -1), ('revisions', new.author, 1) ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

CREATE TRIGGER forgotten_in AFTER INSERT ON forgotten BEGIN
    INSERT INTO tallies VALUES ('forgotten', '', 1) ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER forgotten_out AFTER DELETE ON forgotten BEGIN
    UPDATE tallies SET count = count - 1 WHERE what = 'forgotten' AND part = '';
END;

CREATE TRIGGER vectors_in AFTER INSERT ON host_vectors BEGIN
    INSERT INTO tallies VALUES (iif(new.vector = x'', 'vectors-refused', 'vectors'), CAST(new.generation AS TEXT), 1)
        ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER vectors_out AFTER DELETE ON host_vectors BEGIN
    UPDATE tallies SET count = count - 1
     WHERE what = iif(old.vector = x'', 'vectors-refused', 'vectors') AND part = CAST(old.generation AS TEXT);
END;
CREATE TRIGGER vectors_changed AFTER UPDATE OF vector ON host_vectors WHEN (old.vector = x'') <> (new.vector = x'') BEGIN
    INSERT INTO tallies VALUES (iif(old.vector = x'', 'vectors-refused', 'vectors'), CAST(old.generation AS TEXT), -1),
                               (iif(new.vector = x'', 'vectors-refused', 'vectors'), CAST(new.generation AS TEXT), 1)
        ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

-- Whether a text or the service is to blame for failures: see vectors.rs. An empty vector is a text that the model refused.
ALTER TABLE generations ADD COLUMN doubt INTEGER NOT NULL DEFAULT 0;
CREATE INDEX host_vectors_refused ON host_vectors (generation, kind, row) WHERE vector = x'';

-- A row's number may be given again, and its text may change: what was asked of it before must not be taken for it.
CREATE TRIGGER messages_leave_request AFTER DELETE ON messages BEGIN
    UPDATE generations SET asked = 0, doubt = 0
     WHERE asked <> 0 AND asked_kind = 0 AND instr(',' || trim(asked_rows, '[]') || ',', ',' || old.id || ',') > 0;
END;
CREATE TRIGGER messages_change_request AFTER UPDATE OF text ON messages BEGIN
    UPDATE generations SET asked = 0, doubt = 0
     WHERE asked <> 0 AND asked_kind = 0 AND instr(',' || trim(asked_rows, '[]') || ',', ',' || old.id || ',') > 0;
END;
CREATE TRIGGER atoms_leave_request AFTER DELETE ON atoms BEGIN
    UPDATE generations SET asked = 0, doubt = 0
     WHERE asked <> 0 AND asked_kind = 1 AND instr(',' || trim(asked_rows, '[]') || ',', ',' || old.id || ',') > 0;
END;
CREATE TRIGGER atoms_change_request AFTER UPDATE OF text ON atoms BEGIN
    UPDATE generations SET asked = 0, doubt = 0
     WHERE asked <> 0 AND asked_kind = 1 AND instr(',' || trim(asked_rows, '[]') || ',', ',' || old.id || ',') > 0;
END;

-- What ticks ask each time, so that the work of the past costs nothing.
CREATE INDEX batches_state ON batches (layer, scope, state, done_at);
CREATE INDEX sessions_active ON sessions (scope, active_at);

-- What else `status` lists, so that it reads no more than that.
CREATE INDEX messages_waiting_since ON messages (recorded_at) WHERE batch IS NULL AND worth = 1;
CREATE INDEX batches_dead ON batches (id) WHERE state = 'dead';
CREATE INDEX revisions_conflicts ON revisions (at) WHERE beats IS NOT NULL;

-- Where a message was forgotten that no id of the host's had named: the hash of its session and content, until a later
-- delivery with an id claims it. Without, the same message would come back with its id.
ALTER TABLE forgotten ADD COLUMN content TEXT;  -- d_<16 hex>
CREATE INDEX forgotten_unclaimed ON forgotten (content) WHERE content IS NOT NULL;
