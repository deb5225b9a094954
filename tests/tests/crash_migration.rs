//! A crash after every single file operation of an upgrade: a filled space of each older schema version
//! is opened, and whatever happens no row is lost and the upgrade ends where an undisturbed one ends.

use rusqlite::Connection;
use std::path::Path;
use std::rc::Rc;
use strata_core::contract::{Failure, SearchRequest};
use strata_core::disk::{self, Crash, Disk, SimDisk};
use strata_core::engine::{Engine, Models};
use strata_core::store::SCHEMA_VERSION;

const START: u64 = 1_780_000_000_000;

/// Ticks after which an upgraded space must have come to rest.
const MAX_TICKS: u32 = 40;

/// What a space of each version may hold beyond what the versions before it could.
const FILL: &[&str] = &[
    // 1: conversations, facts, unfinished work.
    "INSERT INTO scopes VALUES (1, 'default', 'default', 'default');
     INSERT INTO sessions (id, scope, name, created_at, active_at, l1_batches, last_scene) VALUES (1, 1, 's', 1779990000000, 1779990300000, 1, 'life');
     INSERT INTO batches (id, layer, scope, session, state, stage, draft, attempts, due_at, reason, created_at, done_at) VALUES
       (1, 'l1', 1, 1, 'done', 'rules', '{\"atoms\":[],\"pool\":[],\"again\":null}', 0, 1779990100000, '', 1779990100000, 1779990100000),
       (2, 'l1', 1, 1, 'dead', '', '', 5, 1779990200000, 'no route', 1779990200000, NULL),
       (3, 'l1', 1, 1, 'done', '', '{\"atoms\":[],\"pool\":[],\"again\":1}', 0, 1779990100000, '', 1779990150000, 1779990160000);
     INSERT INTO requests (id, batch, kind, purpose, body, state, asked_at, answered_at, answer, model) VALUES
       (1, 3, 'llm', 'l1-extract', '{\"purpose\":\"l1-extract\",\"prompt\":\"p\"}', 'answered', 1779990150000, 1779990160000, '{\"scenes\":[]}', 'old'),
       (2, 2, 'llm', 'l1-extract', '{\"purpose\":\"l1-extract\",\"prompt\":\"p\"}', 'failed', 1779990200000, NULL, NULL, '');
     INSERT INTO messages (id, uid, scope, session, host_id, digest, occurrence, role, text, said_at, recorded_at, worth, batch) VALUES
       (1, 'm_0000000000000001', 1, 1, 'h1', x'01', 0, 'user', 'I live in Porto.', 1779990000000, 1779990000000, 1, 1),
       (2, 'm_0000000000000002', 1, 1, 'h2', x'02', 0, 'assistant', 'Porto is lovely.', 1779990001000, 1779990001000, 1, 1),
       (3, 'm_0000000000000003', 1, 1, NULL, x'03', 0, 'user', 'ok', 1779990002000, 1779990002000, 0, NULL),
       (4, 'm_0000000000000004', 1, 1, NULL, x'04', 0, 'user', 'I drink green tea.', 1779990200000, 1779990200000, 1, 2),
       (5, 'm_0000000000000005', 1, 1, NULL, x'05', 0, 'user', 'I work at Acme.', 1779990300000, 1779990300000, 1, NULL);
     INSERT INTO drops VALUES (1, x'06', 0, 'empty', 1779990300000);
     INSERT INTO atoms (id, uid, scope, session, kind, text, priority, origin, attribute, valid_from, valid_to, believed_from, believed_to, batch) VALUES
       (1, 'a_0000000000000001', 1, 1, 'persona', 'The user lives in Braga.', 80, 'rules', 'home', 1779000000000, 1779990000000, 1779000000000, 1779990100000, NULL),
       (2, 'a_0000000000000002', 1, 1, 'persona', 'The user lives in Porto.', 80, 'rules', 'home', 1779990000000, NULL, 1779990100000, NULL, 1);
     INSERT INTO evidence VALUES (2, 1, 'live in Porto');
     INSERT INTO links VALUES (2, 1, 'supersedes', 1779990100000);
     INSERT INTO space VALUES ('kept', 'as it is');",
    // 2: pages, their grounds and files, mirrors, forgotten identities.
    "INSERT INTO folders VALUES (1, '');
     INSERT INTO batches (id, layer, scope, state, due_at, created_at, done_at) VALUES (10, 'l2', 1, 'done', 1779990110000, 1779990110000, 1779990120000);
     INSERT INTO pages (id, uid, scope, kind, path, revision, created_at, updated_at) VALUES
       (1, 's_0000000000000001', 1, 'scene', 'scenes/life.md', 2, 1779990110000, 1779990120000),
       (2, 'p_0000000000000001', 1, 'persona', 'persona.md', 1, 1779990130000, 1779990130000);
     INSERT INTO revisions (page, number, body, summary, heat, author, how, hand, hash, batch, at) VALUES
       (1, 1, '# Life' || char(10) || char(10) || 'Braga. <!-- a_0000000000000001 -->', 'Life.', 1, 'model', 'create', '[]', 'x', 10, 1779990110000),
       (1, 2, '# Life' || char(10) || char(10) || 'By hand.' || char(10) || char(10) || 'Porto. <!-- a_0000000000000002 -->', 'Life.', 2, 'human', 'file', '[\"By hand.\"]', 'y', NULL, 1779990120000),
       (2, 1, '# Persona' || char(10) || char(10) || '- Lives in Porto. <!-- a_0000000000000002 -->', '', 0, 'model', 'create', '[]', 'z', NULL, 1779990130000);
     INSERT INTO grounds VALUES (1, 1, 1, 'a_0000000000000001'), (1, 2, 2, 'a_0000000000000002'), (2, 1, 1, 'a_0000000000000002');
     UPDATE atoms SET scene_batch = 10 WHERE id = 2;
     INSERT INTO persona_states (scope, seen_atom, ran_at) VALUES (1, 2, 1779990130000);
     INSERT INTO persona_seen VALUES (1, 1, 2);
     INSERT INTO projections VALUES ('scenes/life.md', 1, '', 1), ('persona.md', 2, '', 1);
     INSERT INTO forgotten VALUES ('m_00000000000000ff', 1779990140000);",
    // 3: the order of results, folds, refusals, the first index.
    "UPDATE batches SET applied = id WHERE state = 'done';
     UPDATE atoms SET fold = 'f' || id;
     INSERT INTO refusals VALUES (1, 'no quote', 2);
     INSERT INTO atoms_index (rowid, tokens) VALUES (1, 'live braga'), (2, 'live porto');
     INSERT INTO messages_index (rowid, tokens) VALUES (1, 'live porto'), (2, 'porto love'), (4, 'green tea'), (5, 'work acme');",
    // 4: a tool result with its text.
    "INSERT INTO offload_refs VALUES ('refs/0123456789abcdef.md', 'd', 4, 4, 1779990200000);
     INSERT INTO offload_uses VALUES (1, 'refs/0123456789abcdef.md', 'result', 'c1', 1779990200000);
     INSERT INTO offload_calibration VALUES ('old', 100, 90);",
    // 5: what the search index makes itself.
    "",
    // 6: a text that waits in its row for its file.
    "UPDATE offload_refs SET content = 'text';",
    // 7: an answer whose doubtful part was asked about once more.
    "INSERT INTO batches (id, layer, scope, session, state, stage, draft, due_at, created_at, done_at, again) VALUES
       (11, 'l1', 1, 1, 'done', 'rules', '{\"atoms\":[],\"pool\":[],\"again\":2}', 1779990250000, 1779990250000, 1779990260000, 2);",
    // 8: vectors of a host's model.
    "INSERT INTO generations (id, model, dimensions, messages_to, serves) VALUES (1, 'old', 2, 1, 1);
     INSERT INTO host_vectors VALUES (1, 0, 1, x'0000803F7F00');",
];

