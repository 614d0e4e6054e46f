// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all connections share: the model, the values, and who is there.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use strobe::catalogue::Catalogue;
use tokio::sync::watch;

use super::model::Model;
use super::values::Values;

/// What a client sees and sets.
pub struct Panel {
    /// What there is.
    pub model: Model,
    values: Mutex<Values>,
    changed: watch::Sender<u64>,
    clients: Mutex<Clients>,
}

#[derive(Default)]
struct Clients {
    all: BTreeMap<u64, String>,
    last: u64,
}

/// A connection that is listed while this is kept.
pub struct Listed<'p> {
    panel: &'p Panel,
    number: u64,
}

impl Panel {
    /// For this machine.
    pub fn new(catalogue: &Catalogue) -> Self {
        let model = Model::new(catalogue);
        let values = Mutex::new(Values::new(&model));
        Panel {
            model,
            values,
            changed: watch::channel(0).0,
            clients: Mutex::default(),
        }
    }

    /// Looks at the values, or changes them.
    pub fn with<T>(&self, look: impl FnOnce(&mut Values) -> T) -> T {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let before = values.changes();
        let answer = look(&mut values);
        let after = values.changes();
        drop(values);
        if before != after {
            self.changed.send_modify(|changes| *changes = after);
        }
        answer
    }

    /// Says when a value has changed.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Waits until this is so.
    pub async fn until(&self, mut is_so: impl FnMut(&mut Values) -> bool) {
        let mut changes = self.watch();
        // Fails when the panel has gone, which the caller has.
        let _ = changes.wait_for(|_| self.with(&mut is_so)).await;
    }

    /// A client has come.
    pub fn enter(&self, who: String) -> Listed<'_> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.last += 1;
        let number = clients.last;
        clients.all.insert(number, who);
        Listed {
            panel: self,
            number,
        }
    }

    /// All clients.
    pub fn clients(&self) -> Vec<String> {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.all.values().cloned().collect()
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let clients = self.panel.clients.lock();
        clients
            .unwrap_or_else(PoisonError::into_inner)
            .all
            .remove(&self.number);
    }
}
