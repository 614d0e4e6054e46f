// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control node of a channel: who may open it may have endpoints.

use std::fs::{self, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::call::{self, ANY, Info, NAME_SIZE};
use super::endpoint::Endpoint;
use super::error::Error;

const CLASS: &str = "/sys/class/strobe_rpmsg";

/// Of an endpoint that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Name of the service.
    pub name: String,
    /// Its own; `None`: any that is free.
    pub src: Option<u32>,
    /// Where its messages go; `None`: back to it, if the transport does that.
    pub dst: Option<u32>,
}

impl Address {
    /// One that sends to this address of the remote.
    pub fn to(name: &str, dst: u32) -> Address {
        Address {
            name: name.to_owned(),
            src: None,
            dst: Some(dst),
        }
    }
}

/// The control node of a channel, open.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    fd: OwnedFd,
}

impl Control {
    /// The control nodes that there are, by their names, in the order of these.
    pub fn list() -> Vec<PathBuf> {
        let class = Path::new(CLASS);
        // A container may have no /sys; and if it has, that shows nodes of which it was not given any. With the stock
        // driver's name it is ours if it is of our class.
        let all = match class.exists() {
            true => Control::of_class(class),
            false => Control::list_in(Path::new("/dev"), &["strobe_rpmsg"]),
        };
        all.into_iter().filter(|node| node.exists()).collect()
    }

    /// Those that a directory like that of our class has.
    pub fn of_class(class: &Path) -> Vec<PathBuf> {
        Control::list_in(class, &["strobe_rpmsg", "rpmsg_ctrl"])
    }

    /// Those of the entries of a directory that are called so, and a number; not those of endpoints.
    fn list_in(directory: &Path, prefixes: &[&str]) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut numbered: Vec<(u32, String)> = names
            .filter_map(|name| {
                let mut prefixes = prefixes.iter();
                let number = prefixes.find_map(|prefix| name.strip_prefix(prefix))?;
                Some((number.parse().ok()?, name))
            })
            .collect();
        numbered.sort();
        let nodes = numbered.into_iter();
        nodes
            .map(|(_, name)| Path::new("/dev").join(name))
            .collect()
    }

    /// Opens the one of this name, with or without `/dev/`, or the only one there is.
    ///
    /// # Errors
    /// There is none, or several and no name, or it may not be opened.
    pub fn find(name: Option<&str>) -> Result<Control, Error> {
        let all = match name {
            Some(name) => vec![Path::new("/dev").join(name)],
            None => Control::list(),
        };
        match &all[..] {
            [] => Err(Error::NoControl),
            [path] => Control::open(path),
            several => {
                let names = several.iter().map(|path| path.display().to_string());
                Err(Error::Ambiguous(names.collect()))
            }
        }
    }

    /// Opens a control node.
    ///
    /// # Errors
    /// It is not there, or may not be opened.
    pub fn open(path: &Path) -> Result<Control, Error> {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let file = opened.map_err(|source| Error::Open {
            path: path.to_owned(),
            source,
        })?;
        Ok(Control {
            path: path.to_owned(),
            fd: file.into(),
        })
    }

    /// Its node.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes an endpoint; it ends when it is dropped.
    ///
    /// # Errors
    /// The name cannot be one, the address is taken, the remote has gone, or there is no memory or file number.
    pub fn create(&self, address: &Address) -> Result<Endpoint, Error> {
        let info = info(address)?;
        let made = call::create(self.fd.as_fd(), info);
        let (fd, address) = made.map_err(|errno| match errno {
            Errno::NETRESET => Error::ControlGone(self.path.clone()),
            Errno::ADDRINUSE => Error::Taken(info.src),
            // All that is asked for is right: another driver does not know the call, and that of rpmsg_ctrl says EINVAL.
            Errno::NOTTY | Errno::INVAL => Error::NoControlNode(self.path.clone()),
            Errno::MFILE => Error::TooMany,
            other => Error::Call {
                doing: "making an endpoint",
                source: other.into(),
            },
        })?;
        Ok(Endpoint::new(fd, address))
    }

    /// Makes an endpoint the way of the stock driver, on its control node too: a node, which appears in /dev when the
    /// system has made it.
    ///
    /// # Errors
    /// As of [`Control::create`].
    pub fn create_node(&self, address: &Address) -> Result<(), Error> {
        call::create_node(self.fd.as_fd(), info(address)?).map_err(|errno| match errno {
            Errno::USERS => Error::TooManyNodes,
            other => Error::Call {
                doing: "making a node",
                source: other.into(),
            },
        })
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn info(address: &Address) -> Result<Info, Error> {
    Ok(Info {
        name: fixed(&address.name).ok_or_else(|| Error::Name(address.name.clone()))?,
        src: address.src.unwrap_or(ANY),
        dst: address.dst.unwrap_or(ANY),
    })
}

fn fixed(name: &str) -> Option<[u8; NAME_SIZE]> {
    let mut bytes = [0; NAME_SIZE];
    let fits = (1..NAME_SIZE).contains(&name.len()) && !name.contains('\0');
    if fits {
        bytes
            .get_mut(..name.len())?
            .copy_from_slice(name.as_bytes());
    }
    fits.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_whole_or_refused() {
        assert!(fixed("a").is_some());
        assert!(fixed(&"a".repeat(31)).is_some());
        for name in ["", "a\0b", &"a".repeat(32)] {
            assert!(fixed(name).is_none(), "{name:?}");
        }
    }

    #[test]
    fn control_nodes_are_found_by_their_names_in_the_order_of_their_numbers() {
        let class = tempfile::tempdir().expect("a directory");
        for name in [
            "strobe_rpmsg10",
            "strobe_rpmsg2",
            "strobe_rpmsg_ept0",
            "rpmsg0",
        ] {
            fs::create_dir(class.path().join(name)).expect("to make it");
        }
        let found = Control::list_in(class.path(), &["strobe_rpmsg"]);
        let wanted = ["/dev/strobe_rpmsg2", "/dev/strobe_rpmsg10"];
        assert_eq!(found, wanted.map(PathBuf::from));
        assert!(Control::list_in(&class.path().join("none"), &["strobe_rpmsg"]).is_empty());
    }

    #[test]
    fn without_a_control_node_it_is_said_what_to_do() {
        if Control::list().is_empty() {
            let error = Control::find(None).expect_err("nothing is there");
            assert!(error.to_string().contains("driver_override"), "{error}");
        }
        let error = Control::find(Some("strobe_rpmsg999")).expect_err("not there");
        assert!(error.to_string().contains("strobe rpmsg list"), "{error}");
    }
}
