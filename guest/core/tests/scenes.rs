//! L2 from a conversation on: by model and by rules, each operation and limit, the schedule, files and edits.

#[path = "story/space.rs"]
mod space;

use serde_json::json;
use space::{SECOND, Space, answer, create, profile, scope, update};
use strata_core::contract::{EndEvent, LlmAnswer, Message, Outcome, Scope};

#[test]
fn a_scene_is_created_updated_merged_and_archived() {
    let mut space = Space::new(true, json!({"pipeline": {"everyNConversations": 1, "l2MinIntervalSeconds": 0}}));
    let porto = space.learn("I moved to Porto in May.", "episodic", "Moving to Porto");
    let (id, request) = space.scenes(10 * SECOND);
    assert!(request.prompt.contains(&porto) && request.prompt.contains("There is none yet."), "{}", request.prompt);
    space.complete(&id, &answer(json!([create("Moving to Porto", "The user moved to Porto in May.", &porto)])));
    let file = space.file("scenes/Moving-to-Porto.md").expect("the file");
    assert!(file.starts_with("-----META-START-----\ncreated: 2026-05-28T20:26:"), "{file}");
    assert!(file.contains("\nsummary: About Moving to Porto.\nheat: 1\n-----META-END-----\n\n# Moving to Porto\n\n"), "{file}");
    assert!(file.ends_with(&format!("The user moved to Porto in May. <!-- {porto} -->\n")), "{file}");

    // The persona follows at once: there is none yet.
    space.tick(0);
    let (id, request) = space.one("l3-persona");
    assert!(request.prompt.contains("Why now: cold-start") && request.prompt.contains(&porto));
    space.complete(&id, &profile("Lives in Porto.", &porto));
    let persona = space.file("persona.md").expect("the file");
    assert!(persona.starts_with(&format!("# Persona\n\n## Facts\n\n- Lives in Porto. <!-- {porto} -->\n\n---\n")), "{persona}");
    assert!(persona.contains("### Path: scenes/Moving-to-Porto.md\n**Heat**: 1 | **Updated**: "), "{persona}");

    let tea = space.learn("I drink green tea.", "persona", "Drinks");
    let (id, request) = space.scenes(10 * SECOND);
    assert!(request.prompt.contains("## Page Moving-to-Porto.md, in full"));
    let both = json!([update("Moving-to-Porto.md", json!([{"text": "Moved in May 2026.", "atoms": [porto]}])), create("drinks", "Green tea.", &tea)]);
    space.complete(&id, &answer(both));
    assert!(space.file("scenes/Moving-to-Porto.md").expect("the file").contains("heat: 2\n"));
    assert!(space.file("persona.md").expect("the file").contains("scenes/drinks.md"), "the navigation follows");

    let flat = space.learn("My flat has a balcony.", "persona", "Home");
    let (id, _) = space.scenes(10 * SECOND);
    let merge = json!([{"op": "merge", "scenes": ["drinks.md", "Moving-to-Porto.md"], "summary": "Life in Porto.",
        "paragraphs": [{"heading": "Home", "text": "A flat with a balcony in Porto.", "atoms": [flat, porto]}, {"text": "Green tea.", "atoms": [tea]}]}]);
    space.complete(&id, &answer(merge));
    let merged = space.file("scenes/drinks.md").expect("the file");
    assert!(merged.contains("heat: 4\n") && merged.contains("## Home"), "{merged}");
    assert_eq!(space.file("scenes/Moving-to-Porto.md"), None, "the absorbed page's file goes");
    assert_eq!(space.row::<u32>("SELECT count(*) FROM revisions"), 5, "its revisions stay");

    space.learn("That chapter is over.", "episodic", "");
    let (id, _) = space.scenes(10 * SECOND);
    space.complete(&id, &answer(json!([{"op": "archive", "scene": "drinks.md", "reason": "over"}])));
    assert_eq!(space.file("scenes/drinks.md"), None);
    assert!(!space.file("persona.md").expect("the file").contains("drinks"));
}

