// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much one client, and all clients, may have.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use crate::config::http::Limits;

/// Who a connection is from: all those of one address are one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Client {
    /// By the network.
    At(IpAddr),
    /// By the socket in the file system.
    User(u32),
}

/// Counts what clients have.
pub struct Counts {
    limits: Limits,
    clients: Mutex<HashMap<Client, Count>>,
}

struct Count {
    connections: usize,
    /// Requests that it may make at once.
    left: f64,
    at: Instant,
}

impl Counts {
    /// Nobody is there yet.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Counts {
            limits,
            clients: Mutex::default(),
        })
    }

    /// A place for one more connection of this client, if there is one.
    pub fn admit(self: &Arc<Self>, client: Client) -> Option<Place> {
        let mut clients = self.lock();
        let all: usize = clients.values().map(|count| count.connections).sum();
        let burst = f64::from(self.limits.requests);
        let own = clients.get(&client).map_or(0, |count| count.connections);
        // Who is refused leaves no trace: there may be any number of addresses.
        if all >= self.limits.clients || own >= self.limits.per_client {
            return None;
        }
        let count = clients.entry(client).or_insert_with(|| Count {
            connections: 0,
            left: burst,
            at: Instant::now(),
        });
        count.connections += 1;
        let counts = Arc::clone(self);
        Some(Place { counts, client })
    }

    /// Connections that there are.
    pub fn connections(&self) -> usize {
        self.lock().values().map(|count| count.connections).sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Client, Count>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one connection; it is free again when this is dropped.
pub struct Place {
    counts: Arc<Counts>,
    client: Client,
}

impl Place {
    /// How long the client may take.
    pub fn patience(&self) -> Duration {
        self.counts.limits.patience
    }

    /// Whether the client may make one more request now.
    pub fn may_ask(&self) -> bool {
        let rate = f64::from(self.counts.limits.requests);
        let mut clients = self.counts.lock();
        let Some(count) = clients.get_mut(&self.client) else {
            return false;
        };
        let now = Instant::now();
        let since = now.duration_since(count.at).as_secs_f64();
        count.left = (count.left + since * rate).min(rate);
        count.at = now;
        let may = count.left >= 1.0;
        if may {
            count.left -= 1.0;
        }
        may
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut clients = self.counts.lock();
        if let Some(count) = clients.get_mut(&self.client) {
            count.connections -= 1;
        }
        // Who has gone a while ago has all its requests again, so nothing need be known of it.
        let second = Duration::from_secs(1);
        clients.retain(|_, count| count.connections > 0 || count.at.elapsed() < second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Arc<Counts> {
        Counts::new(Limits {
            clients: 3,
            per_client: 2,
            requests: 5,
            runs: 1,
            ..Limits::default()
        })
    }

    #[test]
    fn one_client_cannot_take_all_places() {
        let counts = counts();
        let (one, other) = (Client::User(1), Client::User(2));
        let first = counts.admit(one).expect("a place");
        let _second = counts.admit(one).expect("a place");
        assert!(counts.admit(one).is_none());
        let _third = counts.admit(other).expect("a place");
        assert!(counts.admit(other).is_none());
        assert!(counts.admit(Client::User(3)).is_none());
        assert_eq!(
            counts.lock().len(),
            2,
            "nothing is known of who was refused"
        );
        drop(first);
        assert_eq!(counts.connections(), 2);
        assert!(counts.admit(other).is_some());
    }

    #[test]
    fn who_asks_too_often_is_refused_and_others_are_not() {
        let counts = counts();
        let place = counts.admit(Client::User(1)).expect("a place");
        let other = counts.admit(Client::User(2)).expect("a place");
        // However slow this is: a thousand a second are more than five.
        let asked = (0..10_000).filter(|_| place.may_ask()).count();
        assert!((5..10_000).contains(&asked), "{asked}");
        assert!(other.may_ask());
    }
}
