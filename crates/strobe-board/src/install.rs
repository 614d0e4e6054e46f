// SPDX-License-Identifier: MIT OR Apache-2.0
//! Putting boards where the kernel finds them, and telling the driver to look again.
//!
//! A board is two files in the firmware directory: the blob for strobe_board.ko or strobe_frames.ko, and beside it the TOML it
//! was made of, for people and for engines that need no driver. The driver asks for the blob whenever such a
//! device appears, so that hot-plug and boot need nothing but the files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Board, Faults, ForUserEngine, Hardware};

mod device;

use device::{Device, probe};

/// Where things are on this machine; tests have a machine of their own.
#[derive(Clone, Debug)]
pub struct System {
    /// Where the kernel looks for boards.
    pub firmware: PathBuf,
    /// The PCI bus in sysfs.
    pub pci: PathBuf,
    /// The platform bus in sysfs.
    pub platform: PathBuf,
    /// The bus of co-processors in sysfs.
    pub rpmsg: PathBuf,
    /// Where it is written which modules are loaded at boot.
    pub autoload: PathBuf,
    /// The program that loads modules.
    pub modprobe: PathBuf,
}

impl Default for System {
    fn default() -> Self {
        System {
            firmware: "/lib/firmware/strobe".into(),
            pci: "/sys/bus/pci".into(),
            platform: "/sys/bus/platform".into(),
            rpmsg: "/sys/bus/rpmsg".into(),
            autoload: "/etc/modules-load.d".into(),
            modprobe: "modprobe".into(),
        }
    }
}

/// What may be done to devices when a board is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Nothing: the files are all that is wanted.
    FilesOnly,
    /// Bind the devices that have no driver.
    Free,
    /// Take the devices from other drivers, too.
    Force,
}

/// What became of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Its address, `0000:00:03.0`.
    pub address: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The board's driver has it; its name in the catalogue, if that can be told.
    Bound(Option<String>),
    /// Another driver has it.
    Other(String),
    /// No driver has it.
    Free,
}

/// What `install` has done.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The blob.
    pub blob: PathBuf,
    /// Whether the driver will be loaded at boot.
    pub at_boot: bool,
    /// The devices of this kind, empty if there is none at present.
    pub bindings: Vec<Binding>,
}

/// Why a board could not be installed, found or removed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Something could not be read or written.
    #[error("{}: cannot {doing}: {source}{}", path.display(), remedy(source))]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// What came of it.
        source: io::Error,
    },
    /// The driver is not there.
    #[error(
        "the driver {driver} cannot be loaded: {said}; run it with sudo, or install strobe's kernel modules first"
    )]
    NoDriver {
        /// Which.
        driver: &'static str,
        /// What was said about it.
        said: String,
    },
    /// No such board.
    #[error("board `{name}` is not installed in {}; {}", directory.display(), known(installed))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Where.
        directory: PathBuf,
        /// What is there instead.
        installed: Vec<String>,
    },
    /// Several boards have that name.
    #[error("several boards are named `{name}`: {}; name one of these files", files.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// Their files, without extension.
        files: Vec<String>,
    },
    /// No driver can take the board.
    #[error(transparent)]
    ForUserEngine(#[from] ForUserEngine),
    /// A board file is wrong.
    #[error(transparent)]
    Board(#[from] Faults),
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; run it with sudo",
        io::ErrorKind::ReadOnlyFilesystem => "; choose another directory",
        _ => "",
    }
}

fn known(installed: &[String]) -> String {
    match installed {
        [] => "no board is installed, see `strobe board install`".into(),
        list => format!("installed: {}", list.join(", ")),
    }
}

type Result<T> = std::result::Result<T, InstallError>;

/// Adds what was tried, and with what, to an error of the system.
trait Doing<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| InstallError::Io {
            doing,
            path: path.into(),
            source,
        })
    }
}

impl System {
    /// A file of a board. Its name may have points, which begin no extension: `platform-xlnx,xps-timer-1.00.a.board`.
    fn file(&self, hardware: &Hardware, extension: &str) -> PathBuf {
        self.firmware
            .join(format!("{}.{extension}", hardware.stem()))
    }

    /// Installs a board, whose text is `toml`, and binds devices as `policy` allows.
    ///
    /// Runs that use such a device end, unless nothing has changed.
    pub fn install(&self, board: &Board, toml: &str, policy: Policy) -> Result<Installed> {
        let blob = board.compile()?;
        let driver = board.hardware.driver();
        let path = self.file(&board.hardware, "board");
        fs::create_dir_all(&self.firmware).doing("create the directory", &self.firmware)?;
        let changed = fs::read(&path).map_or(true, |old| old != blob);
        // The blob comes last: it is what counts.
        replace(&self.file(&board.hardware, "toml"), toml.as_bytes())?;
        replace(&path, &blob)?;
        if policy == Policy::FilesOnly {
            return Ok(Installed {
                blob: path,
                at_boot: false,
                bindings: Vec::new(),
            });
        }

        let at_boot = self.autoload.is_dir();
        if at_boot {
            let text = format!(
                "# Written by `strobe board install`: takes the devices that boards were installed for.\n{driver}\n"
            );
            replace(&self.autoload_file(driver), text.as_bytes())?;
        }
        let fresh = self.load_driver(&board.hardware)?;
        let mut bindings = Vec::new();
        for device in self.devices(&board.hardware)? {
            let has = device.driver();
            match has.as_deref() {
                Some(name) if name == driver => {
                    if changed && !fresh {
                        probe(&device)?;
                    }
                }
                None => {
                    // These buses give the driver only what was meant for it.
                    if matches!(
                        board.hardware,
                        Hardware::Platform { .. } | Hardware::Rpmsg { .. }
                    ) {
                        device.set_override(driver)?;
                    }
                    probe(&device)?;
                }
                Some(_) if policy == Policy::Force => {
                    device.set_override(driver)?;
                    probe(&device)?;
                }
                Some(_) => {}
            }
            bindings.push(device.binding(driver));
        }
        Ok(Installed {
            blob: path,
            at_boot,
            bindings,
        })
    }