#[test]
fn a_bad_operation_spoils_the_whole_answer() {
    let mut space = Space::new(true, json!({}));
    let porto = space.learn("I moved to Porto in May.", "episodic", "Porto");
    let good = create("porto", "Moved.", &porto);
    let long = "x ".repeat(800);
    let cases = [
        ("prose", "I would create a scene about Porto.".to_owned(), "no JSON object"),
        ("200 KB of prose", "lorem ipsum ".repeat(17_000), "no JSON object"),
        ("JSON of another shape", json!({"operations": "none"}).to_string(), "no `operations`"),
        ("an unknown id", answer(json!([good, update("none.md", json!([{"text": "x", "atoms": [porto]}]))])), "there is no page `none.md`"),
        ("an atom that was not shown", answer(json!([create("porto", "Moved.", "a_0000000000000000")])), "was not shown"),
        ("no ids", answer(json!([{"op": "create", "name": "p", "summary": "s", "paragraphs": [{"text": "x", "atoms": []}]}])), "rests on 0 facts"),
        ("two new pages", answer(json!([good, create("other", "Moved.", &porto)])), "at most 1 is allowed"),
        ("too long", answer(json!([create("porto", &long, &porto)])), "the limit is 1500"),
        ("wrong language", answer(json!([create("波尔图", "用户五月搬到了波尔图并且很喜欢那里的生活。", &porto)])), "language"),
    ];
    for (index, (name, text, reason)) in cases.iter().enumerate() {
        if index % 4 == 0 && index > 0 {
            // After five failures a batch is dead; retry starts over.
            space.engine.retry("l2", space.at).expect("retried");
        }
        let (id, request) = space.scenes(3_600 * SECOND);
        if index % 4 > 0 {
            assert!(request.prompt.contains("## Your last answer was refused"), "{name}");
        }
        space.complete(&id, text);
        assert!(space.state().contains(reason), "{name}: {}", space.state());
        assert_eq!(space.row::<u32>("SELECT count(*) FROM pages"), 0, "{name}");
        assert_eq!(space.file("scenes/porto.md"), None, "{name}");
    }
    let (id, _) = space.scenes(3_600 * SECOND);
    space.complete(&id, &answer(json!([good])));
    assert!(space.file("scenes/porto.md").is_some(), "a good answer is taken after any number of bad ones");
}

#[test]
fn a_dead_batch_waits_for_retry_and_blocks_nothing() {
    let mut space = Space::new(true, json!({}));
    space.learn("I moved to Porto in May.", "episodic", "Porto");
    for _ in 0..5 {
        let (id, _) = space.scenes(3_600 * SECOND);
        assert!(space.engine.complete(&id, Outcome::Failed("no route".into()), space.at).expect("taken"));
    }
    assert!(space.state().contains("l2 dead 5 no route"), "{}", space.state());
    let tea = space.learn("I drink green tea.", "persona", "Drinks");
    let (id, request) = space.scenes(10 * SECOND);
    assert!(request.prompt.contains(&tea) && !request.prompt.contains("Porto"), "the batch behind goes on");
    space.complete(&id, &answer(json!([create("drinks", "Green tea.", &tea)])));
    space.engine.retry("", space.at).expect("retried");
    let (_, request) = space.scenes(SECOND);
    assert!(request.prompt.contains("Porto"));
}

