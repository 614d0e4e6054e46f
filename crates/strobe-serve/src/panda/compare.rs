// SPDX-License-Identifier: MIT OR Apache-2.0
//! Position compare: a row where a position passes, as a row program.
//!
//! The position is compared in the run itself, at each sample, so in the kernel engine in the interrupt that reads it.

use std::sync::Arc;

use strobe::program::Rule;

use super::acquisition::{Acquisition, Refused};
use super::arm::Arm;
use super::enable::Enable;
use super::model::{HEALTH_OF_COMPARES, Model};
use super::panel::Panel;
use super::reason::Reason;
use super::sampling::{Sampling, Trigger, least, position};
use super::values::Values;

/// One of them.
pub struct Compare {
    panel: Arc<Panel>,
    arm: Arc<Arm>,
    enable: Enable,
    number: usize,
}

impl Compare {
    /// The one of this number, from 0.
    pub fn new(panel: Arc<Panel>, arm: Arc<Arm>, number: usize) -> Self {
        Compare {
            enable: Enable::new(Arc::clone(&panel), "PCOMP", number, &[]),
            panel,
            arm,
            number,
        }
    }

    /// Does what it is told, for ever.
    pub async fn serve(self) {
        loop {
            let enabled = self.enable.until_risen().await;
            self.compare(enabled).await;
            self.enable.finish(enabled).await;
        }
    }

    /// From ENABLE, which was seen at this change, to its fall, or to the last pulse.
    async fn compare(&self, enabled: u64) {
        (self.panel).with(|values| values.set_line(&format!("{}.PRODUCED", self.enable.name), "0"));
        let target = self.target(enabled).await;
        let [ok, none, refused] = HEALTH_OF_COMPARES;
        let health = match target {
            Ok(Some(_)) => ok,
            Ok(None) => none,
            Err(Refused) => refused,
        };
        (self.panel)
            .with(|values| values.set_line(&format!("{}.HEALTH", self.enable.name), health));
        // Whoever sees ACTIVE finds the run.
        self.enable.activate();
        let of = match target {
            Ok(Some(of)) => of,
            Ok(None) => return self.enable.until_fallen_after(enabled).await,
            Err(Refused) => return,
        };
        tokio::select! {
            // The end of the run comes first: it has its own reason.
            biased;
            () = of.wait_for_end() => {}
            () = self.enable.until_fallen_after(enabled) => {
                of.end(Reason::Ok);
                of.wait_for_end().await;
            }
        }
    }

    /// The acquisition that waits for this, when it has its run.
    async fn target(&self, enabled: u64) -> Result<Option<Arc<Acquisition>>, Refused> {
        let is_its = |trigger: &Trigger| *trigger == Trigger::Compare(self.number);
        let Some(of) = self.arm.waiting(is_its) else {
            return Ok(None);
        };
        let sampling =
            (self.panel).with(|values| sampling(&self.enable.name, &self.panel.model, values, &of));
        let sampling = sampling.map_err(|why| of.refuse(format!("{}{why}", self.enable.name)))?;
        let has_fallen = || self.enable.has_fallen_after(enabled);
        let run = self.arm.make(&of, &sampling, has_fallen).await?;
        Ok(run.map(|_| of))
    }
}

/// The rows of the compare of this name.
fn sampling(
    name: &str,
    model: &Model,
    values: &Values,
    of: &Acquisition,
) -> Result<Sampling, String> {
    let line = |field: &str| values.line(&format!("{name}.{field}"));
    let number = |field: &str| line(field).parse::<i64>().unwrap_or_default();
    let input = model
        .source(line("INP"))
        .ok_or(".INP is ZERO: set it to the position that is compared")?;
    let sample = of
        .chosen
        .sample
        .clone()
        .ok_or(": PCAP.SAMPLE was ZERO when it was armed")?;
    let pulses = number("PULSES").unsigned_abs();
    let step = number("STEP");
    if step == 0 && pulses != 1 {
        return Err(".STEP is 0: set the distance of two pulses".to_owned());
    }
    let limit = least(pulses, of.chosen.limit);
    let mut sampling = Sampling::new(sample, None, limit)?;
    let position = position(input);
    let (start, before) = (number("START"), number("PRE_START"));
    // Which side of the start is passed first, and where the next pulse is.
    let (sign, is_before, is_at) = match line("DIR") {
        "Positive" => (1, "<", ">="),
        "Negative" => (-1, ">", "<="),
        other => {
            return Err(format!(
                ".DIR is {other}, which is not offered: choose Positive or Negative"
            ));
        }
    };
    let is_relative = line("RELATIVE") == "Relative";
    // Relative positions count in the direction of the pulses.
    let start = if is_relative { sign * start } else { start };
    let (ready, next) = (start - sign * before, sign * step);
    let program = &mut sampling.program;
    let mut rule = |when: String, then: Vec<String>| program.rules.push(Rule { when, then });
    if is_relative {
        rule(
            "state == 0".to_owned(),
            vec![
                "state = 1".to_owned(),
                format!("ready = {position} + {ready}"),
                format!("next = {position} + {start}"),
            ],
        );
    }
    rule(
        format!("state == 1 && {position} {is_before} ready"),
        vec!["state = 2".to_owned()],
    );
    let passes = format!("state == 2 && {position} {is_at} next");
    rule(passes.clone(), vec![format!("next += {next}")]);
    program.keep.push(passes);
    program.variables = vec![
        format!("state = {}", u8::from(!is_relative)),
        format!("ready = {ready}"),
        format!("next = {start}"),
    ];
    sampling.inputs = vec![input.channel.clone()];
    Ok(sampling)
}
