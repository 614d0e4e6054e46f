// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe rpmsg`: endpoints of co-processors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use strobe::rpmsg::{Address, Control, Endpoint, Error};

use crate::term;

mod bench;
mod open;
mod ping;

/// Show the channels of co-processors, and exchange messages with them
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show the control nodes; whoever may open one can make endpoints on its channel
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    Ping(ping::Args),
    Open(open::Args),
    Bench(bench::Args),
}

/// The endpoint that is wanted.
#[derive(clap::Args)]
struct Where {
    /// The control node, such as strobe_rpmsg0 (default: the only one)
    #[arg(long, value_name = "NODE")]
    control: Option<String>,

    /// Name of the service
    #[arg(long, value_name = "NAME", default_value = "strobe")]
    service: String,

    /// Address of the remote: 1024, 0x400 (default: none; some transports find it themselves)
    #[arg(long, value_name = "ADDR", value_parser = address)]
    to: Option<u32>,

    /// Address of the endpoint (default: one that is free)
    #[arg(long, value_name = "ADDR", value_parser = address)]
    from: Option<u32>,
}

impl Where {
    fn address(&self) -> Address {
        Address {
            name: self.service.clone(),
            src: self.from,
            dst: self.to,
        }
    }

    fn endpoint(&self) -> Result<Endpoint, Error> {
        Control::find(self.control.as_deref())?.create(&self.address())
    }
}

/// A number in decimal or hexadecimal; the greatest means any address.
fn address(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    number
        .filter(|number| *number != u32::MAX)
        .ok_or_else(|| "write a number below 4294967295, as in 0x400".to_owned())
}

pub fn run(args: &Args) -> ExitCode {
    match &args.action {
        Action::List { json } => list(*json),
        Action::Ping(args) => ping::run(args),
        Action::Open(args) => open::run(args),
        Action::Bench(args) => bench::run(args),
    }
}

#[derive(Serialize)]
struct Listing {
    controls: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    path: PathBuf,
    /// The channel, as the bus calls it.
    channel: String,
    /// Name of its service.
    service: String,
}

fn list(json: bool) -> ExitCode {
    let controls = Control::list().into_iter().map(Listed::of).collect();
    term::found(&Listing { controls }, json, text, term::COMPLETE)
}

impl Listed {
    fn of(path: PathBuf) -> Listed {
        let node = path.file_name().unwrap_or_default();
        let device = Path::new("/sys/class/strobe_rpmsg")
            .join(node)
            .join("device");
        let channel = fs::canonicalize(&device).unwrap_or_default();
        let channel = channel.file_name().unwrap_or_default();
        let service = fs::read_to_string(device.join("name")).unwrap_or_default();
        Listed {
            channel: channel.to_string_lossy().into_owned(),
            service: service.trim().to_owned(),
            path,
        }
    }
}

fn text(listing: &Listing) -> String {
    if listing.controls.is_empty() {
        return format!("no control nodes\n{}\n", Error::NoControl);
    }
    let row = |it: &Listed| {
        [
            it.path.display().to_string(),
            it.channel.clone(),
            it.service.clone(),
        ]
    };
    let head = ["node", "channel", "service"].map(str::to_owned);
    let rows: Vec<_> = [head]
        .into_iter()
        .chain(listing.controls.iter().map(row))
        .collect();
    term::table("", &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_in_decimal_or_hexadecimal() {
        assert_eq!(address("1024"), Ok(1024));
        assert_eq!(address("0x400"), Ok(1024));
        for text in ["", "x", "-1", "0xffffffff", "4294967296"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
