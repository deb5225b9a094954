//! The component's imports are its permissions: a new one needs a new line in `tests/imports.txt`,
//! and a reason in the commit that adds it.

use std::fs;
use std::path::Path;
use strata_host::{ComponentSource, Runtime};

#[test]
fn the_component_asks_for_nothing_new() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("imports.txt");
    let expected = fs::read_to_string(&golden).expect("the golden list is there");
    let (mut imports, exports) = Runtime::new(&ComponentSource::Embedded).expect("the component compiles").interfaces();
    imports.sort();
    assert_eq!(imports.join("\n") + "\n", expected, "compare with tests/imports.txt");
    assert!(imports.iter().all(|name| !name.contains("sockets") && !name.contains("http")), "no network");
    assert_eq!(exports.len(), 5, "{exports:?}");
}
