//! Finds the component that is built into this library.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-env-changed=STRATA_COMPONENT");
    println!("cargo::rerun-if-env-changed=CARGO_TARGET_DIR");
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| manifest.join("../target"), PathBuf::from);
    let component = env::var_os("STRATA_COMPONENT").map_or_else(|| target.join("wasm32-wasip2/component/strata_component.wasm"), PathBuf::from);
    println!("cargo::rerun-if-changed={}", component.display());
    if !component.is_file() {
        println!("cargo::error=there is no component at {}; build it first: make component", component.display());
        return;
    }
    let component = component.canonicalize().expect("a file that exists has a canonical path");
    println!("cargo::rustc-env=STRATA_COMPONENT_PATH={}", component.display());
}
