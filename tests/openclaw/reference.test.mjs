import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { readReference, referenceDirectory } from '../../js-shim/openclaw/reference.js';

/** A data directory as memory-tencentdb 0.3.6 leaves it, in small. */
function directory() {
  const dir = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'tdai-')), 'memory-tdai');
  const write = (name, text) => {
    fs.mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
    fs.writeFileSync(path.join(dir, name), text);
  };
  const said = {
    sessionKey: 'agent:work:telegram:direct:7',
    sessionId: 's',
    recordedAt: '2026-06-01T02:03:04.567Z',
    id: 'msg_1_a',
    role: 'user',
    content: '我住在里斯本',
    timestamp: 1780279384000,
  };
  write('conversations/2026-06-01.jsonl', `${JSON.stringify(said)}\n{"torn\n${JSON.stringify({ messages: [] })}\n`);
  write('conversations/notes.txt', 'not a shard');
  const atom = {
    id: 'm_1_b',
    content: 'The user lives in Lisbon.',
    type: 'preference',
    priority: 80,
    scene_name: 'moving',
    source_message_ids: ['msg_1_a'],
    metadata: {},
    createdAt: '2026-06-01T02:04:00.000Z',
    updatedAt: '2026-06-02T02:04:00.000Z',
    sessionKey: said.sessionKey,
  };
  const event = { ...atom, id: 'm_2_c', type: 'episode', metadata: { activity_start_time: '2026-05-03T00:00:00+08:00' } };
  write('records/2026-06-01.jsonl', [atom, event, { ...atom, id: 'm_3', type: 'poem' }].map((line) => JSON.stringify(line)).join('\n'));
  write(
    'scene_blocks/moving-to-portugal.md',
    '-----META-START-----\ncreated: 2026-06-01T10:00:00+08:00\nupdated: 2026-06-02T09:30:00+08:00\nsummary: One line.\nheat: 3\n-----META-END-----\n\n# Moving\nBody.\n',
  );
  write('scene_blocks/bare.md', 'No head at all.\n');
  write('persona.md', '# Who\nZoltan.\n\n---\n## 🗺️ Scene Navigation (Scene Index)\n### Path: scene_blocks/moving-to-portugal.md\n');
  return { dir, write };
}

async function read(dir) {
  const out = { records: [], errors: [] };
  for await (const { record, error, where } of readReference(dir)) record ? out.records.push(record) : out.errors.push([where, error]);
  return out;
}

test('everything of the reference becomes a record, in the order that an import needs', async () => {
  const { records } = await read(directory().dir);
  assert.deepEqual(
    records.map(({ record, id, name }) => [record, id ?? name]),
    [
      ['message', 'msg_1_a'],
      ['atom', 'm_1_b'],
      ['atom', 'm_2_c'],
      ['scene', 'bare'],
      ['scene', 'moving-to-portugal'],
      ['persona', undefined],
    ],
  );
  const [message, persona_, event, bare, scene, persona] = records;
  assert.deepEqual(message, {
    record: 'message',
    id: 'msg_1_a',
    session: 'agent:work:telegram:direct:7',
    role: 'user',
    text: '我住在里斯本',
    'said-at': 1780279384000,
    scope: { agent: 'work', user: 'owner' },
  });
  assert.deepEqual([persona_.kind, persona_.messages, persona_['created-at']], ['persona', ['msg_1_a'], Date.parse('2026-06-01T02:04:00.000Z')]);
  assert.deepEqual([event.kind, event['event-start']], ['episodic', Date.parse('2026-05-03T00:00:00+08:00')]);
  assert.deepEqual([scene.text, scene.summary, scene.heat], ['# Moving\nBody.', 'One line.', 3]);
  assert.deepEqual([bare.text, bare.heat], ['No head at all.', 0]);
  assert.equal(persona.text, '# Who\nZoltan.');
});

test('broken lines are named and skipped, and nothing else is', async () => {
  const { errors } = await read(directory().dir);
  assert.deepEqual(
    errors.map(([where]) => where),
    ['2026-06-01.jsonl:2', '2026-06-01.jsonl:3', '2026-06-01.jsonl:3'],
  );
  assert.match(errors[2][1], /unknown kind "poem"/);
});

test('an unreadable database is an error, not the end', async () => {
  const { dir, write } = directory();
  write('vectors.db', 'not a database');
  const { records, errors } = await read(dir);
  assert.equal(records.filter(({ record }) => record === 'atom').length, 2);
  assert.ok(errors.some(([where]) => where.endsWith('vectors.db')));
});

test('superseded memories of the files stay out where the database tells which live', async (t) => {
  const sqlite = await import('node:sqlite').catch(() => undefined);
  if (!sqlite) return t.skip('this Node has no node:sqlite; OpenClaw needs one that has');
  const { dir } = directory();
  const db = new sqlite.DatabaseSync(path.join(dir, 'vectors.db'));
  db.exec("CREATE TABLE l1_records (record_id TEXT PRIMARY KEY); INSERT INTO l1_records VALUES ('m_2_c')");
  db.close();
  const { records } = await read(dir);
  assert.deepEqual(
    records.filter(({ record }) => record === 'atom').map(({ id }) => id),
    ['m_2_c'],
  );
});

test('the directory is found where the reference puts it, and only if it is one', () => {
  const { dir } = directory();
  assert.equal(referenceDirectory(path.dirname(dir)), dir);
  assert.equal(referenceDirectory(os.tmpdir()), undefined);
});
