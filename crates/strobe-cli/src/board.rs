// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe board`: check, show, install and remove board files.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use strobe_board::{
    Block, Board, Event, InstallError, Outcome, Policy, Register, System, Write, WriteValue,
};

mod instrument;

/// Prints a line. Nobody may be there to read it, as after `| head`; that is no reason to fail.
macro_rules! say {
    ($($argument:tt)*) => {{
        let _ = writeln!(std::io::stdout(), $($argument)*);
    }};
}

/// Check, show, install and remove board files
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// Where boards are installed
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "/lib/firmware/strobe"
    )]
    firmware_dir: PathBuf,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Check board files, and report every fault
    Check {
        /// Board files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Show what a board has
    Show {
        /// A board file, or the name of an installed board
        #[arg(value_name = "FILE|NAME")]
        board: String,
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Install a board: its cards become devices now, after hot-plug and at boot
    Install {
        /// A board file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Take the cards from other drivers
        #[arg(long, conflicts_with = "no_bind")]
        force: bool,
        /// Only write the files, for example into the image of another machine
        #[arg(long)]
        no_bind: bool,
    },
    /// Remove an installed board and free its cards
    Remove {
        /// The board file, or the name of an installed board
        #[arg(value_name = "FILE|NAME")]
        board: String,
    },
}

/// Does what `strobe board` was asked for.
pub fn run(args: Args) -> ExitCode {
    let system = System {
        firmware: args.firmware_dir,
        ..System::default()
    };
    let done = match args.action {
        Action::Check { files } => Ok(check(&files)),
        Action::Show { board, json } => show(&system, &board, json),
        Action::Install {
            file,
            force,
            no_bind,
        } => {
            let policy = match (no_bind, force) {
                (true, _) => Policy::FilesOnly,
                (false, true) => Policy::Force,
                (false, false) => Policy::Free,
            };
            install(&system, &file, policy)
        }
        Action::Remove { board } => remove(&system, &board),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}{}", instead(&error));
            ExitCode::FAILURE
        }
    }
}

/// What this program has for who cannot install a board, or not there.
fn instead(error: &InstallError) -> &'static str {
    match error {
        InstallError::ForUserEngine(_) => {
            "; the user engine takes the file: strobe record --board FILE"
        }
        InstallError::Io { source, .. } if source.kind() == ErrorKind::ReadOnlyFilesystem => {
            " with --firmware-dir"
        }
        _ => "",
    }
}

fn check(files: &[PathBuf]) -> bool {
    let mut all = true;
    for file in files {
        match Board::read(file) {
            Ok(board) if board.is_for_user_engine_only() => say!(
                "{}: ok: {}; only the user engine can use it: strobe record --board {}",
                file.display(),
                board.summary(),
                file.display()
            ),
            Ok(board) => say!("{}: ok: {}", file.display(), board.summary()),
            Err(faults) => {
                eprintln!("{faults}");
                all = false;
            }
        }
    }
    all
}

/// The text of a board that is named by a file or by an installed board's name.
fn locate(system: &System, board: &str) -> Result<PathBuf, InstallError> {
    let path = Path::new(board);
    if path.is_file() || board.contains('/') || board.ends_with(".toml") {
        return Ok(path.into());
    }
    system.find(board)
}

fn show(system: &System, board: &str, json: bool) -> Result<bool, InstallError> {
    let path = locate(system, board)?;
    let board = Board::read(&path)?;
    if json {
        say!("{}", as_json(&board));
    } else {
        say!("{}", as_text(&board).trim_end());
    }
    Ok(true)
}

fn install(system: &System, file: &Path, policy: Policy) -> Result<bool, InstallError> {
    let toml = std::fs::read_to_string(file).map_err(|source| InstallError::Io {
        doing: "read",
        path: file.into(),
        source,
    })?;
    let board = Board::from_toml(&file.display().to_string(), &toml)?;
    let installed = system.install(&board, &toml, policy)?;
    say!(
        "{}: installed: {}",
        installed.blob.display(),
        board.summary()
    );
    if policy == Policy::FilesOnly {
        return Ok(true);
    }
    if installed.bindings.is_empty() {
        say!(
            "no {} is here now; when one appears, it becomes device {}",
            board.hardware,
            board.name
        );
    }
    let mut good = true;
    for binding in &installed.bindings {
        let address = &binding.address;
        match &binding.outcome {
            Outcome::Bound(Some(name)) => say!("{address}: device {name}"),
            Outcome::Bound(None) => say!("{address}: bound"),
            Outcome::Other(driver) => {
                say!("{address}: the driver {driver} has it and keeps it; --force takes it over");
            }
            Outcome::Free => {
                good = false;
                eprintln!(
                    "{address}: {driver} refused it; `dmesg | grep {driver}` says why",
                    driver = board.hardware.driver()
                );
            }
        }
    }
    if !installed.at_boot {
        say!(
            "this system has no /etc/modules-load.d: make it load the module {} at boot",
            board.hardware.driver()
        );
    }
    Ok(good)
}

