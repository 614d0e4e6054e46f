// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that a machine cannot do. Rust's harness has no word for them: they say it, and lab/suite counts them.

use std::io::Write;

/// Says that the test that calls this does nothing more here. It fails where STROBE_REQUIRE is set.
pub fn skip(why: &str) {
    assert!(
        std::env::var_os("STROBE_REQUIRE").is_none(),
        "STROBE_REQUIRE is set, and this test was not done: {why}"
    );
    // Not by a macro: the harness hides what those print. It may be in the middle of a line.
    let said = writeln!(std::io::stderr(), "\nskipped: {why}");
    said.expect("standard error");
}
