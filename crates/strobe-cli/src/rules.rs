// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options that are outputs and rules. Their order counts: what follows a --when belongs to it.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use strobe::plan::Step;
use strobe::program::Rule;
use strobe_files::recipe::{self, Recipe};

/// Outputs that are written in each row, and rules.
#[derive(Default)]
pub struct Args {
    set: Vec<Step>,
    variables: Vec<String>,
    tunables: Vec<String>,
    rules: Vec<Rule>,
    acts: Vec<Step>,
}

/// An option, and where it stood.
enum Given {
    When(String),
    Then(String),
    Set(Step),
}

impl Args {
    /// What was given comes before what there is.
    pub fn change(&self, recipe: &mut Recipe) {
        if !self.set.is_empty() {
            recipe.set.clone_from(&self.set);
        }
        if !self.variables.is_empty() {
            recipe.program.variables.clone_from(&self.variables);
        }
        if !self.tunables.is_empty() {
            recipe.program.tunables.clone_from(&self.tunables);
        }
        if !self.rules.is_empty() {
            recipe.program.rules.clone_from(&self.rules);
            recipe.acts.clone_from(&self.acts);
        }
    }

    fn read(matches: &ArgMatches) -> Result<Args, clap::Error> {
        let mut given: Vec<(usize, Given)> = Vec::new();
        given.extend(placed(matches, "when", Given::When));
        given.extend(placed(matches, "then", Given::Then));
        given.extend(placed(matches, "set", Given::Set));
        given.sort_by_key(|(at, _)| *at);
        let texts = |id| matches.get_many(id).into_iter().flatten().cloned();
        let mut args = Args {
            variables: texts("let").collect(),
            tunables: texts("tune").collect(),
            ..Args::default()
        };
        for (_, given) in given {
            let rule = args.rules.len().checked_sub(1);
            match (given, rule) {
                (Given::When(when), _) => args.rules.push(Rule {
                    when,
                    then: Vec::new(),
                }),
                (Given::Then(then), _) => match args.rules.last_mut() {
                    Some(rule) => rule.then.push(then),
                    None => {
                        let why = "--then: it belongs to the --when before it, and there is none; \
                                   put a --when before it\n";
                        return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, why));
                    }
                },
                (Given::Set(Step::Write { output, value }), Some(rule)) => {
                    args.acts.push(Step::Act {
                        output,
                        value,
                        rule,
                    });
                }
                (Given::Set(step), _) => args.set.push(step),
            }
        }
        Ok(args)
    }
}

/// The values of an option, each with its place among all arguments.
fn placed<T: Clone + Send + Sync + 'static>(
    matches: &ArgMatches,
    id: &str,
    given: fn(T) -> Given,
) -> Vec<(usize, Given)> {
    let places = matches.indices_of(id).into_iter().flatten();
    let values = matches.get_many::<T>(id).into_iter().flatten();
    places
        .zip(values)
        .map(|(at, value)| (at, given(value.clone())))
        .collect()
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Args, clap::Error> {
        Args::read(matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Args::read(matches)?;
        Ok(())
    }
}

impl clap::Args for Args {
    fn augment_args(command: Command) -> Command {
        let option = |id: &'static str, value: &'static str, help: &'static str| {
            Arg::new(id)
                .long(id)
                .value_name(value)
                .action(ArgAction::Append)
                .help(help)
        };
        command
            .arg(
                option(
                    "set",
                    "OUT=V",
                    "Values to write at each trigger, before the channels are read; after a \
                     --when, only in rows that meet its condition",
                )
                .value_delimiter(',')
                .value_parser(recipe::setting),
            )
            .arg(option(
                "let",
                "NAME = NUMBER",
                "A value that is kept from row to row, and that --then changes: 'next = 1 mm like \
                 enc.pos'; may be given several times",
            ))
            .arg(option(
                "tune",
                "NAME = NUMBER",
                "A value that `strobe tune` can change while the run goes on, and --then as well; it is \
                 a column of the row, too: 'limit = 2.5 V like adc.a'; may be given several times",
            ))
            .arg(option(
                "when",
                "CONDITION",
                "In rows that meet this condition, do the --set and --then that follow: 'enc.pos >= \
                 next'; may be given several times",
            ))
            .arg(option(
                "then",
                "NAME += EXPRESSION",
                "Change a value in rows that meet the condition of the --when before it: 'next += \
                 0.1 mm', or with = or -=",
            ))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Args::augment_args(command)
    }
}