#[test]
fn more_scene_text_is_shown_within_a_bound() {
    let mut space = Space::new(true, json!({"pipeline": {"everyNConversations": 1, "l2MinIntervalSeconds": 0}}));
    for index in 0..8 {
        let atom = space.learn(&format!("Project number {index} began well."), "episodic", &format!("project {index}"));
        let (id, _) = space.scenes(10 * SECOND);
        space.complete(&id, &answer(json!([create(&format!("project {index}"), "It began.", &atom)])));
        space.tick(0);
        if let Some((id, _)) = space.asked().pop() {
            space.complete(&id, &profile("Runs projects.", &atom));
        }
    }
    let atom = space.learn("Project number 7 ended.", "episodic", "project 7");
    let (id, request) = space.scenes(10 * SECOND);
    assert_eq!(request.prompt.matches("## Page ").count(), 5);
    assert!(request.prompt.contains("## Page project-7.md"), "the page of the same name is among them");
    let hidden: Vec<String> = (0..8).map(|index| format!("project-{index}.md")).filter(|file| !request.prompt.contains(&format!("## Page {file}"))).collect();
    space.complete(&id, &answer(json!([update(&hidden[0], json!([{"text": "x", "atoms": [atom]}]))])));
    assert!(space.state().contains("was not shown in full"), "{}", space.state());

    let (id, _) = space.scenes(60 * SECOND);
    space.complete(&id, &json!({"need": [hidden[0]]}).to_string());
    let (id, request) = space.one("l2-scenes");
    assert_eq!(request.prompt.matches("## Page ").count(), 6);
    space.complete(&id, &json!({"need": [hidden[1], "none.md"]}).to_string());
    let (id, request) = space.one("l2-scenes");
    assert!(request.prompt.contains("You may not ask for more pages."));
    space.complete(&id, &json!({"need": [hidden[2]]}).to_string());
    assert!(space.state().contains("asked for scene text more than 2 times"), "{}", space.state());
    let (id, request) = space.scenes(600 * SECOND);
    assert_eq!(request.prompt.matches("## Page ").count(), 7, "what was shown stays shown");
    space.complete(&id, &answer(json!([update(&hidden[0], json!([{"text": "It ended.", "atoms": [atom]}]))])));
    assert!(space.file(&format!("scenes/{}", hidden[0])).expect("the file").contains("It ended."));
}

#[test]
fn at_the_limit_a_new_page_needs_a_merge() {
    let mut space = Space::new(true, json!({"persona": {"maxScenes": 2}, "pipeline": {"everyNConversations": 1, "l2MinIntervalSeconds": 0}}));
    let mut atoms = Vec::new();
    for name in ["one", "two"] {
        let atom = space.learn(&format!("Subject {name} matters."), "episodic", name);
        let (id, _) = space.scenes(10 * SECOND);
        space.complete(&id, &answer(json!([create(name, "It matters.", &atom)])));
        atoms.push(atom);
        space.tick(0);
        if let Some((id, _)) = space.asked().pop() {
            space.complete(&id, &profile("Cares.", &atoms[0]));
        }
    }
    let three = space.learn("Subject three matters.", "episodic", "three");
    let (id, request) = space.scenes(10 * SECOND);
    assert!(request.prompt.contains("a new page needs a merge"));
    space.complete(&id, &answer(json!([create("three", "It matters.", &three)])));
    assert!(space.state().contains("3 pages would exist, at most 2 may"), "{}", space.state());
    let (id, _) = space.scenes(60 * SECOND);
    let merge = json!({"op": "merge", "scenes": ["one", "two"], "summary": "Both.", "paragraphs": [{"text": "Both matter.", "atoms": atoms}]});
    space.complete(&id, &answer(json!([merge, create("three", "It matters.", &three)])));
    assert_eq!(space.row::<u32>("SELECT count(*) FROM pages WHERE kind = 'scene' AND archived_at IS NULL"), 2);
    assert!(space.file("scenes/one.md").expect("the file").contains("heat: 3"));
}

#[test]
fn scenes_keep_delay_and_floor() {
    let mut space = Space::new(true, json!({}));
    let one = space.learn("I moved to Porto in May.", "episodic", "Porto");
    let learned = space.at;
    assert_eq!(space.deadline(0), Some(learned + 10 * SECOND), "10 s after L1");
    space.tick(9_999);
    assert!(space.asked().is_empty());
    let (id, _) = space.scenes(1);
    space.complete(&id, &answer(json!([create("porto", "Moved.", &one)])));
    let first = space.at;
    space.tick(0);
    let (id, _) = space.one("l3-persona");
    space.complete(&id, &profile("Lives in Porto.", &one));

    space.learn("I drink green tea.", "persona", "Drinks");
    assert_eq!(space.deadline(0), Some(first + 900 * SECOND), "not sooner than 900 s after the last");
    space.tick(first + 900 * SECOND - space.at - 1);
    assert!(space.asked().is_empty());
    let (id, request) = space.scenes(1);
    let tea = space.atom("I drink green tea.");
    assert!(request.prompt.contains(&tea));
    space.complete(&id, &answer(json!([update("porto.md", json!([{"text": "Moved, drinks tea.", "atoms": [one, tea]}]))])));
}

