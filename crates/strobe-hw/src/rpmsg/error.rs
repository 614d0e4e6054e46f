// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an endpoint does not do what it was asked for.

use std::io;
use std::path::PathBuf;

/// Why an endpoint does not do what it was asked for: the object, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no control node.
    #[error(
        "rpmsg: no channel offers endpoints; is the remote running, strobe_rpmsg loaded, and the channel bound to it? \
         (echo strobe_rpmsg > /sys/bus/rpmsg/devices/CHANNEL/driver_override, then /sys/bus/rpmsg/drivers_probe)"
    )]
    NoControl,
    /// There are several control nodes, and none was named.
    #[error("rpmsg: several channels offer endpoints; choose one: {}", .0.join(", "))]
    Ambiguous(Vec<String>),
    /// A control node cannot be opened.
    #[error("{path}: {source}{}", remedy(.source))]
    Open {
        /// The node.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{0}: no control node of strobe_rpmsg; `strobe rpmsg list` shows those that exist")]
    NoControlNode(PathBuf),
    /// This process has no number left for a file.
    #[error(
        "rpmsg: an endpoint is a file, and this process has reached its limit of open files; `ulimit -n` raises it"
    )]
    TooMany,
    /// This user has as many nodes of endpoints as he may.
    #[error(
        "rpmsg: this user has reached the limit of endpoint nodes; destroy some, or raise the module's nodes_max"
    )]
    TooManyNodes,
    /// The transport has to know where a message goes.
    #[error("rpmsg endpoint 0x{0:x}: it has no remote to send to; give the address of the remote")]
    NoDestination(u32),
    /// The name is too long, or has a NUL in it.
    #[error("rpmsg service `{0}`: a name has 1 to 31 bytes, and no NUL")]
    Name(String),
    /// Another endpoint has this address.
    #[error("rpmsg address 0x{0:x}: taken by another endpoint; choose another one, or any")]
    Taken(u32),
    /// The remote has gone, or the endpoint was destroyed.
    #[error(
        "rpmsg endpoint 0x{0:x}: its remote has gone, or the endpoint was destroyed; open it again"
    )]
    Gone(u32),
    /// The channel has gone while its control node was open.
    #[error("{0}: its remote has gone; open it again when the remote is back")]
    ControlGone(PathBuf),
    /// The message is longer than the transport takes.
    #[error(
        "rpmsg endpoint 0x{src:x}: a message of {bytes} bytes; this transport takes {mtu} at most"
    )]
    TooLong {
        /// The endpoint.
        src: u32,
        /// What it was to send.
        bytes: usize,
        /// What it can.
        mtu: u32,
    },
    /// Where the remote is cannot be known.
    #[error("{0}")]
    Address(String),
    /// The descriptor is something else.
    #[error("this file is not an endpoint of strobe_rpmsg")]
    NoEndpoint,
    /// Another error of a call.
    #[error("rpmsg: {doing}: {source}")]
    Call {
        /// What was done.
        doing: &'static str,
        /// Why not.
        source: io::Error,
    },
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; become a member of group strobe, or be root",
        io::ErrorKind::NotFound => "; `strobe rpmsg list` shows those that exist",
        _ => "",
    }
}

impl Error {
    /// For who has no words of this: the errno, if there is one.
    pub fn errno(&self) -> Option<i32> {
        let known = |errno: rustix::io::Errno| Some(errno.raw_os_error());
        match self {
            Error::Open { source, .. } | Error::Call { source, .. } => source.raw_os_error(),
            Error::Gone(_) | Error::ControlGone(_) => known(rustix::io::Errno::NODEV),
            Error::TooLong { .. } => known(rustix::io::Errno::MSGSIZE),
            Error::NoControlNode(_) => known(rustix::io::Errno::NOTTY),
            Error::TooMany => known(rustix::io::Errno::MFILE),
            Error::TooManyNodes => known(rustix::io::Errno::USERS),
            Error::NoDestination(_) => known(rustix::io::Errno::DESTADDRREQ),
            Error::Taken(_) => known(rustix::io::Errno::ADDRINUSE),
            _ => None,
        }
    }
}
