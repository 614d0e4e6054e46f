// SPDX-License-Identifier: MIT OR Apache-2.0
//! The strobe program of the guests.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    strobe_cli::main()
}
