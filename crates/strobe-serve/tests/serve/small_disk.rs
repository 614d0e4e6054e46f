// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file system of a few megabytes, which a test and its children alone have.

use std::path::Path;
use std::process::Command;

/// Says that this process is such a test, and where the file system is.
const FOLDER: &str = "ON_A_SMALL_DISK";

/// Runs this part of the test of that name in a process of its own, in a folder of so many MiB.
pub fn on_a_small_disk(mib: u32, test: &str, part: impl FnOnce(&Path)) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return part(Path::new(&folder));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mount = format!("mount -t tmpfs -o size={mib}m none \"$0\" && exec \"$@\"");
    let done = Command::new("unshare")
        .args(["-rm", "sh", "-c", &mount])
        .arg(folder.path())
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, folder.path())
        .output()
        .expect("unshare, of util-linux");
    let said = String::from_utf8_lossy(&done.stdout);
    let failed = String::from_utf8_lossy(&done.stderr);
    print!("{said}");
    // No test of that name is no failure of the program.
    let has_run = done.status.success() && said.contains("1 passed");
    assert!(has_run, "{test}: {failed}");
}
