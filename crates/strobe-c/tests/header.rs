// SPDX-License-Identifier: MIT OR Apache-2.0
//! include/libstrobe.h, which C programs are compiled with, is made of the sources of this crate.

use std::fs;
use std::path::Path;

#[test]
fn the_header_is_that_of_the_sources() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = crate_folder.join("../../include/libstrobe.h");
    let header = cbindgen::generate(crate_folder).expect("a header");
    let mut text = Vec::new();
    header.write(&mut text);
    let text = String::from_utf8(text).expect("a text");
    if std::env::var_os("STROBE_WRITE_HEADER").is_some() {
        fs::write(&path, &text).expect("to write it");
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == text,
        "it is not: STROBE_WRITE_HEADER=1 cargo test -p strobe-c writes it"
    );
}
