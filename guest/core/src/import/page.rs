//! Pages that are brought: scenes and personas, as revisions with what they rest on.

use super::{Import, strings, text, time};
use crate::contract::{Result, Scope};
use crate::l0::{self, ScopeId};
use crate::pages::{self, Author, Block, Kind, NewPage, Page, PageId, Write, block, name};
use crate::store::failure;
use rusqlite::params;
use serde_json::{Map, Value};

impl Import<'_> {
    pub(super) fn page(&mut self, record: &Map<String, Value>, scope: &Scope, kind: Kind) -> Result<std::result::Result<(), String>> {
        let word = if kind == Kind::Scene { "scene" } else { "persona" };
        let Some(body) = text(record, "text").map(str::trim).filter(|body| !body.is_empty()) else {
            return Ok(Err(format!("a {word} needs `text`")));
        };
        let title = text(record, "name").unwrap_or_default();
        if kind == Kind::Scene && title.is_empty() {
            return Ok(Err("a scene needs `name`".into()));
        }
        let owner = self.owner(scope)?;
        let blocks = block::parse(body);
        let kept = self.without_forgotten(&blocks)?;
        let is_cut = kept.len() < blocks.len();
        let rendered = if is_cut { block::render(&kept) } else { body.to_owned() };
        let body = rendered.as_str();
        let id = text(record, "id");
        if self.is_known_page(owner, kind, id, body)? {
            self.report.of(word).known += 1;
            return Ok(Ok(()));
        }
        let is_forgotten = match id.filter(|_| kind == Kind::Scene) {
            Some(id) => l0::is_forgotten_identity(self.tx, id)?,
            None => false,
        };
        if is_forgotten || is_cut && kept.iter().all(Block::is_heading) {
            self.drop_forgotten(word);
            return Ok(Ok(()));
        }
        let updated_at = time(record, "updated-at").unwrap_or(self.at);
        let author = match text(record, "origin") {
            Some("human") => Author::Human,
            Some("model") => Author::Model,
            Some("rules") => Author::Rules,
            _ => Author::Imported,
        };
        let mut hand = strings(record, "hand");
        // Another system's page names no grounds, so nothing could bring its words back: they are kept like a human's
        // until somebody edits them.
        if matches!(author, Author::Human | Author::Imported) && hand.is_empty() {
            hand = block::parse(body).into_iter().map(|block| block.text).collect();
        }
        hand.retain(|text| !is_cut || kept.iter().any(|block| block.text == *text));
        // A summary is made of the whole page.
        let summary = text(record, "summary").filter(|_| !is_cut).unwrap_or_default();
        let summary = pages::one_line(summary, crate::l2::MAX_SUMMARY_CHARS);
        let heat = record.get("heat").and_then(Value::as_u64).and_then(|heat| u32::try_from(heat).ok()).unwrap_or(u32::from(kind == Kind::Scene));
        let write = Write { body, summary: &summary, heat, author, how: "import", hand: &hand, beats: None, batch: None, at: updated_at };
        let id = match (kind, pages::persona(self.tx, owner)?) {
            (Kind::Persona, Some(current)) => {
                if current.updated_at > updated_at {
                    self.report.of(word).conflicts += 1;
                    return Ok(Ok(()));
                }
                pages::save(self.tx, current.id, &write)?;
                current.id
            }
            _ => {
                let created_at = time(record, "created-at").unwrap_or(updated_at);
                pages::create(self.tx, &NewPage { scope: owner, kind, stem: &name::stem(title), created_at }, &write)?
            }
        };
        self.ground(record, owner, id)?;
        if let Some(archived_at) = time(record, "archived-at") {
            let page = pages::load(self.tx, id)?;
            pages::archive(self.tx, &page, None, archived_at)?;
        }
        self.report.of(word).added += 1;
        Ok(Ok(()))
    }

    /// Returns the blocks that name no forgotten atom.
    fn without_forgotten(&self, blocks: &[Block]) -> Result<Vec<Block>> {
        let mut kept = Vec::new();
        for block in blocks {
            let mut is_forgotten = false;
            for atom in &block.atoms {
                is_forgotten |= l0::is_forgotten_identity(self.tx, atom)?;
            }
            if !is_forgotten {
                kept.push(block.clone());
            }
        }
        Ok(kept)
    }

    fn is_known_page(&self, scope: ScopeId, kind: Kind, id: Option<&str>, body: &str) -> Result<bool> {
        let word = if kind == Kind::Scene { "scene" } else { "persona" };
        let by_text = self.row(
            "SELECT pages.id FROM pages JOIN revisions ON page = pages.id WHERE scope = ?1 AND kind = ?2 AND hash = ?3 LIMIT 1",
            params![scope.0, word, pages::hash(body)],
        )?;
        if by_text.is_some() {
            return Ok(true);
        }
        let page: Option<Page> = match id {
            Some(id) => pages::by_uid(self.tx, id)?,
            None => None,
        };
        Ok(page.is_some_and(|page| page.kind == Kind::Scene))
    }

    /// Notes what an imported page rests on; atoms that its text does not name stand behind its first block.
    fn ground(&mut self, record: &Map<String, Value>, scope: ScopeId, id: PageId) -> Result<()> {
        let page = pages::load(self.tx, id)?;
        let place = block::parse(&page.body).iter().position(|block| !block.is_heading()).unwrap_or(0);
        for foreign in strings(record, "atoms") {
            let uid = self.atom_uid(scope, &foreign)?;
            let Some(atom) = self.find_atom(scope, &foreign, &uid)? else {
                self.report.unresolved += 1;
                continue;
            };
            self.take("atoms", "scene_batch", atom)?;
            self.tx
                .prepare_cached(
                    "INSERT OR IGNORE INTO grounds (page, revision, place, atom)
                     SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS (SELECT 1 FROM grounds WHERE page = ?1 AND revision = ?2 AND atom = ?4)",
                )
                .and_then(|mut insert| insert.execute(params![id.0, page.number, place as i64, uid]))
                .map_err(failure)?;
        }
        Ok(())
    }
}
