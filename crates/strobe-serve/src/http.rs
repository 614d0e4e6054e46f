// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon for programs and browsers: JSON, rows as Arrow streams and lines of text, a WebSocket, a page.
//!
//! docs/reference/serve.md says what each address gives. Every request goes by `guard` first, which knows who may do
//! what; a handler reads with cursors, and nothing that a client does or leaves undone holds up a run.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use futures_util::future::BoxFuture;
use strobe::error::Words;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::access::Tokens;
pub use crate::config::http::{Config, TokensConfig};
use crate::daemon::Daemon;
use crate::file_watch::FileWatch;
use crate::shared::Shared;
use crate::tls::Tls;

mod accept;
mod bins;
mod body;
mod connection;
mod failure;
#[cfg(test)]
mod fuzz;
mod guard;
mod hello;
mod late;
pub mod limits;
mod live;
mod machine;
mod metrics;
mod openapi;
mod page;
mod query;
mod recipes;
mod routes;
mod rows;
mod runs;
mod trace;
mod view;

use limits::{Counts, Limits};

pub use machine::name as machine_name;

/// How long connections may take to end when the daemon does.
const ENDING: Duration = Duration::from_secs(5);

/// Pictures that are made at once.
const TRACES: usize = 4;
/// Requests for triggers that are worked on at once: each may have to wait for a device.
const TRIGGERS: usize = 4;

/// Where clients come from.
pub enum Listener {
    /// The network.
    Tcp(TcpListener),
    /// This machine.
    Unix(UnixListener),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Listener::Tcp(listener)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Listener::Unix(listener)
    }
}

/// What all connections share.
pub struct Http {
    daemon: Arc<Daemon>,
    limits: Limits,
    counts: Arc<Counts>,
    tokens: Option<FileWatch<Tokens>>,
    tls: Option<Tls>,
    /// Names of this machine.
    names: Vec<String>,
    tasks: TaskTracker,
    machine: machine::Machine,
    lates: late::Lates,
    /// What clients have got last.
    sent: Shared<rows::Wanted, Bytes>,
    /// Who makes a picture now.
    traces: Semaphore,
    /// Who triggers a run now.
    triggers: Semaphore,
    /// Who writes a recipe now.
    recipes: Mutex<()>,
}

impl Http {
    /// As the daemon's configuration says.
    ///
    /// # Errors
    /// The file of tokens, the certificate or its key cannot be used.
    pub fn new(daemon: Arc<Daemon>) -> Result<Arc<Http>, Words> {
        let config = &daemon.config;
        let read = |path: &PathBuf| {
            let from = path.clone();
            FileWatch::new(&[path], move || Tokens::read(&from))
        };
        let tokens = config.tokens.file.as_ref().map(read).transpose()?;
        let tls = config.http.tls.as_ref().map(Tls::new).transpose()?;
        let mut names = config.http.hosts.clone();
        names.push(machine::name());
        let limits = config.limits.clone();
        Ok(Arc::new(Http {
            counts: Counts::new(limits.clone()),
            limits,
            tokens,
            tls,
            names,
            tasks: TaskTracker::new(),
            machine: machine::Machine::default(),
            lates: late::Lates::default(),
            sent: Shared::new(config.spool.bounds().recent),
            traces: Semaphore::new(TRACES),
            triggers: Semaphore::new(TRIGGERS),
            recipes: Mutex::default(),
            daemon,
        }))
    }

    /// Listens where the configuration says.
    ///
    /// # Errors
    /// An address cannot be had, or is one of a network, and clients would not be told from each other there.
    pub async fn listen(&self) -> Result<Vec<Listener>, Words> {
        let config = &self.daemon.config.http;
        let mut listeners = Vec::new();
        for address in &config.listen {
            let failed = |error: std::io::Error| {
                Words::new(format!("http {address}"), error.to_string())
                    .mend("set another address in `listen` of [http]")
            };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            listeners.push(Listener::Tcp(listener));
        }
        if let Some(path) = &config.unix {
            listeners.push(Listener::Unix(socket(path)?));
        }
        listeners
            .iter()
            .try_for_each(|listener| self.may_serve(listener))?;
        Ok(listeners)
    }

    /// Serves until the daemon ends, and its connections have.
    ///
    /// # Errors
    /// The listener is reached from elsewhere, and clients would not be told from each other.
    pub fn serve(self: Arc<Self>, listener: Listener) -> BoxFuture<'static, Result<(), Words>> {
        Box::pin(async move {
            self.may_serve(&listener)?;
            accept::all(&self, &listener).await;
            drop(listener);
            self.tasks.close();
            // Who does not end by then is cut off.
            let _ = tokio::time::timeout(ENDING, self.tasks.wait()).await;
            Ok(())
        })
    }

    /// The address of a listener, for people.
    pub fn url(&self, listener: &Listener) -> String {
        match listener {
            Listener::Tcp(listener) => {
                let scheme = if self.tls.is_some() { "https" } else { "http" };
                let address = listener.local_addr();
                let address = address.map_or("?".to_owned(), |address| address.to_string());
                format!("{scheme}://{address}")
            }
            Listener::Unix(listener) => {
                let address = listener.local_addr().ok();
                let path = address.as_ref().and_then(|address| address.as_pathname());
                format!("unix:{}", path.unwrap_or(Path::new("?")).display())
            }
        }
    }

    /// What other machines can reach is encrypted, and asks who is there.
    fn may_serve(&self, listener: &Listener) -> Result<(), Words> {
        let Listener::Tcp(tcp) = listener else {
            return Ok(());
        };
        let is_here = tcp
            .local_addr()
            .is_ok_and(|address| address.ip().is_loopback());
        if is_here || (self.tls.is_some() && self.tokens.is_some()) {
            return Ok(());
        }
        let words = Words::new(
            self.url(listener),
            "other machines can reach this address, which requires encryption and tokens",
        );
        Err(words.mend(
            "listen on 127.0.0.1, or set `tls` in [http] and `file` in [tokens]; docs/reference/serve.md shows how",
        ))
    }
}

/// A socket that the daemon's user and group can reach. One that nobody listens to is replaced.
fn socket(path: &Path) -> Result<UnixListener, Words> {
    let failed = |error: std::io::Error| {
        Words::new(format!("http {}", path.display()), error.to_string())
            .mend("set another path in `unix` of [http]")
    };
    let is_socket =
        std::fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    // A file that is no socket answers in the same way.
    if is_socket
        && std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    {
        std::fs::remove_file(path).map_err(failed)?;
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    let mode = std::fs::Permissions::from_mode(0o660);
    std::fs::set_permissions(path, mode).map_err(failed)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_that_nobody_listens_to_is_replaced_and_no_other_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("http");
        drop(socket(&path).expect("a socket"));
        let listener = socket(&path).expect("another in its place");
        assert!(socket(&path).is_err(), "somebody listens there");
        drop(listener);
        let file = folder.path().join("tokens");
        std::fs::write(&file, "view x").expect("a file");
        let refused = socket(&file).expect_err("a refusal").to_string();
        assert!(refused.contains("tokens"), "{refused}");
        assert_eq!(
            std::fs::read_to_string(&file).expect("it is there"),
            "view x"
        );
    }
}