#[test]
fn scenes_come_at_the_ceiling_while_a_session_is_active() {
    let pipeline = json!({"everyNConversations": 1, "l2MinIntervalSeconds": 10_800, "sessionActiveWindowHours": 2});
    let mut space = Space::new(true, json!({"pipeline": pipeline}));
    let one = space.learn("I moved to Porto in May.", "episodic", "Porto");
    let (id, _) = space.scenes(10 * SECOND);
    space.complete(&id, &answer(json!([create("porto", "Moved.", &one)])));
    let first = space.at;
    space.tick(0);
    let (id, _) = space.one("l3-persona");
    space.complete(&id, &profile("Lives in Porto.", &one));
    let tea = space.learn("I drink green tea.", "persona", "Drinks");
    assert_eq!(space.deadline(0), Some(first + 3_600 * SECOND), "a session is active: the ceiling goes before the floor");
    let (id, request) = space.scenes(first + 3_600 * SECOND - space.at);
    assert!(request.prompt.contains(&tea));
    space.complete(&id, &answer(json!([update("porto.md", json!([{"text": "Moved, drinks tea.", "atoms": [one, tea]}]))])));
    let second = space.at;

    // Three hours of silence: nobody waits for a page, and the floor holds.
    let boat = space.learn("I bought a boat yesterday.", "episodic", "boat");
    space.at += 2 * 3_600 * SECOND + SECOND;
    assert_eq!(space.deadline(0), Some(second + 10_800 * SECOND));
    space.tick(second + 10_800 * SECOND - space.at - 1);
    assert!(space.asked().is_empty());
    let (_, request) = space.scenes(1);
    assert!(request.prompt.contains(&boat));
}

#[test]
fn a_scene_that_states_what_no_longer_holds_is_due_at_the_ceiling() {
    let mut space = Space::new(true, json!({}));
    let one = space.learn("I moved to Porto in May.", "episodic", "Porto");
    let (id, _) = space.scenes(10 * SECOND);
    space.complete(&id, &answer(json!([create("porto", "Moved.", &one)])));
    let last = space.at;
    space.tick(0);
    let (id, _) = space.one("l3-persona");
    space.complete(&id, &profile("Lives in Porto.", &one));
    // A fact that ends without a successor.
    space.change(&format!("UPDATE atoms SET believed_to = {}", last + 1));
    assert_eq!(space.deadline(0), Some(last + 3_600 * SECOND));
    let (_, request) = space.scenes(3_600 * SECOND);
    assert!(request.prompt.contains("No longer believed: "));
}

#[test]
fn a_page_that_a_model_cannot_mend_is_not_asked_about_without_end() {
    const ATTEMPTS: usize = 5;
    let mut space = Space::new(true, json!({}));
    let one = space.learn("I moved to Porto in May.", "episodic", "Porto");
    let (id, _) = space.scenes(10 * SECOND);
    space.complete(&id, &answer(json!([create("porto", "Moved.", &one)])));
    let last = space.at;
    space.tick(0);
    let (id, _) = space.one("l3-persona");
    space.complete(&id, &profile("Lives in Porto.", &one));
    space.change(&format!("UPDATE atoms SET believed_to = {}", last + 1));
    let mut asked = 0;
    for _ in 0..60 {
        space.tick(1_200 * SECOND);
        for (id, request) in space.asked() {
            asked += usize::from(request.purpose == "l2-scenes");
            space.complete(&id, &answer(json!([update("porto.md", json!([{"text": "Moved to Porto.", "atoms": [one]}]))])));
        }
    }
    assert_eq!(asked, ATTEMPTS, "the batch is dead and waits for a retry");
    space.engine.retry("l2", space.at).expect("retried");
    space.tick(0);
    assert_eq!(space.asked().len(), 1, "a retry asks again");
}

