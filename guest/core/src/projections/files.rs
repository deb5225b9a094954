//! How pages look as files: the reference system's META header and navigation, so that its tools and
//! its importer read them.

use crate::calendar::Calendar;
use crate::contract::{Instant, Result};
use crate::pages::Page;

const META_START: &str = "-----META-START-----";
const META_END: &str = "-----META-END-----";

/// The header at which the navigation of a persona file begins.
const NAVIGATION: &str = "## 🗺️ Scene Navigation (Scene Index)";

/// A parsed scene file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SceneFile {
    /// When the page began, if the header says so.
    pub created: Option<Instant>,
    /// When it was last changed.
    pub updated: Option<Instant>,
    /// One line about it; absent without a header.
    pub summary: Option<String>,
    /// Its heat; 0 if the header has none.
    pub heat: u32,
    /// The Markdown after the header.
    pub body: String,
}

/// Returns a scene's file.
pub fn scene_file(page: &Page, calendar: &Calendar) -> String {
    format!(
        "{META_START}\ncreated: {}\nupdated: {}\nsummary: {}\nheat: {}\n{META_END}\n\n{}\n",
        calendar.iso(page.created_at),
        calendar.iso(page.updated_at),
        page.summary,
        page.heat,
        page.body
    )
}

/// Reads a scene's file. Without a header the whole text is the body and the heat is 0, as in the reference system.
pub fn parse_scene_file(text: &str) -> SceneFile {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut file = SceneFile::default();
    let header = text.trim_start().strip_prefix(META_START).and_then(|rest| rest.split_once(META_END));
    let Some((header, body)) = header else {
        file.body = text.trim().to_owned();
        return file;
    };
    for line in header.lines() {
        let Some((field, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match field.trim() {
            "created" => file.created = Calendar::parse(value),
            "updated" => file.updated = Calendar::parse(value),
            "summary" => file.summary = Some(value.to_owned()),
            "heat" => file.heat = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    file.body = body.trim().to_owned();
    file
}

/// Returns the persona's file: its body, then the scenes by heat.
pub fn persona_file(page: &Page, scenes: &[Page], calendar: &Calendar) -> Result<String> {
    let mut text = format!("{}\n", page.body);
    if scenes.is_empty() {
        return Ok(text);
    }
    text.push_str(&format!("\n---\n{NAVIGATION}\n*Kept by Strata; what is written below this line is replaced.*\n"));
    for scene in scenes {
        text.push_str(&format!(
            "\n### Path: {}\n**Heat**: {} | **Updated**: {}\nSummary: {}\n",
            relative(page, scene),
            scene.heat,
            calendar.iso(scene.updated_at),
            scene.summary
        ));
    }
    Ok(text)
}

/// Returns a scene's path as seen from the persona's file.
fn relative<'a>(persona: &Page, scene: &'a Page) -> &'a str {
    let folder = persona.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    scene.path.strip_prefix(folder).unwrap_or(&scene.path).trim_start_matches('/')
}

/// Returns a persona's body from its file: everything before the navigation.
pub fn strip_navigation(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let body = match text.find(NAVIGATION) {
        Some(at) => text[..at].trim_end().trim_end_matches("---"),
        None => &text,
    };
    body.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_reference_system_is_read() {
        let text = "-----META-START-----\ncreated: 2026-06-01T10:00:00+08:00\nupdated: 2026-06-02T09:30:00+08:00\nsummary: one line: with a colon\nheat: 3\n-----META-END-----\n\n# Body\n\ntext\n";
        let file = parse_scene_file(text);
        assert_eq!(file.created, Some(1_780_279_200_000));
        assert_eq!((file.summary.as_deref(), file.heat, file.body.as_str()), (Some("one line: with a colon"), 3, "# Body\n\ntext"));
        assert_eq!(parse_scene_file("just text"), SceneFile { body: "just text".into(), ..SceneFile::default() });
        assert_eq!(
            parse_scene_file("-----META-START-----\nheat: many\nno end"),
            SceneFile { body: "-----META-START-----\nheat: many\nno end".into(), ..SceneFile::default() }
        );
    }

    #[test]
    fn the_navigation_is_cut_and_nothing_else() {
        assert_eq!(
            strip_navigation("# Me\n\n---\n\nA rule above.\n\n---\n## 🗺️ Scene Navigation (Scene Index)\n\n### Path: a"),
            "# Me\n\n---\n\nA rule above."
        );
        assert_eq!(strip_navigation("# Me\n"), "# Me");
        assert_eq!(strip_navigation("---\n## 🗺️ Scene Navigation (Scene Index)\n"), "");
    }
}
