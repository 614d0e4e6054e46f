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
