// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine that a server tells of.

use strobe::error::{Error, Words};
use strobe::machine::{Catalogues, Machine};
use strobe::runs::{AttachError, Place, Runs};
use strobe::source::{Live, RowSource};

use crate::rows::{Begin, Part};
use crate::server::{Engines, Server};

/// Runs have the numbers that the server gives them.
impl Machine for Server {
    fn catalogues(&self) -> Result<Catalogues, Error> {
        let Engines { kernel, mut user } = self.engines()?;
        let found = self.runs()?;
        let of = |engine: &str| {
            let runs = found.runs.iter().filter(|run| run.engine == engine);
            runs.cloned().collect()
        };
        user.runs = of("user");
        let kernel = kernel.map(|mut kernel| {
            kernel.runs = of("kernel");
            kernel
        });
        let not_there = || {
            let words = Words::new(self.url(), "the kernel engine is not loaded there");
            Error::Server(words.mend("load it there as root: modprobe strobe"))
        };
        Ok(Catalogues {
            kernel: kernel.ok_or_else(not_there),
            user,
            notes: found.notes,
        })
    }

    fn runs(&self) -> Result<Runs, Error> {
        let views = self.views()?;
        let notes = views.iter().flat_map(|view| view.notes());
        let notes = notes.map(|note| format!("{}: {note}", self.url()));
        Ok(Runs {
            notes: notes.collect(),
            runs: views.iter().map(|view| view.status()).collect(),
            silent: Vec::new(),
        })
    }

    fn rows(&self, run: Place) -> Result<Box<dyn RowSource>, AttachError> {
        let all = Part::from(Begin::Oldest);
        Ok(Box::new(self.run(run.number)?.rows(all)))
    }

    fn live(&self, run: Place) -> Result<Box<dyn Live>, AttachError> {
        Ok(Box::new(self.run(run.number)?.live()))
    }

    fn tune(&self, run: Place, tunable: &str, value: &str) -> Result<(), AttachError> {
        self.run(run.number)?.tune(tunable, value)?;
        Ok(())
    }
}
