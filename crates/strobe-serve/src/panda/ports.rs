// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ports: who connects, how many, and the end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use strobe::catalogue::Catalogue;
use strobe::engine::kernel::Control;
use strobe::engine::user::User;
use strobe::error::Words;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::answer::Answer;
use super::arm::Arm;
use super::command::Parser;
use super::compare::Compare;
use super::control::Session;
use super::field::Kind;
use super::line::{Line, Lines};
use super::model::{COMPARES, SEQUENCERS};
use super::panel::Panel;
use super::sequencer::Sequencer;
use super::stream;
use crate::config::panda::{Config, Engine};
use crate::daemon::Daemon;

/// Bytes of answers that are written at once.
const ANSWERS: usize = 64 * 1024;

/// What is captured to begin with where there is no hardware: whoever arms gets rows.
const DEMO: [&str; 5] = [
    "sim.counter",
    "sim.ramp",
    "sim.sine",
    "sim.noise",
    "clock.late",
];

/// Opens the ports that this says.
///
/// # Errors
/// They cannot be opened, or may not be.
pub async fn bind(config: &Config) -> Result<Option<(TcpListener, TcpListener)>, Words> {
    config.check()?;
    let Some(address) = config.listen else {
        return Ok(None);
    };
    let open = async |port| {
        let at = SocketAddr::new(address, port);
        let failed = |error: io::Error| {
            Words::new(format!("PandA port {at}"), error.to_string())
                .mend("end the program that listens there, or choose other ports in [panda]")
        };
        TcpListener::bind(at).await.map_err(failed)
    };
    Ok(Some((
        open(config.control).await?,
        open(config.data).await?,
    )))
}

/// Serves both ports until the daemon ends.
pub fn serve(
    daemon: Arc<Daemon>,
    control: TcpListener,
    data: TcpListener,
) -> BoxFuture<'static, ()> {
    Box::pin(serve_both(daemon, control, data))
}

async fn serve_both(daemon: Arc<Daemon>, control: TcpListener, data: TcpListener) {
    let config = daemon.config.panda.clone();
    let catalogue = catalogue(config.engine);
    let panel = Arc::new(Panel::new(&catalogue));
    match daemon.config.demo && config.capture.is_empty() {
        true => capture(&panel, &DEMO.map(str::to_owned)),
        false => capture(&panel, &config.capture),
    }
    let arm = Arc::new(Arm::new(
        Arc::clone(&daemon),
        Arc::clone(&panel),
        config.engine.wanted(),
        config.keep,
    ));
    let tasks = TaskTracker::new();
    for number in 0..SEQUENCERS {
        let sequencer = Sequencer::new(Arc::clone(&panel), Arc::clone(&arm), number);
        let stop = daemon.stop.clone();
        tasks.spawn(async move { stop.run_until_cancelled(sequencer.serve()).await });
    }
    for number in 0..COMPARES {
        let compare = Compare::new(Arc::clone(&panel), Arc::clone(&arm), number);
        let stop = daemon.stop.clone();
        tasks.spawn(async move { stop.run_until_cancelled(compare.serve()).await });
    }
    let clients = Arc::new(Semaphore::new(config.clients));
    let readers = Arc::new(Semaphore::new(config.readers));
    loop {
        tokio::select! {
            () = daemon.stop.cancelled() => break,
            come = control.accept() => {
                let Some((stream, who)) = accepted(come).await else { continue };
                match Arc::clone(&clients).try_acquire_owned() {
                    Ok(place) => {
                        let (panel, arm) = (Arc::clone(&panel), Arc::clone(&arm));
                        let stop = daemon.stop.clone();
                        tasks.spawn(async move {
                            tokio::select! {
                                () = stop.cancelled() => {}
                                // Ends when the client goes, however it does.
                                _ = commands(stream, who, panel, arm, place) => {}
                            }
                        });
                    }
                    Err(_) => refuse(stream),
                }
            }
            come = data.accept() => {
                let Some((stream, who)) = accepted(come).await else { continue };
                match Arc::clone(&readers).try_acquire_owned() {
                    Ok(place) => {
                        let (panel, arm) = (Arc::clone(&panel), Arc::clone(&arm));
                        let stop = daemon.stop.clone();
                        tasks.spawn(async move {
                            let _listed = panel.enter(format!("{who} data"));
                            // Fails when the client goes.
                            let _ = stream::serve(stream, arm, stop).await;
                            drop(place);
                        });
                    }
                    Err(_) => refuse(stream),
                }
            }
        }
    }
    tasks.close();
    tasks.wait().await;
}

