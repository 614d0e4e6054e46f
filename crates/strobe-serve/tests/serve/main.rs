// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon, as its clients know it. All are one program, which is linked once.

mod crowd;
mod cut;
mod daemon;
mod http;
mod nats;
mod panda;
mod served;
mod small_disk;
mod spool;
