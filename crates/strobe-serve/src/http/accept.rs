// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lets clients in.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::io::AsyncWriteExt;
use tokio::time::{sleep, timeout};

use super::connection::{self, Connection, Wire};
use super::limits::Client;
use super::{Http, Listener, routes};

/// What is sent may stay unconfirmed for so long.
const UNCONFIRMED_MS: u32 = 60_000;
/// When there is nothing to be had for a new connection, before the next attempt.
const PAUSE: Duration = Duration::from_millis(100);
/// To whom there is no place for.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: 134\r\nconnection: close\r\nretry-after: 1\r\n\r\n{\"object\":\"connection\",\"reason\":\"the limit of connections is reached\",\"remedy\":\"end one, or raise clients and per_client in [limits]\"}";

/// Someone at the door.
struct Caller {
    wire: Box<dyn Wire>,
    client: Client,
    local: Option<IpAddr>,
}

/// All who come, until the daemon ends.
pub async fn all(http: &Arc<Http>, listener: &Listener) {
    let router = routes::router(http);
    loop {
        let caller = tokio::select! {
            () = http.daemon.stop.cancelled() => return,
            caller = next(listener) => caller,
        };
        match caller {
            Ok(caller) => {
                let task = one(Arc::clone(http), router.clone(), caller);
                tokio::spawn(task);
            }
            // Too many files are open, or the client has gone again.
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn next(listener: &Listener) -> io::Result<Caller> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, from) = listener.accept().await?;
            stream.set_nodelay(true)?;
            rustix::net::sockopt::set_tcp_user_timeout(&stream, UNCONFIRMED_MS)?;
            let local = Some(stream.local_addr()?.ip().to_canonical());
            let client = Client::At(from.ip().to_canonical());
            let wire = Box::new(stream);
            Ok(Caller {
                wire,
                client,
                local,
            })
        }
        Listener::Unix(listener) => {
            let (stream, _) = listener.accept().await?;
            let client = Client::User(stream.peer_cred()?.uid());
            let wire = Box::new(stream);
            let local = None;
            Ok(Caller {
                wire,
                client,
                local,
            })
        }
    }
}

async fn one(http: Arc<Http>, router: Router, caller: Caller) {
    let Caller {
        mut wire,
        client,
        local,
    } = caller;
    let Some(place) = http.counts.admit(client) else {
        // A few bytes, for which there is always room.
        let _ = timeout(PAUSE, wire.write_all(FULL)).await;
        return;
    };
    let tls = http.tls.as_ref().filter(|_| local.is_some());
    let is_secure = tls.is_some();
    if let Some(tls) = tls {
        match timeout(place.patience(), tls.acceptor().accept(wire)).await {
            Ok(Ok(stream)) => wire = Box::new(stream),
            _ => return,
        }
    }
    let connection = Connection {
        place,
        local,
        stop: http.daemon.stop.clone(),
        is_secure,
        _waits: http.tasks.token(),
    };
    connection::serve(router, wire, Arc::new(connection)).await;
}

#[cfg(test)]
mod tests {
    use super::FULL;

    #[test]
    fn the_answer_to_whom_there_is_no_place_for_is_as_long_as_it_says() {
        let text = std::str::from_utf8(FULL).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a body");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())));
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
