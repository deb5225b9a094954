//! Data directories in the documented formats of TencentDB Agent Memory, v1 and v3. Also read by the tests of the
//! command line.

#![allow(unreachable_pub, reason = "two crates of tests read this file")]

use rusqlite::{Connection, params};
use std::fs;
use std::path::Path;

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().expect("below the directory")).expect("writable");
    fs::write(path, text).expect("writable");
}

/// Makes a `vec0` table as `sqlite-vec` lays it out, without the extension. The virtual table itself cannot be made
/// without it, so its definition is written where SQLite keeps definitions.
fn vec_table(db: &Connection, table: &str, rows: &[(&str, [f32; 2], bool)]) {
    db.execute_batch(&format!(
        "CREATE TABLE {table}_rowids (rowid INTEGER PRIMARY KEY, id TEXT UNIQUE, chunk_id INTEGER, chunk_offset INTEGER);
         CREATE TABLE {table}_chunks (chunk_id INTEGER PRIMARY KEY, size INTEGER, validity BLOB, rowids BLOB);
         CREATE TABLE {table}_vector_chunks00 (rowid INTEGER PRIMARY KEY, vectors BLOB);
         PRAGMA writable_schema = ON;
         INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES ('table', '{table}', '{table}', 0,
           'CREATE VIRTUAL TABLE {table} USING vec0(record_id TEXT PRIMARY KEY, embedding float[2] distance_metric=cosine, updated_time TEXT)');
         PRAGMA writable_schema = OFF;"
    ))
    .expect("plain SQL");
    let mut floats = vec![0_u8; 1024 * 2 * 4];
    let mut validity = vec![0_u8; 128];
    for (at, (id, vector, valid)) in rows.iter().enumerate() {
        db.execute(&format!("INSERT INTO {table}_rowids (id, chunk_id, chunk_offset) VALUES (?1, 1, ?2)"), params![id, at as i64]).expect("plain SQL");
        for (i, value) in vector.iter().enumerate() {
            floats[(at * 2 + i) * 4..][..4].copy_from_slice(&value.to_le_bytes());
        }
        validity[at / 8] |= u8::from(*valid) << (at % 8);
    }
    db.execute(&format!("INSERT INTO {table}_chunks VALUES (1, 1024, ?1, zeroblob(8192))"), [validity]).expect("plain SQL");
    db.execute(&format!("INSERT INTO {table}_vector_chunks00 VALUES (1, ?1)"), [floats]).expect("plain SQL");
}

fn database(path: &Path, extra_columns: &str) -> Connection {
    let db = Connection::open(path).expect("writable");
    db.execute_batch(&format!(
        "CREATE TABLE embedding_meta (key TEXT PRIMARY KEY, value TEXT);
         INSERT INTO embedding_meta VALUES ('embedding_provider_info', '{{\"provider\":\"openai\",\"model\":\"text-2\",\"dimensions\":2}}');
         CREATE TABLE l1_records (record_id TEXT PRIMARY KEY, content TEXT, type TEXT, priority INTEGER DEFAULT 50, scene_name TEXT, session_key TEXT,
           session_id TEXT, timestamp_str TEXT, timestamp_start TEXT, timestamp_end TEXT, created_time TEXT, updated_time TEXT, metadata_json TEXT DEFAULT '{{}}'{extra_columns});
         CREATE TABLE l0_conversations (record_id TEXT PRIMARY KEY, session_key TEXT, session_id TEXT, role TEXT, message_text TEXT, recorded_at TEXT, timestamp INTEGER{extra_columns});"
    ))
    .expect("plain SQL");
    db
}