#[test]
fn a_flush_ends_though_a_page_goes_on_stating_what_no_longer_holds() {
    // A model that sees nothing to do, and a line that a human has written, which nobody but a human changes.
    for by_hand in [false, true] {
        let mut space = Space::new(!by_hand, json!({"pipeline": {"everyNConversations": 1}}));
        let asks_nothing = |space: &mut Space| {
            let mut asked = 0;
            for _ in 0..20 {
                space.tick(SECOND);
                for (id, request) in space.asked() {
                    asked += usize::from(request.purpose == "l2-scenes");
                    let text = if request.purpose == "l2-scenes" { answer(json!([])) } else { json!({"sections": []}).to_string() };
                    space.complete(&id, &text);
                }
            }
            asked
        };
        let one = if by_hand {
            space.say("I live in Turin.");
            space.tick(0);
            space.engine.flush(space.at).expect("flushed");
            space.tick(20 * SECOND);
            let path: String = space.row("SELECT path FROM pages WHERE kind = 'scene'");
            let body = String::from_utf8(strata_core::disk::read_all(space.engine.store().disk(), &path).expect("a page")).expect("text");
            let edited = body.replace("Turin", "Turin, by the river");
            assert_ne!(edited, body);
            strata_core::disk::replace(space.engine.store().disk(), &path, edited.as_bytes()).expect("edited");
            space.tick(SECOND);
            space.row("SELECT uid FROM atoms")
        } else {
            let one = space.learn("I moved to Porto in May.", "episodic", "Porto");
            let (id, _) = space.scenes(10 * SECOND);
            space.complete(&id, &answer(json!([create("porto", "Moved.", &one)])));
            one
        };
        let revisions: u32 = space.row("SELECT count(*) FROM revisions");
        space.change(&format!("UPDATE atoms SET believed_to = {} WHERE uid = '{one}'", space.at + 1));
        space.at += SECOND;
        space.engine.flush(space.at).expect("flushed");
        let asked = asks_nothing(&mut space);
        assert!(asked <= 1, "asked {asked} times");
        assert_eq!(space.row::<u32>("SELECT count(*) FROM space WHERE key LIKE 'flushed-%'"), 0, "the flush ends");
        assert!(space.row::<u32>("SELECT count(*) FROM revisions") <= revisions + 1, "by hand: {by_hand}");
    }
}

#[test]
fn flush_and_session_end_run_scenes_without_delay() {
    for by_flush in [true, false] {
        let mut space = Space::new(true, json!({"pipeline": {"everyNConversations": 5, "enableWarmup": false}}));
        space.say("I moved to Porto in May.");
        space.tick(0);
        assert!(space.asked().is_empty(), "one turn of five");
        if by_flush {
            space.engine.flush(space.at).expect("flushed");
        } else {
            let event = strata_core::contract::SessionEvent { scope: scope(), reason: "new".into(), at: space.at };
            space.engine.session_end(&event).expect("ended");
        }
        space.tick(0);
        let (id, _) = space.one("l1-extract");
        let memory =
            json!({"content": "Moved to Porto.", "type": "episodic", "priority": 90, "sources": [{"id": "m1", "quote": "Porto"}], "start": "", "end": ""});
        space.complete(&id, &json!({"scenes": [{"scene": "", "memories": [memory]}]}).to_string());
        space.tick(0);
        let (id, _) = space.one("l2-scenes");
        let atom = space.atom("Moved to Porto.");
        space.complete(&id, &answer(json!([create("porto", "Moved.", &atom)])));
        space.tick(0);
        space.one("l3-persona");
        assert_eq!(space.row::<u32>("SELECT count(*) FROM space WHERE key LIKE 'flushed-%'"), 0, "a flush ends");
    }
}