fn migrations() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest/core/src/store/migrations");
    let mut paths: Vec<_> = std::fs::read_dir(folder).expect("the migrations").map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).expect("readable")).collect()
}

/// Returns a disk with a filled space of a schema version, as a closed engine of that time left it.
fn older(version: u32) -> SimDisk {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("strata.db");
    let db = Connection::open(&path).expect("opens");
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).expect("WAL");
    for (index, migration) in migrations().iter().take(version as usize).enumerate() {
        db.execute_batch(migration).unwrap_or_else(|error| panic!("migration {}: {error}", index + 1));
        db.execute_batch(FILL[index]).unwrap_or_else(|error| panic!("fill {}: {error}", index + 1));
    }
    db.pragma_update(None, "application_id", 0x5354_5241).expect("set");
    db.pragma_update(None, "user_version", version).expect("set");
    db.close().expect("closes");
    let disk = SimDisk::new();
    disk::replace(&disk, "strata.db", &std::fs::read(&path).expect("readable")).expect("written");
    if (4..6).contains(&version) {
        disk::replace(&disk, "refs/0123456789abcdef.md", b"text").expect("written");
    }
    disk
}

fn open(disk: &SimDisk) -> Result<Engine, Failure> {
    let port: Rc<dyn Disk> = Rc::new(disk.clone());
    Engine::open(port, r#"{"holder": {"id": "upgrade"}}"#, Models::default(), START).map(|(engine, _)| engine)
}

/// Opens, does what is due, and closes; returns what the space holds then.
fn upgrade(disk: &SimDisk) -> Result<String, Failure> {
    let mut engine = open(disk)?;
    let mut now = START;
    for _ in 0..MAX_TICKS {
        match engine.tick(now, Models::default())? {
            Some(next) if next < START + 3_600_000 => now = next.max(now + 1),
            // Files that cannot be written are tried again at the next tick; the deed is not done then.
            _ if disk.crashed() => return Err(Failure::invalid("the disk is gone")),
            _ => {
                let state = state(&engine, disk);
                engine.close(now)?;
                return Ok(state);
            }
        }
    }
    panic!("the space does not come to rest within {MAX_TICKS} ticks");
}

fn text(engine: &Engine, sql: &str) -> String {
    engine.store().db().query_row(sql, [], |row| row.get::<_, Option<String>>(0)).unwrap_or_else(|error| panic!("{sql}: {error}")).unwrap_or_default()
}

fn state(engine: &Engine, disk: &SimDisk) -> String {
    let mut state = String::new();
    for sql in [
        "SELECT group_concat(uid || text || coalesce(batch, '-'), '|') FROM (SELECT * FROM messages ORDER BY uid)",
        "SELECT group_concat(uid || text || origin || coalesce(believed_to, '-'), '|') FROM (SELECT * FROM atoms ORDER BY uid)",
        "SELECT group_concat(path || body, '|') FROM (SELECT path, body FROM pages JOIN revisions ON page = pages.id ORDER BY path, number)",
        "SELECT group_concat(id || layer || state || coalesce(again, '-'), '|') FROM (SELECT * FROM batches ORDER BY id)",
    ] {
        state.push_str(&text(engine, sql));
        state.push('\n');
    }
    for (path, bytes) in disk.files() {
        if path.ends_with(".md") || path.ends_with(".jsonl") {
            let file = String::from_utf8_lossy(&bytes).into_owned();
            let kept: Vec<&str> = file.lines().filter(|line| !line.starts_with("updated:") && !line.starts_with("**Heat**")).collect();
            state.push_str(&format!("{path}: {}\n", kept.join("\n")));
        }
    }
    state
}

/// Checks what must hold as soon as the space is open.
fn check(engine: &mut Engine, version: u32, place: &str) {
    assert_eq!(text(engine, "PRAGMA integrity_check"), "ok", "{place}");
    assert_eq!(text(engine, "SELECT CAST(user_version AS TEXT) FROM pragma_user_version").parse::<u32>().ok(), Some(SCHEMA_VERSION), "{place}");
    let rows = |sql: &str| text(engine, &format!("SELECT CAST(count(*) AS TEXT) FROM {sql}"));
    assert_eq!(rows("messages"), "5", "{place}: a message is gone");
    assert!(
        rows("atoms WHERE id IN (1, 2)") == "2" && rows("links WHERE newer = 2") == "1" && rows("evidence WHERE atom = 2") == "1",
        "{place}: a fact is gone"
    );
    assert!(rows("batches WHERE state = 'dead' AND reason = 'no route'") == "1" && rows("requests WHERE answer LIKE '{%'") == "1", "{place}: the ledger");
    assert_eq!(rows("space WHERE key = 'kept'"), "1", "{place}");
    if version >= 2 {
        assert!(rows("revisions WHERE page = 1 AND number <= 2") == "2" && rows("forgotten") == "1", "{place}: a revision is gone");
    }
    if version >= 4 {
        assert!(rows("offload_refs") == "1" && rows("offload_calibration") == "1", "{place}: a ref is gone");
    }
    if version >= 8 {
        assert_eq!(rows("host_vectors"), "1", "{place}: a vector is gone");
    }
    assert_eq!(rows("(SELECT * FROM counted WHERE count > 0 EXCEPT SELECT * FROM tallies)"), "0", "{place}: status counts other rows");
    let found = |engine: &mut Engine, layer: &str, query: &str| {
        let request = SearchRequest { query: query.into(), layer: layer.into(), limit: 10, at: START, strategy: "keyword".into(), ..SearchRequest::default() };
        engine.search(&request).unwrap_or_else(|failure| panic!("{place}: {failure}"))
    };
    assert!(found(engine, "messages", "green tea").contains("I drink green tea."), "{place}: an old message is not found");
    assert!(found(engine, "atoms", "Porto").contains("The user lives in Porto."), "{place}: an old fact is not found");
}

#[test]
fn an_upgrade_of_a_filled_space_survives_a_crash_after_every_file_operation() {
    assert_eq!(FILL.len(), SCHEMA_VERSION as usize - 1, "each older version has something to fill it with");
    let mut all = 0;
    for version in 1..SCHEMA_VERSION {
        let prepared = older(version);
        let disk = prepared.after(Crash::Kill);
        let before = disk.operations();
        let undisturbed = upgrade(&disk).expect("an undisturbed upgrade succeeds");
        let operations = disk.operations() - before;
        for point in 1..=operations {
            let disk = prepared.after(Crash::Kill);
            disk.crash_at(point);
            let ended = upgrade(&disk);
            assert!(disk.crashed() || ended.is_ok(), "operation {point} of {operations} was not reached");
            for crash in [Crash::Kill, Crash::PowerCut(point), Crash::PowerCut(point + operations)] {
                let disk = disk.after(crash);
                let place = format!("version {version}, operation {point} of {operations}, {crash:?}");
                let mut engine = open(&disk).unwrap_or_else(|failure| panic!("{place}: does not open: {failure}"));
                check(&mut engine, version, &place);
                drop(engine);
                assert_eq!(upgrade(&disk).unwrap_or_else(|failure| panic!("{place}: again: {failure}")), undisturbed, "{place}: it ends elsewhere");
            }
        }
        println!("upgrade from version {version}: {operations} crash points, each as kill and as two power cuts");
        all += operations;
    }
    println!("upgrades: {all} crash points");
}

#[test]
fn a_newer_space_is_refused_and_left_as_it_is() {
    let disk = older(SCHEMA_VERSION - 1);
    upgrade(&disk).expect("upgraded");
    let engine = open(&disk).expect("opens");
    engine.store().db().pragma_update(None, "user_version", SCHEMA_VERSION + 1).expect("set");
    engine.close(START).expect("closes");
    let before = disk.files();
    assert_eq!(open(&disk).expect_err("newer").code, strata_core::FailureCode::NewerVersion);
    assert_eq!(disk.files(), before);
}