fn remove(system: &System, board: &str) -> Result<bool, InstallError> {
    let path = locate(system, board)?;
    let board = Board::read(&path)?;
    let bindings = system.remove(&board.hardware)?;
    say!("{}: removed", board.name);
    for binding in &bindings {
        match &binding.outcome {
            Outcome::Free => say!("{}: free", binding.address),
            Outcome::Other(driver) => {
                say!("{}: given back to the driver {driver}", binding.address)
            }
            Outcome::Bound(_) => say!("{}: taken by a more general board", binding.address),
        }
    }
    Ok(true)
}

fn as_text(board: &Board) -> String {
    if let Some(spoken) = &board.instrument {
        let head = format!("{}: {}\n", board.name, board.description);
        return head + &instrument::as_text(spoken);
    }
    let mut text = format!("{}: {}\n{}", board.name, board.description, board.hardware);
    if let Some(interrupt) = board.interrupt {
        let _ = write!(text, ", {}", interrupt.kind);
        if interrupt.vectors > 1 {
            let _ = write!(text, " with {} vectors", interrupt.vectors);
        }
    }
    text.push('\n');
    match board.frame_bytes() {
        Some(bytes) => {
            let _ = writeln!(text, "frame: {bytes} bytes");
        }
        None => {
            for bar in &board.bars {
                let _ = writeln!(text, "BAR {}: 0x{:x} bytes", bar.number, bar.size);
            }
        }
    }
    let registers = board.registers.iter().map(|register| {
        let mut width = format!("{} bit", register.bits());
        if register.big_endian {
            width += " big";
        }
        let block = match &register.block {
            Block::Bar(number) => number.to_string(),
            Block::Map(number) => number.to_string(),
            Block::NamedMap(name) => name.clone(),
            Block::Frame => "frame".to_owned(),
            Block::Chip(page) => page.map_or_else(|| "all".to_owned(), |page| page.to_string()),
        };
        let place = format!("{block}:0x{:04x}", register.offset);
        vec![
            register.name.clone(),
            place,
            width,
            register.access.to_string(),
            register.description.clone(),
        ]
    });
    text += &section(
        "register",
        ["at", "width", "access", ""],
        registers.collect(),
    );
    let channels = board.channels.iter().map(|channel| {
        let bits = match channel.bits {
            1 => channel.shift.to_string(),
            bits => format!("{}:{}", channel.shift + bits - 1, channel.shift),
        };
        let field = format!("{} {bits}", name_of(board, channel.register));
        let unit = labelled(&channel.unit, channel.scale, channel.offset);
        vec![
            channel.name.clone(),
            field,
            channel.kind.to_string(),
            unit,
            channel.description.clone(),
        ]
    });
    text += &section("channel", ["field", "type", "unit", ""], channels.collect());
    let outputs = board.outputs.iter().map(|output| {
        let unit = labelled(&output.unit, output.scale, output.offset);
        vec![
            output.name.clone(),
            name_of(board, output.register).into(),
            unit,
            output.description.clone(),
        ]
    });
    text += &section("output", ["register", "unit", ""], outputs.collect());
    let events = board.events.iter().map(|event| {
        let pending = event.pending.map_or_else(
            || "-".into(),
            |pending| {
                format!(
                    "{} & 0x{:x}",
                    name_of(board, pending.register),
                    pending.mask
                )
            },
        );
        let writes = |list: &[Write]| {
            let list: Vec<String> = list.iter().map(|write| write_text(board, write)).collect();
            if list.is_empty() {
                "-".into()
            } else {
                list.join(", ")
            }
        };
        vec![
            event.name.clone(),
            event.vector.to_string(),
            pending,
            board
                .missed(event)
                .map_or("-", |counter| &counter.name)
                .into(),
            writes(&event.silence),
            writes(&event.enable),
            writes(&event.disable),
            event.description.clone(),
        ]
    });
    text += &section(
        "event",
        [
            "vector", "pending", "missed", "silence", "enable", "disable", "",
        ],
        events.collect(),
    );
    let setup = board
        .setup
        .iter()
        .map(|write| vec![write_text(board, write)]);
    text + &section("setup", [], setup.collect())
}