#[test]
fn an_edit_of_a_scene_is_kept_and_struck_facts_stay_out() {
    let mut space = Space::new(true, json!({"pipeline": {"everyNConversations": 1, "l2MinIntervalSeconds": 0}}));
    let one = space.learn("I moved to Porto in May.", "episodic", "porto");
    let two = space.learn("I fear the landlord.", "episodic", "porto");
    let (id, _) = space.scenes(10 * SECOND);
    let paragraphs = json!([{"text": "Moved in May.", "atoms": [one]}, {"text": "Fears the landlord.", "atoms": [two]}]);
    space.complete(&id, &answer(json!([{"op": "create", "name": "porto", "summary": "s", "paragraphs": paragraphs}])));
    let file = space.file("scenes/porto.md").expect("the file");
    let edited = file.replace(&format!("\n\nFears the landlord. <!-- {two} -->"), "\n\nThe keys are at the bakery.");
    space.write("scenes/porto.md", &edited);
    space.tick(SECOND);
    space.asked();
    let kept = space.file("scenes/porto.md").expect("the file");
    assert!(kept.contains("The keys are at the bakery.") && !kept.contains("landlord"), "{kept}");
    assert_eq!(space.row::<u32>("SELECT count(*) FROM revisions WHERE author = 'human'"), 1);

    let three = space.learn("I found a bakery I like.", "episodic", "porto");
    let (id, request) = space.scenes(10 * SECOND);
    assert!(request.prompt.contains(&format!("Struck by the user, not to be stated on this page: {two}")));
    space.complete(&id, &answer(json!([update("porto.md", json!([{"text": "Fears the landlord.", "atoms": [two]}]))])));
    assert!(space.state().contains("no longer believed or were struck") || space.state().contains("was not shown"), "{}", space.state());
    let (id, _) = space.scenes(60 * SECOND);
    space.complete(&id, &answer(json!([update("porto.md", json!([{"text": "Moved; likes a bakery.", "atoms": [one, three]}]))])));
    assert!(space.file("scenes/porto.md").expect("the file").contains("The keys are at the bakery."), "what a human wrote stays");
}

#[test]
fn an_edit_beside_a_newer_revision_is_a_conflict_and_loses_nothing() {
    let mut space = Space::new(true, json!({"pipeline": {"everyNConversations": 1, "l2MinIntervalSeconds": 0}}));
    let one = space.learn("I moved to Porto in May.", "episodic", "porto");
    let (id, _) = space.scenes(10 * SECOND);
    space.complete(&id, &answer(json!([create("porto", "Moved in May.", &one)])));
    let file = space.file("scenes/porto.md").expect("the file");
    space.tick(0);
    let (id, _) = space.one("l3-persona");
    space.complete(&id, &profile("Lives in Porto.", &one));
    let two = space.learn("I found a bakery I like.", "episodic", "porto");
    let (id, _) = space.scenes(10 * SECOND);
    // The human saves while the model works.
    space.write("scenes/porto.md", &file.replace("Moved in May.", "Moved on 3 May."));
    space.complete(&id, &answer(json!([update("porto.md", json!([{"text": "Moved; likes a bakery.", "atoms": [one, two]}]))])));
    let kept = space.file("scenes/porto.md").expect("the file");
    assert!(kept.contains("Moved on 3 May."), "{kept}");
    assert_eq!(space.row::<u32>("SELECT beats FROM revisions WHERE author = 'human'"), 2, "the engine's revision is named and kept");
    let (_, request) = space.scenes(10 * SECOND);
    assert!(request.prompt.contains(&two), "what the engine's revision had brought is offered again");
}

#[test]
fn a_new_file_beside_the_scenes_becomes_a_page() {
    let mut space = Space::new(false, json!({}));
    space.say("I live in Porto.");
    space.engine.flush(space.at).expect("flushed");
    for _ in 0..3 {
        space.tick(SECOND);
    }
    space.write("scenes/My Garden (2026).md", "# Garden\n\nTomatoes by the wall.\n");
    space.tick(SECOND);
    let file = space.file("scenes/My-Garden-2026.md").expect("the file has a normalized name");
    assert!(file.contains("Tomatoes by the wall.") && file.contains("summary: Garden"), "{file}");
    assert_eq!(space.file("scenes/My Garden (2026).md"), None);
}

