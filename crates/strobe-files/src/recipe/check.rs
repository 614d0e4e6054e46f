// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a recipe can be run on this machine.

use strobe::channel::Class;
use strobe::engine;
use strobe::event::EventSpec;
use strobe::plan::{Plan, Step};
use strobe::program::ProgramText;
use strobe::rt;
use strobe::select::{self, SelectedEngine};

use super::Recipe;
use super::parse::Spans;
use crate::record::{self, Options};

/// Notes all that stands in the way. Nothing is changed: runs are asked for, and not made.
pub(super) fn check(recipe: &Recipe, places: &Spans<'_, '_>) {
    if let Some(cpu) = recipe.cpu.filter(|cpu| !rt::cpus().contains(cpu)) {
        places.fault(
            &places.cpu,
            format!("CPU {cpu}: no such CPU, or not in this process's cpuset; name another"),
        );
    }
    let options = Options {
        sinks: recipe.sinks.clone(),
        last: recipe.last,
        sync: recipe.sync,
        ..Options::default()
    };
    if let Err(error) = record::check_sync(&options) {
        places.fault(&places.sync, error.to_string());
    }
    let plan = recipe.plan();
    let selection = match recipe.selection() {
        Ok(selection) => selection,
        Err(error) => return places.fault(&places.board, error.to_string()),
    };
    let chosen = match selection.choose(&plan) {
        Ok(chosen) => chosen,
        Err(error) => {
            let at = match error {
                select::Error::Wait => &places.wait,
                select::Error::Policy(_) => &places.policy,
                select::Error::Cpu(_) => &places.cpu,
                select::Error::Board(_)
                | select::Error::UserBoard(_)
                | select::Error::Faults(_) => &places.board,
                _ => &places.event,
            };
            return places.fault(at, error.to_string());
        }
    };
    // The engine says one fault of a run at a time; asked for each part, it says all.
    let part = |event: &EventSpec, steps: &[_]| Plan {
        steps: steps.to_vec(),
        program: ProgramText::default(),
        ring: None,
        event: event.clone(),
        ..plan.clone()
    };
    let event = match ask(&chosen, &part(&plan.event, &[])) {
        Ok(()) => plan.event.clone(),
        Err(error) => {
            places.fault(&places.event, error.to_string());
            EventSpec::soft()
        }
    };
    let mut all_fit = event == plan.event;
    for (step, at) in plan.steps.iter().zip(&places.steps) {
        // Without its rule.
        let step = match step.clone() {
            Step::Act { output, value, .. } => Step::Write { output, value },
            step => step,
        };
        if let Err(error) = ask(&chosen, &part(&event, &[step])) {
            places.fault(at, error.to_string());
            all_fit = false;
        }
    }
    if !all_fit {
        return;
    }
    let error = match chosen.dry_run(&plan) {
        Ok(dry) => {
            let sleeps = dry.channels.iter().find(|c| c.class == Class::Sleep);
            if let (SelectedEngine::Kernel(_), Some(_), Some(channel)) =
                (&chosen, recipe.cpu, sleeps)
            {
                let name = &channel.name;
                places.fault(
                    &places.cpu,
                    format!(
                        "channel {name} sleeps, so a kernel thread makes the rows, and its \
                CPU cannot be chosen; leave out `cpu`"
                    ),
                );
            }
            return;
        }
        Err(error) => error,
    };
    let at = match error {
        engine::Error::Capacity(_) | engine::Error::Memory(_) | engine::Error::NoMemory(_) => {
            &places.ring
        }
        engine::Error::Program(ref fault) => places.program(fault.part),
        engine::Error::Priority(_) => &places.policy,
        _ => &places.event,
    };
    places.fault(at, error.to_string());
}

fn ask(chosen: &SelectedEngine, plan: &Plan) -> Result<(), engine::Error> {
    chosen.dry_run(plan).map(|_| ())
}
