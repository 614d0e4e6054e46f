// SPDX-License-Identifier: MIT OR Apache-2.0
//! An engine whose runs read channels of one provider, too, behind those that are asked for: what holds for every run has to
//! hold for these.

use std::any::Any;
use std::marker::PhantomData;

use strobe::engine::Error;
use strobe::plan::{Plan, Step};

use crate::Engine;

/// A provider of channels.
pub trait Provider {
    /// Some of its channels.
    const CHANNELS: &'static [&'static str];

    /// What has to be there while runs read them.
    fn set_up() -> Box<dyn Any + Send + Sync> {
        Box::new(())
    }
}

/// The engine, and the provider beside it.
pub struct Beside<E, P> {
    engine: E,
    /// Dropped after the engine.
    _there: Box<dyn Any + Send + Sync>,
    provider: PhantomData<fn() -> P>,
}

impl<E: Engine, P: Provider> Engine for Beside<E, P> {
    type Run = E::Run;

    const KIND: strobe_ring::Engine = E::KIND;

    fn open() -> Self {
        let there = P::set_up();
        Beside {
            engine: E::open(),
            _there: there,
            provider: PhantomData,
        }
    }

    fn create(&self, plan: &Plan) -> Result<E::Run, Error> {
        let mut plan = plan.clone();
        let channels = P::CHANNELS.iter().map(|name| Step::Read((*name).into()));
        plan.steps.extend(channels);
        self.engine.create(&plan)
    }
}