/// A unit, with how a word becomes a value in it.
fn labelled(unit: &str, scale: f64, offset: f64) -> String {
    match (scale, offset) {
        (1.0, 0.0) => unit.to_owned(),
        (scale, 0.0) => format!("x {scale} {unit}"),
        (scale, offset) => format!("x {scale} + {offset} {unit}"),
    }
}

fn name_of(board: &Board, register: usize) -> &str {
    board
        .registers
        .get(register)
        .map_or("?", |register| register.name.as_str())
}

fn write_text(board: &Board, write: &Write) -> String {
    match write.value {
        WriteValue::Fixed(value) => format!("{} = 0x{value:x}", name_of(board, write.register)),
        WriteValue::Pending => format!("{} = pending", name_of(board, write.register)),
    }
}

/// A heading and rows in columns, after an empty line; nothing if there are no rows.
fn section<const N: usize>(kind: &str, heads: [&str; N], mut rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    rows.insert(
        0,
        std::iter::once(kind)
            .chain(heads)
            .map(String::from)
            .collect(),
    );
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..=N).map(width).collect();
    let mut text = String::from("\n");
    for row in &rows {
        let line: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text += line.join("  ").trim_end();
        text.push('\n');
    }
    text
}

fn as_json(board: &Board) -> serde_json::Value {
    use serde_json::json;

    let write = |write: &Write| {
        let value = match write.value {
            WriteValue::Fixed(value) => json!(value),
            WriteValue::Pending => json!("pending"),
        };
        json!({ "register": name_of(board, write.register), "write": value })
    };
    let writes = |list: &[Write]| list.iter().map(write).collect::<Vec<_>>();
    let register = |register: &Register| {
        let (block, which) = match &register.block {
            Block::Bar(number) => ("bar", json!(number)),
            Block::Map(number) => ("map", json!(number)),
            Block::NamedMap(name) => ("map", json!(name)),
            Block::Frame => ("frame", json!(0)),
            Block::Chip(page) => ("page", json!(page)),
        };
        json!({
            "name": register.name, "description": register.description, block: which,
            "offset": register.offset, "width": register.bits(), "access": register.access.to_string(),
            "endian": if register.big_endian { "big" } else { "little" },
        })
    };
    let event = |event: &Event| {
        let pending = event.pending.map(
            |pending| json!({ "register": name_of(board, pending.register), "mask": pending.mask }),
        );
        json!({
            "name": event.name, "description": event.description, "vector": event.vector, "pending": pending,
            "missed": board.missed(event).map(|counter| &counter.name),
            "silence": writes(&event.silence), "enable": writes(&event.enable), "disable": writes(&event.disable),
        })
    };
    json!({
        "name": board.name,
        "description": board.description,
        "match": board.hardware.to_string(),
        "interrupt": board.interrupt.map(|interrupt| {
            json!({ "kind": interrupt.kind.to_string(), "vectors": interrupt.vectors })
        }),
        "frame_bytes": board.frame_bytes(),
        "bars": board.bars.iter().filter(|_| board.frame_bytes().is_none()).map(|bar| json!({ "number": bar.number, "size": bar.size })).collect::<Vec<_>>(),
        "registers": board.registers.iter().map(register).collect::<Vec<_>>(),
        "channels": board.channels.iter().map(|channel| {
            json!({
                "name": channel.name, "description": channel.description, "unit": channel.unit,
                "scale": channel.scale, "offset": channel.offset, "register": name_of(board, channel.register),
                "shift": channel.shift, "bits": channel.bits, "type": channel.kind.to_string(),
            })
        }).collect::<Vec<_>>(),
        "outputs": board.outputs.iter().map(|output| {
            json!({
                "name": output.name, "description": output.description, "unit": output.unit,
                "scale": output.scale, "offset": output.offset, "register": name_of(board, output.register),
            })
        }).collect::<Vec<_>>(),
        "events": board.events.iter().map(event).collect::<Vec<_>>(),
        "setup": writes(&board.setup),
        "instrument": board.instrument.as_ref().map(instrument::as_json),
    })
}