/// Makes a directory of v1 (0.3.x), with each kind of fault that such directories have.
pub fn v1(dir: &Path) {
    write(
        dir,
        "conversations/2026-06-01.jsonl",
        r#"{"sessionKey":"agent:main:x","sessionId":"5f","recordedAt":"2026-06-01T02:03:04.567Z","id":"msg_1","role":"user","content":"I keep bees.","timestamp":1780279384000}
{"sessionKey":"agent:main:x","sessionId":"5f","recordedAt":"2026-06-01T02:03:05.000Z","id":"msg_2","role":"assistant","content":"Lovely.","timestamp":1780279385000}
{"sessionKey":"agent:main:x","sessionId":"5f","recordedAt":"2026-06-01T03:00:00.000Z","id":"msg_3","role":"user","content":"Two hives now.","timestamp":1780282800000}
{"sessionKey":"agent:main:x","sessionId":"5f","recordedAt":"2026-06-01T03:00:00.000Z","id":"msg_3","role":"user","content":"Two hives now.","timestamp":1780282800000}
{"sessionKey":"agent:main:x","sess
{"sessionKey":"agent:main:x","messages":[]}
"#,
    );
    write(dir, "conversations/notes.txt", "not a day");
    write(
        dir,
        "records/2026-06-01.jsonl",
        r#"{"id":"m_1","content":"The user keeps bees.","type":"persona","priority":80,"scene_name":"Bees","source_message_ids":["msg_1"],"metadata":{},"timestamps":["2026-06-01T02:03:04Z"],"createdAt":"2026-06-01T02:10:00Z","updatedAt":"2026-06-01T02:10:00Z","sessionKey":"agent:main:x","sessionId":"5f"}
{"id":"m_0","content":"The user has one hive.","type":"episode","priority":70,"scene_name":"Bees","source_message_ids":["msg_1"],"metadata":{"activity_start_time":"2026-05-01T00:00:00Z"},"createdAt":"2026-06-01T02:11:00Z","updatedAt":"2026-06-01T02:11:00Z","sessionKey":"agent:main:x","sessionId":"5f"}
"#,
    );
    write(
        dir,
        "scene_blocks/bees.md",
        "-----META-START-----\ncreated: 2026-06-01T10:00:00+08:00\nupdated: 2026-06-02T09:30:00+08:00\nsummary: Beekeeping\nheat: 3\n-----META-END-----\n\n# Bees\nTwo hives.\n",
    );
    write(dir, "persona.md", "# Ada\nKeeps bees.\n\n---\n## 🗺️ Scene Navigation (Scene Index)\n### Path: scene_blocks/bees.md\n");
    write(dir, ".metadata/recall_checkpoint.json", r#"{"runner_states":{"agent:main:x":{"last_l1_cursor":"2026-06-01T02:30:00.000Z"}},"total_processed":3}"#);
    write(dir, ".backup/persona/1.md", "old");
    write(dir, "refs/a.md", "ref");
    let db = database(&dir.join("vectors.db"), "");
    db.execute_batch(
        "INSERT INTO l0_conversations VALUES ('l0_a', 'agent:main:x', '5f', 'user', 'I keep bees.', '2026-06-01T02:03:04.567Z', 1780279384000);
         INSERT INTO l0_conversations VALUES ('l0_b', 'agent:main:x', '5f', 'user', 'Only in the database.', '2026-06-01T04:00:00.000Z', 1780286400000);
         INSERT INTO l1_records VALUES ('m_1', 'The user keeps bees.', 'persona', 85, 'Bees', 'agent:main:x', '5f', '', '', '', '2026-06-01T02:10:00Z', '2026-06-01T05:00:00Z', '{}');
         INSERT INTO l1_records VALUES ('m_9', 'The user wears a veil.', 'preference', 60, 'Bees', 'agent:main:x', '5f', '', '', '', '2026-06-01T05:00:00Z', '2026-06-01T05:00:00Z', '{}');",
    )
    .expect("plain SQL");
    vec_table(&db, "l1_vec", &[("m_1", [0.5, -1.0], true), ("m_0", [9.0, 9.0], false), ("m_gone", [1.0, 1.0], true)]);
    vec_table(&db, "l0_vec", &[("l0_a", [1.0, 0.0], true)]);
}

/// Makes a directory of v3: scopes, a server's tables, profiles by scope.
pub fn v3(dir: &Path) {
    fs::create_dir_all(dir).expect("writable");
    let db = database(&dir.join("vectors.db"), ", team_id TEXT DEFAULT 'default', user_id TEXT DEFAULT 'default', agent_id TEXT DEFAULT 'default'");
    db.execute_batch(
        "INSERT INTO l0_conversations VALUES ('l0_a', 's', 's', 'user', 'Hello', '2026-06-01T02:03:04Z', 1780279384000, 'blue', 'kim', 'coder');
         INSERT INTO l1_records VALUES ('m_1', 'The user is Kim.', 'persona', 80, '', 's', 's', '', '', '', '2026-06-01T02:10:00Z', '2026-06-01T02:10:00Z', '{}', 'blue', 'kim', 'default');
         CREATE TABLE skills (id TEXT); INSERT INTO skills VALUES ('a'), ('b');",
    )
    .expect("plain SQL");
    write(dir, "profiles/team%3Ablue%7Cagent%3Acoder/persona.md", "Kim writes Rust.");
    write(dir, "profiles/team%3Ablue%7Cagent%3Acoder/scene_blocks/rust.md", "# Rust");
    write(dir, "profiles/odd/persona.md", "?");
    let metadata = Connection::open(dir.join("metadata.db")).expect("writable");
    metadata.execute_batch("CREATE TABLE meta_users (id TEXT); INSERT INTO meta_users VALUES ('kim');").expect("plain SQL");
}