#[test]
fn two_users_of_one_space_have_their_own_pages() {
    let mut space = Space::new(false, json!({}));
    for user in ["ana", "ben"] {
        space.at += SECOND;
        let scope = Scope { user: user.into(), session: "s".into(), ..Scope::default() };
        let messages = vec![Message { role: "user".into(), content: format!("My name is {user} and I live in {user}-town."), ..Message::default() }];
        space.engine.agent_end(&EndEvent { scope, messages, success: true, at: space.at }).expect("captured");
    }
    space.engine.flush(space.at).expect("flushed");
    for _ in 0..4 {
        space.tick(SECOND);
    }
    let first = space.file("persona.md").expect("the first scope lives at the root");
    assert!(first.contains("ana") && !first.contains("ben"), "{first}");
    let folder: String = space.row("SELECT folder FROM folders WHERE folder <> ''");
    assert!(folder.starts_with("scopes/default-ben-default-"), "{folder}");
    let second = space.file(&format!("{folder}persona.md")).expect("the second has a folder");
    assert!(second.contains("ben") && !second.contains("ana"), "{second}");
    assert!(second.contains("### Path: scenes/"), "{second}");
}

#[test]
fn scenes_survive_a_restart_in_each_state() {
    let mut space = Space::new(true, json!({}));
    let porto = space.learn("I moved to Porto in May.", "episodic", "Porto");
    space.crash();
    let (old, _) = space.scenes(10 * SECOND);
    space.crash();
    space.tick(0);
    let (id, request) = space.one("l2-scenes");
    assert!(id != old && request.prompt.contains(&porto), "a question that was lost is asked again");
    let late = Outcome::Text(LlmAnswer { text: answer(json!([])), ..LlmAnswer::default() });
    assert!(!space.engine.complete(&old, late, space.at).expect("taken"), "the answer to the lost question is not taken");
    space.complete(&id, &answer(json!([create("porto", "Moved.", &porto)])));
    space.crash();
    let file = space.file("scenes/porto.md").expect("the file");
    space.tick(0);
    let (id, _) = space.one("l3-persona");
    assert!(!id.is_empty() && space.asked().is_empty(), "scenes are not asked for twice");
    space.crash();
    assert_eq!(space.file("scenes/porto.md").expect("the file"), file);
}

#[test]
fn a_scene_of_exactly_the_limit_fits() {
    let mut space = Space::new(true, json!({}));
    let porto = space.learn("I moved to Porto in May.", "episodic", "Porto");
    let (id, _) = space.scenes(10 * SECOND);
    // Title, blank lines and the comment of ids count.
    let frame = "# p\n\n".len() + " <!-- a_0123456789abcdef -->".len();
    space.complete(&id, &answer(json!([create("p", &"x".repeat(1_500 - frame), &porto)])));
    let file = space.file("scenes/p.md").expect("exactly the limit fits");
    assert_eq!(file.split_once("END-----\n\n").expect("a header").1.trim_end().chars().count(), 1_500);
}

#[test]
fn a_full_batch_does_not_wait_for_the_floor_and_what_is_left_does() {
    let mut space = Space::new(true, json!({}));
    let records: Vec<String> = (0..85)
        .map(|index| {
            let text = format!("The user owns bicycle number {index}.");
            json!({"record": "atom", "id": format!("x{index}"), "session": "s", "kind": "persona", "text": text, "priority": 80}).to_string()
        })
        .collect();
    space.engine.import(&Scope::default(), &records.join("\n"), false, space.at).expect("imported");
    let (id, request) = space.scenes(10 * SECOND);
    assert!(request.prompt.contains("bicycle number 39.") && !request.prompt.contains("bicycle number 40."), "a batch takes forty");
    let first = space.atom("The user owns bicycle number 0.");
    space.complete(&id, &answer(json!([create("bicycles", "Owns bicycles.", &first)])));
    let (id, request) = space.scenes(0);
    assert!(request.prompt.contains("bicycle number 40.") && request.prompt.contains("bicycle number 79.") && !request.prompt.contains("bicycle number 80."));
    let last = space.at;
    space.complete(&id, &answer(json!([update("bicycles.md", json!([{"text": "Owns many bicycles.", "atoms": [first]}]))])));
    space.tick(0);
    let (id, _) = space.one("l3-persona");
    space.complete(&id, &profile("Owns bicycles.", &first));
    assert_eq!(space.deadline(0), Some(last + 900 * SECOND));
    let (_, request) = space.scenes(900 * SECOND);
    assert!(request.prompt.contains("bicycle number 84."));
}
