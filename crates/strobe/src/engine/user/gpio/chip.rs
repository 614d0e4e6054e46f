// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPIO chips and their lines, by the names people have for them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gpiocdev_uapi::Name;
use gpiocdev_uapi::v2::{self, ChipInfo, LineConfig, LineFlags, LineInfo, LineRequest};
use rustix::io::Errno;

/// What this program is called by those who want to know who uses a line.
const CONSUMER: &str = "strobe";

/// A chip that this process may use.
pub struct Chip {
    file: File,
    path: PathBuf,
    info: ChipInfo,
}

/// An error of the system, of this crate's kind. Allocates nothing.
pub fn system(error: v2::Error) -> io::Error {
    match error {
        v2::Error::Os(errno) => io::Error::from_raw_os_error(errno.0),
        v2::Error::UnderRead(_) => Errno::IO.into(),
    }
}

fn text(name: &Name) -> String {
    name.as_os_str().to_string_lossy().into_owned()
}

impl Chip {
    fn open(path: &Path) -> io::Result<Chip> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let info = v2::get_chip_info(&file).map_err(system)?;
        let path = path.to_owned();
        Ok(Chip { file, path, info })
    }

    /// The chip that is called like this: its name (`gpiochip0`), number, label or path.
    ///
    /// # Errors
    /// Why not, and what there is.
    pub fn find(called: &str) -> Result<Chip, String> {
        if called.contains('/') {
            let path = Path::new(called);
            return Chip::open(path).map_err(|error| refusal(called, path, &error));
        }
        let name = match called.parse::<u32>() {
            Ok(number) => format!("gpiochip{number}"),
            Err(_) => called.to_owned(),
        };
        if let Some(path) = paths().into_iter().find(|path| path.ends_with(&name)) {
            return Chip::open(&path).map_err(|error| refusal(called, &path, &error));
        }
        let labelled = |chip: &Chip| text(&chip.info.label) == called;
        let mut found: Vec<Chip> = all().into_iter().filter(labelled).collect();
        match (found.pop(), found.is_empty()) {
            (Some(chip), true) => Ok(chip),
            (Some(_), false) => Err(format!(
                "several chips are labelled {called}; name one: {}",
                what_there_is()
            )),
            (None, _) => Err(format!("there is no chip {called}; {}", what_there_is())),
        }
    }

    /// Name of the chip with its label, for people.
    pub fn title(&self) -> String {
        match (text(&self.info.name), text(&self.info.label)) {
            (name, label) if label.is_empty() => name,
            (name, label) => format!("{name} ({label})"),
        }
    }

    /// The same chip has the same.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name of the chip, and how many lines it has.
    pub fn name_and_lines(&self) -> (String, u32) {
        (text(&self.info.name), self.info.num_lines)
    }

    fn line_info(&self, offset: u32) -> Result<LineInfo, String> {
        v2::get_line_info(&self.file, offset)
            .map_err(|error| format!("line {offset} of {}: {}", self.title(), system(error)))
    }

    /// Offset of the line that is called like this: its offset or name.
    ///
    /// # Errors
    /// Why not, and what there is.
    pub fn line(&self, called: &str) -> Result<u32, String> {
        let lines = self.info.num_lines;
        let last = lines.saturating_sub(1);
        if let Ok(offset) = called.parse::<u32>() {
            return if offset < lines {
                Ok(offset)
            } else {
                Err(format!("{} has lines 0 to {last}", self.title()))
            };
        }
        let mut names = Vec::new();
        let mut found = Vec::new();
        for offset in 0..lines {
            let name = text(&self.line_info(offset)?.name);
            if name == called {
                found.push(offset);
            } else if !name.is_empty() {
                names.push(name);
            }
        }
        match (found.as_slice(), names.is_empty()) {
            ([offset], _) => Ok(*offset),
            ([], true) => Err(format!(
                "{} has no line {called}, and its lines have no names; use 0 to {last}",
                self.title()
            )),
            ([], false) => Err(format!(
                "{} has no line {called}; it has lines 0 to {last}, some named {}",
                self.title(),
                names.join(", ")
            )),
            (several, _) => Err(format!(
                "{} has several lines named {called}; use one of {several:?}",
                self.title()
            )),
        }
    }

    /// Whether nobody uses the line.
    ///
    /// # Errors
    /// Who does.
    pub fn is_free(&self, offset: u32) -> Result<(), String> {
        match self.line_info(offset)?.flags.contains(LineFlags::USED) {
            true => Err(self.used(offset)),
            false => Ok(()),
        }
    }

    /// The words for a line that somebody else uses.
    fn used(&self, offset: u32) -> String {
        let user = self.line_info(offset).map(|info| text(&info.consumer));
        let user = user.ok().filter(|user| !user.is_empty());
        let user = user.unwrap_or_else(|| "another program".to_owned());
        let title = self.title();
        format!("line {offset} of {title} is used by {user}; end that program, or use another line")
    }

    /// The line, for this process alone.
    ///
    /// # Errors
    /// Why not: another program has it, or it cannot do what is wanted, which `cannot` says.
    pub fn request(
        &self,
        offset: u32,
        config: LineConfig,
        event_buffer_size: u32,
        cannot: &str,
    ) -> Result<File, String> {
        let mut request = LineRequest {
            consumer: Name::from_bytes(CONSUMER.as_bytes()),
            config,
            num_lines: 1,
            event_buffer_size,
            ..LineRequest::default()
        };
        request.offsets.set(0, offset);
        v2::get_line(&self.file, request).map_err(|error| {
            let error = system(error);
            let title = format!("line {offset} of {}", self.title());
            match Errno::from_io_error(&error) {
                Some(Errno::BUSY) => self.used(offset),
                Some(Errno::NODEV) => format!("{title} has just gone"),
                _ => format!("{title} {cannot} ({error})"),
            }
        })
    }
}

fn refusal(called: &str, path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no chip {called}; {}", what_there_is()),
        io::ErrorKind::PermissionDenied => {
            let owner = path.metadata().map(|about| about.gid());
            let group = owner.ok().filter(|gid| *gid != 0).map_or_else(
                || "add a udev rule that gives it to one of your groups".to_owned(),
                |gid| format!("become a member of its group, {gid} (usermod -aG)"),
            );
            format!("{}: no permission; {group}, or be root", path.display())
        }
        _ => format!("{} is not a GPIO chip ({error})", path.display()),
    }
}

/// Device files of chips, in the order of their numbers.
fn paths() -> Vec<PathBuf> {
    let number = |path: &PathBuf| -> Option<u32> {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix("gpiochip")?.parse().ok()
    };
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| number(path).is_some());
    paths.sort_by_key(number);
    paths
}

/// All chips that this process may use.
pub fn all() -> Vec<Chip> {
    let paths = paths();
    let chips = paths.iter().filter_map(|path| Chip::open(path).ok());
    chips.collect()
}

/// What to use instead of a chip that is not there.
fn what_there_is() -> String {
    let chips: Vec<String> = paths()
        .iter()
        .map(|path| match Chip::open(path) {
            Ok(chip) => chip.title(),
            Err(error) => format!("{} ({error})", path.display()),
        })
        .collect();
    if chips.is_empty() {
        "this machine has no GPIO chip at all (/dev/gpiochip*)".to_owned()
    } else {
        format!("there are {}", chips.join(", "))
    }
}