/// What the engines have; of names that both know, once.
fn catalogue(engine: Engine) -> Catalogue {
    let kernel = match engine {
        Engine::User => None,
        Engine::Auto | Engine::Kernel => Control::open().and_then(|c| c.catalogue()).ok(),
    };
    let mut all = kernel.unwrap_or_default();
    if engine == Engine::Kernel {
        return all;
    }
    let user = User::default().catalogue();
    for device in user.devices {
        if !all.devices.iter().any(|known| known.name == device.name) {
            all.devices.push(device);
        }
    }
    for channel in user.channels {
        if !all.channels.iter().any(|known| known.name == channel.name) {
            all.channels.push(channel);
        }
    }
    for event in user.events {
        if !all.events.iter().any(|known| known.name == event.name) {
            all.events.push(event);
        }
    }
    all
}

/// Captures these channels; what is no channel here is left out.
fn capture(panel: &Panel, channels: &[String]) {
    panel.with(|values| {
        for (name, found) in panel.model.fields() {
            let Kind::PosOut(sources) = &found.field.kind else {
                continue;
            };
            let source = sources.get(found.number);
            if source.is_some_and(|source| channels.contains(&source.channel)) {
                values.set_line(&format!("{name}.CAPTURE"), "Value");
            }
        }
    });
}

async fn accepted(come: io::Result<(TcpStream, SocketAddr)>) -> Option<(TcpStream, SocketAddr)> {
    match come {
        Ok((stream, who)) => {
            // Without them a client is served all the same, a little later.
            let _ = stream.set_nodelay(true);
            let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
            Some((stream, who))
        }
        Err(_) => {
            // There are no more files to be had, for instance; some are given back in time.
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// Says why, as far as that goes without waiting.
fn refuse(stream: TcpStream) {
    let _ = stream.try_write(b"ERR Too many connections\n");
}

/// The control port: commands are answered in their order.
async fn commands(
    mut stream: TcpStream,
    who: SocketAddr,
    panel: Arc<Panel>,
    arm: Arc<Arm>,
    place: OwnedSemaphorePermit,
) -> io::Result<()> {
    let _place = place;
    let _listed = panel.enter(format!("{who} control"));
    let (mut lines, mut parser, mut session) =
        (Lines::default(), Parser::default(), Session::default());
    let mut is_first = true;
    let mut bytes = vec![0; 16 * 1024];
    let mut answers = String::new();
    loop {
        let read = stream.read(&mut bytes).await?;
        if read == 0 {
            return Ok(());
        }
        lines.push(bytes.get(..read).unwrap_or_default());
        while let Some(line) = lines.next_line() {
            if std::mem::take(&mut is_first) && line.is_foreign() {
                let why = "ERR Commands only: no HTTP, and nothing that is no text\n";
                return stream.write_all(why.as_bytes()).await;
            }
            let command = match line {
                Line::Text(text) => parser.line(&text),
                Line::Wrong(why) => parser.wrong(why),
            };
            let Some(command) = command else {
                continue;
            };
            arm.look();
            let answer = session.answer(&panel, &arm.status(), command);
            let answer = match answer {
                Answer::Arm => match arm.arm().await {
                    Ok(()) => Answer::Ok,
                    Err(why) => Answer::Error(why),
                },
                Answer::Disarm => {
                    arm.disarm().await;
                    Answer::Ok
                }
                answer => answer,
            };
            answers.push_str(&answer.text());
            if answers.len() > ANSWERS {
                stream.write_all(answers.as_bytes()).await?;
                answers.clear();
            }
        }
        stream.write_all(answers.as_bytes()).await?;
        answers.clear();
    }
}
