// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program of the daemon; `strobe serve` starts it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use strobe::error::Words;
use strobe::info::End;
use strobe_files::sink::Existing;
use strobe_serve::config::Config;
use strobe_serve::nats::subscribe::{Matches, Options, Outcome};
use strobe_serve::start::{self, ListenAddresses};
use strobe_serve::systemd::HandedOver;

/// Serves runs and their rows to clients: a page in the browser, HTTP, the PandA protocol.
///
/// It listens on this machine only, unless the configuration says otherwise.
#[derive(Debug, Parser)]
#[command(name = "strobe-serve", version, max_term_width = 100)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_precedence_over_arg = true
)]
struct Arguments {
    /// Configuration (TOML); docs/reference/serve.md explains it
    config: Option<PathBuf>,
    /// Work without hardware: offer a recipe of the simulator, and the PandA ports
    #[arg(long)]
    demo: bool,
    /// Listen for HTTP here
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<SocketAddr>,
    /// Listen for PandA clients on the ports 8888 and 8889 of this address
    #[arg(long, value_name = "ADDRESS")]
    panda: Option<IpAddr>,
    /// Folder for the rows of all runs
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Record a run that a server publishes on NATS, to its end
    Subscribe(Subscribe),
}

#[derive(Debug, clap::Args)]
struct Subscribe {
    /// The NATS server: nats://HOST:4222
    url: String,
    /// Where rows go, as with `strobe record`
    #[arg(short = 'o', long = "output", value_name = "SINK", required = true)]
    sinks: Vec<String>,
    /// The run: the name of its recipe or its whole subject; needed if there are several
    #[arg(long = "run", value_name = "NAME")]
    runs: Vec<String>,
    /// Join two runs: put beside each row of the first --run the row of the second
    /// that is nearest in time (TAI), if it is at most this far away
    #[arg(long, value_name = "TIME", value_parser = time)]
    join: Option<Duration>,
    /// The stream that keeps the rows
    #[arg(long, value_name = "STREAM", default_value = "STROBE")]
    stream: String,
    /// Name under which NATS remembers the last row recorded; started again with
    /// it, this program goes on there
    #[arg(long, value_name = "NAME", default_value = "strobe-subscribe")]
    name: String,
    /// Replace files that exist
    #[arg(long)]
    overwrite: bool,
    /// Exit with 0 even if rows were missed or lost
    #[arg(long)]
    allow_loss: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    let ns = strobe::quantity::duration_ns(text).map_err(|error| error.to_string())?;
    Ok(Duration::from_nanos(ns))
}

fn main() -> ExitCode {
    // Before anything else is opened.
    let handed_over = HandedOver::take();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors.
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()));
        }
    };
    let done = match arguments.command {
        Some(Command::Subscribe(words)) => subscribe(words),
        None => run(arguments, handed_over).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|words| {
        eprintln!("strobe serve: {words}");
        ExitCode::FAILURE
    })
}

/// Exit statuses as those of `strobe record`.
fn subscribe(words: Subscribe) -> Result<ExitCode, Words> {
    let options = Options {
        url: words.url,
        stream: words.stream,
        runs: words.runs,
        join: words.join,
        name: words.name,
        sinks: words.sinks,
        existing: match words.overwrite {
            true => Existing::Overwrite,
            false => Existing::Refuse,
        },
    };
    let (summary, matches) = match start::subscribe(options)? {
        Outcome::Recorded(summary, matches) => (summary, matches),
        Outcome::TakenBefore => {
            eprintln!(
                "strobe subscribe: this run was recorded before under this --name; to record it again, give another \
                 --name"
            );
            return Ok(ExitCode::SUCCESS);
        }
        Outcome::Interrupted => return Ok(ExitCode::from(130)),
    };
    let (rows, missed, lost) = (summary.rows, summary.missed, summary.lost);
    eprintln!("strobe subscribe: {rows} rows, {missed} missed, {lost} lost");
    if let Some(matches) = &matches {
        let Matches {
            joined,
            alone,
            others,
            others_lost,
        } = matches;
        eprintln!(
            "strobe subscribe: {joined} rows were joined with one of the second run, {alone} were not; {others} rows \
             of the second run were not joined, {others_lost} lost"
        );
    }
    for sink in &summary.sinks {
        if let Some(why) = &sink.error {
            eprintln!("strobe subscribe: sink {}: {why}", sink.path);
        }
    }
    if let End::Failed(why) = &summary.end {
        eprintln!("strobe subscribe: the run failed: {why}");
    }
    let is_whole = summary.is_whole() && matches.is_none_or(|matches| matches.others_lost == 0);
    Ok(match is_whole || words.allow_loss {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(3),
    })
}

fn run(arguments: Arguments, handed_over: HandedOver) -> Result<(), Words> {
    let mut config = match &arguments.config {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    config.data = arguments.data.or(config.data).or_else(start::usual_data);
    config.demo |= arguments.demo;
    let wanted = ListenAddresses {
        http: arguments.http,
        panda: arguments.panda,
    };
    start::run(config, wanted, handed_over)
}
