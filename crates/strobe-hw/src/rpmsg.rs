// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of co-processors: endpoints of rpmsg as file descriptors, by the module strobe_rpmsg
//! (docs/reference/rpmsg.md).
//!
//! ```no_run
//! use strobe_hw::rpmsg::{Address, Control};
//!
//! let control = Control::find(None)?;
//! let endpoint = control.create(&Address::to("service", 0x400))?;
//! endpoint.send(b"hello")?;
//! let mut message = [0; 512];
//! let length = endpoint.receive(&mut message)?;
//! println!("{:?}", &message[..length]);
//! # Ok::<(), strobe_hw::rpmsg::Error>(())
//! ```

mod call;
mod control;
mod endpoint;
mod error;

pub use control::{Address, Control};
pub use endpoint::{Endpoint, Stats};
pub use error::Error;
