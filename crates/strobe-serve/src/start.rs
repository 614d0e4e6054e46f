// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the start of the daemon to its end.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::socket_domain;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, getsockname};
use strobe::error::Words;
use strobe::stop::Stop;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::task::TaskTracker;

use crate::config::{Config, http};
use crate::daemon::Daemon;
use crate::http::{Http, Listener};
use crate::nats::{self, subscribe::Options, subscribe::Outcome};
use crate::panda;
use crate::systemd::{self, HandedOver};

/// How long the end may take: rows that are on their way, and then rows for the disk.
const PATIENCE: Duration = Duration::from_secs(5);
/// Threads for what may have to wait, at most: half of them for files, see `cursor`. Each takes memory of its own.
const WAITING: usize = 16;
/// The simulator, as a recipe.
const DEMO: &str = r#"# The simulator, which needs no hardware. Start it on the page, or with a PandA client.
event = "timer:1kHz"
read = ["sim.counter", "sim.ramp", "sim.sine", "sim.noise", "clock.late"]
engine = "user"
"#;

/// What the command line says about where to listen.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListenAddresses {
    /// For HTTP.
    pub http: Option<SocketAddr>,
    /// For PandA clients.
    pub panda: Option<IpAddr>,
}

/// Where rows are kept if nobody says: in the folder that the service manager gives, or the user's for such things.
pub fn usual_data() -> Option<PathBuf> {
    let folder = |name| env::var_os(name).filter(|folder| !folder.is_empty());
    let of_manager = folder("STATE_DIRECTORY").map(PathBuf::from);
    let of_user = folder("XDG_STATE_HOME").map(PathBuf::from);
    let of_home = folder("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    of_manager.or_else(|| of_user.or(of_home).map(|folder| folder.join("strobe")))
}

/// Serves until it is told to end, by SIGTERM or SIGINT.
///
/// # Errors
/// It cannot begin: a folder or an address cannot be used.
pub fn run(config: Config, wanted: ListenAddresses, handed_over: HandedOver) -> Result<(), Words> {
    let runtime = runtime().map_err(|error| Words::new("the daemon", error.to_string()))?;
    let (mut config, mut handed_over) = (config, handed_over);
    let sockets = std::mem::take(&mut handed_over.sockets);
    let is_said = wanted.http.is_some() || config.http.listen != http::Config::default().listen;
    if let Some(address) = wanted.http {
        config.http.listen = vec![address.to_string()];
    }
    beside(&mut config.http, is_said, &sockets);
    if config.demo {
        config
            .panda
            .listen
            .get_or_insert(Ipv4Addr::LOCALHOST.into());
    }
    config.panda.listen = wanted.panda.or(config.panda.listen);
    recipes(&mut config)?;
    let (daemon, wrong) = Daemon::open(config, handed_over)?;
    say(&wrong);
    say(&panda::end_orphans(&daemon.runs));
    let daemon = Arc::new(daemon);
    let tasks = TaskTracker::new();
    runtime.block_on(async {
        let listening = listen(&daemon, sockets, &tasks).await?;
        say(&daemon.begin());
        for place in listening {
            eprintln!("strobe serve: {place}");
        }
        told(systemd::notify("READY=1"));
        let ended = tokio::select! {
            ended = signals() => ended,
            () = watchdog() => Ok(()),
            () = tidy(&daemon) => Ok(()),
        };
        told(systemd::notify("STOPPING=1"));
        daemon.stop.cancel();
        tasks.close();
        // Clients that do not take their rows do not hold up the end.
        let _ = tokio::time::timeout(PATIENCE, tasks.wait()).await;
        ended.map_err(|error| Words::new("signals", error.to_string()))
    })?;
    daemon.runs.leave(PATIENCE);
    // Threads that still read from a disk are left behind.
    runtime.shutdown_background();
    Ok(())
}

/// Takes the rows of a run from a bus, until it ends or SIGTERM or SIGINT comes.
///
/// # Errors
/// There is no such run, or nothing can be written.
pub fn subscribe(options: Options) -> Result<Outcome, Words> {
    let runtime = runtime().map_err(|error| Words::new("the subscriber", error.to_string()))?;
    let stop = Stop::default();
    runtime.block_on(async {
        let interrupt = std::sync::Arc::clone(&stop.interrupt);
        tokio::spawn(async move {
            // Without signals it can be killed, and goes on where it was.
            let _ = signals().await;
            interrupt.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        nats::subscribe::subscribe(options, &stop).await
    })
}

/// Threads of the daemon.
///
/// # Errors
/// There are none to be had.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .thread_name("serve")
        .max_blocking_threads(WAITING)
        .enable_all()
        .build()
}

/// Starts all that speaks to clients. Where it listens, in words.
async fn listen(
    daemon: &Arc<Daemon>,
    sockets: Vec<(String, OwnedFd)>,
    tasks: &TaskTracker,
) -> Result<Vec<String>, Words> {
    let mut places = Vec::new();
    let (panda, sockets) = (sockets.into_iter()).partition(|(name, _)| name == "panda");
    if let Some((control, data)) = panda_ports(daemon, panda).await? {
        let port = |listener: &TcpListener| listener.local_addr();
        if let (Ok(control), Ok(data)) = (port(&control), port(&data)) {
            places.push(format!("PandA: {control}, {}", data.port()));
        }
        tasks.spawn(panda::serve(Arc::clone(daemon), control, data));
    }
    if let Some(config) = daemon.config.publish.nats.clone() {
        places.push(format!("publishes to {}", nats::shown(&config.url)));
        let daemon = Arc::clone(daemon);
        tasks.spawn(async move {
            if let Err(words) = nats::publish::serve(daemon, config).await {
                say(&[words]);
            }
        });
    }
    let http = Http::new(Arc::clone(daemon))?;
    let mut listeners = of_manager(sockets, "http")?;
    listeners.extend(http.listen().await?);
    for listener in listeners {
        places.push(http.url(&listener));
        let http = Arc::clone(&http);
        tasks.spawn(async move {
            if let Err(words) = http.serve(listener).await {
                say(&[words]);
            }
        });
    }
    Ok(places)
}

/// The ports for commands and for rows.
async fn panda_ports(
    daemon: &Arc<Daemon>,
    sockets: Vec<(String, OwnedFd)>,
) -> Result<Option<(TcpListener, TcpListener)>, Words> {
    let mut ports = of_manager(sockets, "panda")?.into_iter();
    match (ports.next(), ports.next()) {
        // In the order of their unit.
        (Some(Listener::Tcp(control)), Some(Listener::Tcp(data))) => {
            for address in [&control, &data].into_iter().flat_map(|l| l.local_addr()) {
                let object = format!("socket panda of the service manager, {address}");
                daemon.config.panda.allow(address.ip(), object)?;
            }
            Ok(Some((control, data)))
        }
        _ => panda::bind(&daemon.config.panda).await,
    }
}

/// Sockets of this name that the service manager has made.
fn of_manager(sockets: Vec<(String, OwnedFd)>, name: &str) -> Result<Vec<Listener>, Words> {
    let ours = sockets.into_iter().filter(|(socket, _)| socket == name);
    let listeners = ours.map(|(_, socket)| {
        if socket_domain(&socket)? == AddressFamily::UNIX {
            let listener = std::os::unix::net::UnixListener::from(socket);
            listener.set_nonblocking(true)?;
            return tokio::net::UnixListener::from_std(listener).map(Listener::from);
        }
        let listener = std::net::TcpListener::from(socket);
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener).map(Listener::from)
    });
    let listeners: io::Result<_> = listeners.collect();
    listeners.map_err(|error| {
        Words::new(
            format!("socket {name} of the service manager"),
            error.to_string(),
        )
    })
}

/// Where the manager listens for the daemon, this does not: neither there, nor at the usual place, if nobody has named it.
fn beside(config: &mut http::Config, is_said: bool, sockets: &[(String, OwnedFd)]) {
    let ours = sockets.iter().filter(|(name, _)| name == "http");
    let places: Vec<SocketAddrAny> = ours
        .filter_map(|(_, socket)| getsockname(socket).ok())
        .collect();
    if places.is_empty() {
        return;
    }
    let is_taken = |place: SocketAddrAny| places.contains(&place);
    config.listen.retain(|address| {
        let address = address.parse::<SocketAddr>();
        is_said && !address.is_ok_and(|address| is_taken(address.into()))
    });
    let unix = config.unix.take();
    config.unix = unix.filter(|path| {
        let path = SocketAddrUnix::new(path.as_path());
        !path.is_ok_and(|path| is_taken(path.into()))
    });
}

/// The folder of the recipes is there, with something in it for who has no hardware.
fn recipes(config: &mut Config) -> Result<(), Words> {
    let folder = match (&config.recipes, &config.data) {
        (Some(folder), _) => folder.clone(),
        (None, Some(data)) => data.join("recipes"),
        (None, None) => return Ok(()),
    };
    let made = fs::create_dir_all(&folder).and_then(|()| match config.demo {
        true => match File::create_new(folder.join("demo.toml")) {
            Ok(mut file) => file.write_all(DEMO.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        },
        false => Ok(()),
    });
    made.map_err(|error| {
        Words::new(folder.display().to_string(), error.to_string())
            .mend("name a folder that this program may write to: --data FOLDER")
    })?;
    config.recipes = Some(folder);
    Ok(())
}

/// Until one comes that says that it is time to end.
async fn signals() -> io::Result<()> {
    let (mut term, mut int) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    // A terminal that is closed, and who wants files to be read anew: they are, when they change.
    let mut hangup = signal(SignalKind::hangup())?;
    loop {
        tokio::select! {
            _ = term.recv() => return Ok(()),
            _ = int.recv() => return Ok(()),
            _ = hangup.recv() => {}
        }
    }
}

/// Tells the manager, for ever, that the daemon is alive.
async fn watchdog() {
    let Some(every) = systemd::watchdog() else {
        return std::future::pending().await;
    };
    let mut ticks = tokio::time::interval(every);
    loop {
        ticks.tick().await;
        told(systemd::notify("WATCHDOG=1"));
    }
}

/// Gives up old runs, for ever.
async fn tidy(daemon: &Arc<Daemon>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(60));
    loop {
        ticks.tick().await;
        let daemon = Arc::clone(daemon);
        let _ = tokio::task::spawn_blocking(move || daemon.runs.tidy()).await;
    }
}

fn say(wrong: &[Words]) {
    for words in wrong {
        eprintln!("strobe serve: {words}");
    }
}

fn told(done: io::Result<()>) {
    if let Err(error) = done {
        eprintln!("strobe serve: cannot notify the service manager: {error}");
    }
}
