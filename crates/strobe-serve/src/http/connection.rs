// SPDX-License-Identifier: MIT OR Apache-2.0
//! One connection of a client.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tower::ServiceExt;

use super::limits::Place;

/// Bytes that are kept of one connection, at most, in each direction.
const BUFFER: usize = 256 << 10;

/// What is known of it.
pub struct Connection {
    /// Its place among all.
    pub place: Place,
    /// The address that the client has found; `None`: a socket in the file system.
    pub local: Option<IpAddr>,
    /// Said when the daemon ends.
    pub stop: CancellationToken,
    /// Whether it is encrypted.
    pub is_secure: bool,
    /// As long as this is there, the daemon waits.
    pub _waits: TaskTrackerToken,
}

/// What bytes come and go by.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Serves it until it ends, or the daemon does.
pub async fn serve(router: Router, wire: Box<dyn Wire>, connection: Arc<Connection>) {
    let (patience, stop) = (connection.place.patience(), connection.stop.clone());
    let has_asked = AtomicBool::new(false);
    let service = service_fn(|request: hyper::Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Arc::clone(&connection));
        router.clone().oneshot(request)
    });
    let mut served = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(patience)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(Patient::new(wire, patience)), service)
            .with_upgrades()
    );
    // Whatever ends it is the client's affair: all it has asked for was answered, or cannot be.
    tokio::select! {
        _ = served.as_mut() => return,
        () = stop.cancelled() => {}
    }
    if !has_asked.load(Ordering::Relaxed) {
        // The first request has not come yet, and is not waited for.
        return;
    }
    served.as_mut().graceful_shutdown();
    let _ = served.await;
}

/// A wire that fails when nobody takes what is written for too long.
struct Patient {
    wire: Box<dyn Wire>,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(wire: Box<dyn Wire>, patience: Duration) -> Self {
        Patient {
            wire,
            patience,
            waiting: None,
        }
    }

    fn wait<T>(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.waiting = None;
            return done;
        }
        let patience = self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.wire).poll_write(context, bytes);
        self.wait(context, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.wire).poll_write_vectored(context, bytes);
        self.wait(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.wire).poll_flush(context);
        self.wait(context, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.wire).poll_shutdown(context);
        self.wait(context, done)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::timeout;

    use super::*;
    use crate::config::Config;
    use crate::daemon::Daemon;
    use crate::http::limits::Client;
    use crate::http::{Http, routes};

    /// Only a failure takes so long. The daemon's own patience is longer.
    const LONG: Duration = Duration::from_secs(120);

    /// What a client hears that has said this when the daemon ends.
    async fn heard(said: &str) -> String {
        let mut config = Config::default();
        config.limits.patience = 10 * LONG;
        let http = Http::new(Arc::new(Daemon::new(config))).expect("a server");
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let connection = Connection {
            place: http.counts.admit(Client::At(here)).expect("a place"),
            local: Some(here),
            stop: http.daemon.stop.clone(),
            is_secure: false,
            _waits: http.tasks.token(),
        };
        let (mut client, wire) = duplex(64 << 10);
        client.write_all(said.as_bytes()).await.expect("room");
        let served = serve(routes::router(&http), Box::new(wire), Arc::new(connection));
        let mut served = std::pin::pin!(served);
        // All of it has been read, and nothing more can be done.
        let begun = timeout(Duration::from_millis(50), served.as_mut()).await;
        assert!(begun.is_err(), "it has ended: {said}");
        http.daemon.stop.cancel();
        let ended = timeout(LONG, served.as_mut()).await;
        assert!(ended.is_ok(), "it is waited for: {said}");
        let mut heard = String::new();
        client.read_to_string(&mut heard).await.expect("an end");
        heard
    }

    const ASK: &str = "GET /api HTTP/1.1\r\nhost: localhost\r\n";
    const SAY: &str = "POST /api/runs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n";

    #[tokio::test]
    async fn a_request_of_which_half_has_come_is_not_waited_for_when_the_daemon_ends() {
        for said in ["", "GET /a", ASK] {
            assert_eq!(heard(said).await, "", "{said}");
        }
        // Whatever was asked before.
        for half in ["", "GET /a", ASK] {
            let heard = heard(&format!("{ASK}\r\n{half}")).await;
            assert!(heard.starts_with("HTTP/1.1 200"), "{half}: {heard}");
            assert_eq!(heard.matches("HTTP/1.1").count(), 1, "{half}: {heard}");
        }
    }

    #[tokio::test]
    async fn a_body_of_which_half_has_come_is_not_waited_for_and_the_client_hears_so() {
        let json = "content-type: application/json\r\n\r\n";
        let heard_of = heard(&format!("{SAY}{json}{{")).await;
        assert!(heard_of.starts_with("HTTP/1.1 503"), "{heard_of}");
        // Whether it is wanted or not.
        let heard_of = heard(&format!("{SAY}\r\n{{")).await;
        assert!(heard_of.starts_with("HTTP/1.1 503"), "{heard_of}");
        let foreign = format!("{SAY}origin: http://evil.example\r\n{json}{{");
        let heard_of = heard(&foreign).await;
        assert!(heard_of.starts_with("HTTP/1.1 403"), "{heard_of}");
    }
}