    /// Removes an installed board. Its devices go to whatever driver there is for them, if any.
    pub fn remove(&self, hardware: &Hardware) -> Result<Vec<Binding>> {
        let name = match hardware {
            Hardware::Uio { name, .. } => name.clone(),
            other => other.to_string(),
        };
        if let Some(why) = hardware.for_user_engine_only(&name) {
            return Err(why.into());
        }
        let (blob, text) = (self.file(hardware, "board"), self.file(hardware, "toml"));
        fs::remove_file(&blob).doing("remove the board", &blob)?;
        match fs::remove_file(&text) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done.doing("remove the board's text", &text)?,
        }
        let driver = hardware.driver();
        let of_rpmsg = |stem: &str| stem.starts_with("rpmsg-");
        let installed = self.installed()?;
        let mut others = installed.iter().map(|(stem, _)| of_rpmsg(stem));
        if !others.any(|other| other == of_rpmsg(&hardware.stem())) {
            // May be absent, or another's wish; the driver without boards does nothing.
            let _ = fs::remove_file(self.autoload_file(driver));
        }
        let mut bindings = Vec::new();
        for device in self.devices(hardware)? {
            if device.driver().as_deref() == Some(driver) {
                device.clear_override(driver)?;
                probe(&device)?;
                bindings.push(device.binding(driver));
            }
        }
        Ok(bindings)
    }

    /// The text of an installed board, by the name of its device or of its files.
    pub fn find(&self, name: &str) -> Result<PathBuf> {
        let installed = self.installed()?;
        let mut files: Vec<&(String, PathBuf)> = installed
            .iter()
            .filter(|(stem, path)| {
                stem == name || Board::read(path).is_ok_and(|board| board.name == name)
            })
            .collect();
        match (files.pop(), files.is_empty()) {
            (Some((_, path)), true) => Ok(path.clone()),
            (Some((last, _)), false) => {
                let files = files
                    .iter()
                    .map(|(stem, _)| stem)
                    .chain([last])
                    .cloned()
                    .collect();
                Err(InstallError::Ambiguous {
                    name: name.into(),
                    files,
                })
            }
            (None, _) => Err(InstallError::Unknown {
                name: name.into(),
                directory: self.firmware.clone(),
                installed: installed.into_iter().map(|(stem, _)| stem).collect(),
            }),
        }
    }

    /// The boards that are installed: names of their files, and their texts.
    fn installed(&self) -> Result<Vec<(String, PathBuf)>> {
        let mut list = Vec::new();
        let entries = match fs::read_dir(&self.firmware) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(list),
            entries => entries.doing("list the boards", &self.firmware)?,
        };
        for entry in entries {
            let path = entry.doing("list the boards", &self.firmware)?.path();
            if let (Some("toml"), Some(stem)) = (
                extension(&path),
                path.file_stem().and_then(|stem| stem.to_str()),
            ) {
                list.push((stem.to_owned(), path.clone()));
            }
        }
        list.sort();
        Ok(list)
    }

    /// Loads the driver; answers whether it had to be.
    fn load_driver(&self, hardware: &Hardware) -> Result<bool> {
        let driver = hardware.driver();
        // That of boards is on the bus of PCI in any case.
        let bus = match hardware {
            Hardware::Rpmsg { .. } => &self.rpmsg,
            _ => &self.pci,
        };
        if bus.join("drivers").join(driver).exists() {
            return Ok(false);
        }
        let said = match Command::new(&self.modprobe).arg(driver).output() {
            Ok(done) if done.status.success() => return Ok(true),
            Ok(done) => String::from_utf8_lossy(&done.stderr).trim().to_owned(),
            Err(error) => format!("{}: {error}", self.modprobe.display()),
        };
        Err(InstallError::NoDriver { driver, said })
    }

    /// The file that has a driver loaded at boot.
    fn autoload_file(&self, driver: &str) -> PathBuf {
        self.autoload
            .join(driver.replace('_', "-"))
            .with_extension("conf")
    }

    fn devices(&self, hardware: &Hardware) -> Result<Vec<Device>> {
        let bus = match hardware {
            Hardware::Platform { .. } => &self.platform,
            Hardware::Rpmsg { .. } => &self.rpmsg,
            _ => &self.pci,
        };
        let directory = bus.join("devices");
        let mut list = Vec::new();
        for entry in fs::read_dir(&directory).doing("list devices", &directory)? {
            let path = entry.doing("list devices", &directory)?.path();
            let bus = bus.clone();
            let device = Device { path, bus };
            if device.is(hardware) {
                list.push(device);
            }
        }
        list.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(list)
    }
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

/// Writes a file so that whoever opens it sees the old one or the new one, whole.
fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = path.with_extension(format!("{}.new", extension(path).unwrap_or_default()));
    let write = || {
        let mut file = fs::File::create(&temporary)?;
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().doing("write", path)
}
