// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why there is no answer.

use std::io;

use rustix::io::Errno;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// None came in time.
    Late,
    /// It is not of the form in the board file.
    Wrong,
    /// It ended before its end, or the connection did.
    Cut,
    /// It is longer than the board file allows.
    Long,
    /// Something was there that nobody had asked for, or came after the answer: which one is meant is not to be seen.
    Extra,
    /// The instrument said that it cannot.
    Refused,
    /// There is no connection, so nothing was asked.
    Absent,
}

impl Fault {
    /// The errno of a channel with this fault. None of them ends a run.
    pub fn errno(self) -> Errno {
        match self {
            Fault::Late => Errno::TIMEDOUT,
            Fault::Wrong => Errno::BADMSG,
            Fault::Cut => Errno::CONNRESET,
            Fault::Long => Errno::MSGSIZE,
            Fault::Extra => Errno::PROTO,
            Fault::Refused => Errno::OPNOTSUPP,
            Fault::Absent => Errno::NOTCONN,
        }
    }
}

/// What is left of a conversation after a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The next question may follow.
    All,
    /// The connection, but whose answer comes next is not known.
    Line,
    /// Nothing: it has to be reached again.
    Nothing,
}

/// Why a question or command failed.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) fault: Fault,
    pub(crate) left: Left,
    /// For people.
    pub(crate) why: String,
}

impl Trouble {
    pub(crate) fn new(fault: Fault, left: Left, why: impl Into<String>) -> Trouble {
        let why = why.into();
        Trouble { fault, left, why }
    }

    /// Nothing came in time. It may still come.
    pub(crate) fn late() -> Trouble {
        Trouble::new(Fault::Late, Left::Line, "it does not answer")
    }

    /// What is wrong with a connection that was there.
    pub(crate) fn of(error: &io::Error) -> Trouble {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Trouble::late(),
            _ => Trouble::new(Fault::Cut, Left::Nothing, error.to_string()),
        }
    }

    /// The other side has hung up.
    pub(crate) fn hung_up() -> Trouble {
        Trouble::new(Fault::Cut, Left::Nothing, "it closed the connection")
    }
}
