// SPDX-License-Identifier: MIT OR Apache-2.0
//! The name by which programs find the library that they were linked with: it changes when they no longer can use it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libstrobe.so.0");
}
