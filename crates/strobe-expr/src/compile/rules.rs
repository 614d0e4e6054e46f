// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variables, and the rules that change them.
//!
//! Everything in a row sees the variables as they were before it: derived columns, conditions, and what a rule makes of a
//! variable. So the order of rules matters only where two of them change the same variable: the later one counts.

use std::cell::RefCell;
use std::ops::Range as Place;

use super::cells::is_first;
use super::variable::variable;
use super::{Compiler, OF_ROWS, can_be_column};
use crate::fault::{Fault, Part, Wrong, wrong};
use crate::node::{Cond, Do, Node, Op};
use crate::parse;
use crate::program::ProgramText;
use crate::rational::Rational;
use crate::tree::{Binary, Compare, Expr, What};
use crate::value::Number;

/// A rule gives a variable a new value.
struct Change {
    rule: usize,
    word: usize,
    node: Node,
}

impl Compiler<'_> {
    /// All variables: those that are declared, and those that a rule changes and a condition compares with a channel.
    pub(crate) fn variables(&mut self, text: &ProgramText) -> Result<(), Fault> {
        for (place, source) in text.tunables.iter().enumerate() {
            self.declare(source, Some(place))
                .map_err(|wrong| wrong.in_part(Part::Tune(place), source))?;
        }
        for (place, source) in text.variables.iter().enumerate() {
            self.declare(source, None)
                .map_err(|wrong| wrong.in_part(Part::Let(place), source))?;
        }
        // One that cannot be read is reported when its turn comes.
        let conditions = text.rules.iter();
        let conditions: Vec<Expr> = conditions
            .filter_map(|rule| parse::expression(&rule.when).ok())
            .collect();
        for (place, rule) in text.rules.iter().enumerate() {
            for (nth, source) in rule.then.iter().enumerate() {
                self.infer(&conditions, source)
                    .map_err(|wrong| wrong.in_part(Part::Then(place, nth), source))?;
            }
        }
        Ok(())
    }

    /// A tunable has the word of its place, and a column that shows it.
    fn declare(&mut self, source: &str, tunable: Option<usize>) -> Result<(), Wrong> {
        let declared = parse::variable(source)?;
        let at = &declared.name_at;
        if self
            .variables
            .iter()
            .any(|known| known.name == declared.name)
        {
            return Err(taken(at, "variable", &declared.name));
        }
        if self.inputs.iter().any(|known| known.name == declared.name)
            || OF_ROWS.contains(&declared.name.as_str())
        {
            return Err(taken(at, "column", &declared.name));
        }
        let value = self.number(&declared.value)?;
        if !value.is_constant() {
            return Err(wrong(
                &declared.value.at,
                "what a variable is at first is not a number",
                "write a number",
            ));
        }
        let like = match &declared.like {
            Some((channel, at)) => Some(self.name(at, channel)?),
            None => None,
        };
        let at = &declared.value.at;
        match tunable {
            None => self.add(declared.name, at, value, like),
            Some(word) => {
                can_be_column(&declared.name_at, &declared.name)?;
                let variable = variable(declared.name, word, at, &value, like)?;
                self.first.push(variable.constant(at, value)?);
                self.show(variable);
                Ok(())
            }
        }
    }

    fn add(
        &mut self,
        name: String,
        at: &Place<usize>,
        value: Number,
        like: Option<Number>,
    ) -> Result<(), Wrong> {
        let word = self.state.take(1);
        let variable = variable(name, word, at, &value, like)?;
        let first = variable.word_of(at, value)?;
        if first != Node::Const(0) {
            self.state.has_started = true;
            let set = vec![Do::State(word, first)];
            let is_first = is_first(self.state.started);
            self.state.does.push(Do::If(is_first, set, Vec::new()));
        }
        self.variables.push(variable);
        Ok(())
    }

    /// A variable that only a rule names is 0 at first, and like the channel that a rule's condition compares it with.
    fn infer(&mut self, conditions: &[Expr], source: &str) -> Result<(), Wrong> {
        let (name, _) = parse::assignment(source)?;
        if self.variables.iter().any(|known| known.name == name) {
            return Ok(());
        }
        let at = 0..source.len();
        let is_input = |channel: &str| self.inputs.iter().any(|known| known.name == channel);
        if is_input(&name) || OF_ROWS.contains(&name.as_str()) {
            return Err(wrong(
                &at,
                format!("{name} is a column of the row, and rules change variables"),
                "give the variable another name",
            ));
        }
        let compared = conditions
            .iter()
            .find_map(|condition| compared_with(condition, &name, &is_input));
        let channel = compared.ok_or_else(|| {
            wrong(
                &at,
                format!("nothing says what kind of number {name} is"),
                format!("declare the variable, as in {name} = 0, or {name} = 0 like CHANNEL"),
            )
        })?;
        let like = self.name(&at, &channel)?;
        let zero = Number::constant(Rational::ZERO, like.unit.clone());
        self.add(name, &at, zero, Some(like))
    }

    /// What is done for all rules, and the condition under which the row is kept; and the word with what the answer says of
    /// rules, if there are some.
    pub(crate) fn rules(
        &mut self,
        text: &ProgramText,
        keep: Cond,
    ) -> Result<(Cond, Option<usize>), Fault> {
        if text.rules.is_empty() {
            return Ok((keep, None));
        }
        let mut conditions = Vec::new();
        let mut changes = Vec::new();
        for (rule, source) in text.rules.iter().enumerate() {
            let when = &source.when;
            let condition = self
                .when(when)
                .map_err(|wrong| wrong.in_part(Part::When(rule), when))?;
            conditions.push(condition);
            for (nth, then) in source.then.iter().enumerate() {
                let (word, node) = self
                    .then(then)
                    .map_err(|wrong| wrong.in_part(Part::Then(rule, nth), then))?;
                changes.push(Change { rule, word, node });
            }
        }
        let met = self.state.take(1);
        self.meet(met, conditions);
        let keep = self.kept_before(keep, &changes);
        self.change(met, changes);
        Ok((keep, Some(met)))
    }

    fn when(&mut self, source: &str) -> Result<Cond, Wrong> {
        let expr = parse::expression(source)?;
        self.on_each(&expr)?;
        match self.truth(&expr)? {
            Cond::Const(is) => Err(wrong(
                &expr.at,
                format!("this is always {is}"),
                "compare with a number that the channel can be above and below",
            )),
            condition => Ok(condition),
        }
    }

    /// The word of the variable that is changed, and what it becomes.
    fn then(&mut self, source: &str) -> Result<(usize, Node), Wrong> {
        let (name, value) = parse::assignment(source)?;
        self.on_each(&value)?;
        let number = self.number(&value)?;
        let known = self.variables.iter().find(|known| known.name == name);
        // infer() has seen to it that there is one.
        let variable =
            known.ok_or_else(|| wrong(&value.at, "there is no such variable", "declare it"))?;
        Ok((variable.word, variable.word_of(&value.at, number)?))
    }

    /// Notes which conditions the row meets, as bits of the answer.
    fn meet(&mut self, met: usize, conditions: Vec<Cond>) {
        for (rule, condition) in conditions.into_iter().enumerate() {
            let (bits, none) = match rule {
                0 => (Node::Const(bit(rule)), vec![Do::State(met, Node::Const(0))]),
                _ => (
                    Node::op(Op::Or, Node::State(met), Node::Const(bit(rule))),
                    Vec::new(),
                ),
            };
            self.state
                .does
                .push(Do::If(condition, vec![Do::State(met, bits)], none));
        }
    }

    /// The condition by which rows are kept, worked out before variables change, if it could depend on them.
    fn kept_before(&mut self, keep: Cond, changes: &[Change]) -> Cond {
        if !changes.iter().any(|change| keep.has_state(change.word)) {
            return keep;
        }
        let word = self.state.take(1);
        let truth = Node::Truth(keep.into());
        self.state.does.push(Do::State(word, truth));
        is_set(Node::State(word))
    }

    /// Changes the variables. A value that depends on a variable which is changed before it is worked out first.
    fn change(&mut self, met: usize, mut changes: Vec<Change>) {
        let applies = |rule| is_set(Node::op(Op::And, Node::State(met), Node::Const(bit(rule))));
        for place in 0..changes.len() {
            let (before, rest) = changes.split_at_mut(place);
            let Some(change) = rest.first_mut() else {
                continue;
            };
            if before.iter().any(|other| change.node.has_state(other.word)) {
                let word = self.state.take(1);
                let node = std::mem::replace(&mut change.node, Node::State(word));
                let first = vec![Do::State(word, node)];
                self.state
                    .does
                    .push(Do::If(applies(change.rule), first, Vec::new()));
            }
        }
        let mut changes = changes.into_iter().peekable();
        while let Some(change) = changes.next() {
            let rule = change.rule;
            let mut of_rule = vec![Do::State(change.word, change.node)];
            while let Some(more) = changes.next_if(|more| more.rule == rule) {
                of_rule.push(Do::State(more.word, more.node));
            }
            self.state
                .does
                .push(Do::If(applies(rule), of_rule, Vec::new()));
        }
    }
}

/// The bit of the answer for this rule.
fn bit(rule: usize) -> i128 {
    2 << rule
}

fn is_set(node: Node) -> Cond {
    Cond::Compare(Compare::NotEqual, false, node, Node::Const(0))
}

pub(super) fn taken(at: &Place<usize>, what: &str, name: &str) -> Wrong {
    wrong(
        at,
        format!("there is a {what} {name} already"),
        "give it another name",
    )
}

/// The channel that a comparison in this expression has on its other side.
fn compared_with(expr: &Expr, name: &str, is_channel: &dyn Fn(&str) -> bool) -> Option<String> {
    let found = RefCell::new(None);
    expr.any(&|part| {
        let What::Binary(Binary::Compare(_), a, b) = &part.what else {
            return false;
        };
        let other = match (&a.what, &b.what) {
            (What::Name(known), What::Name(other)) if known == name => other,
            (What::Name(other), What::Name(known)) if known == name => other,
            _ => return false,
        };
        let is = is_channel(other);
        if is {
            *found.borrow_mut() = Some(other.clone());
        }
        is
    });
    found.into_inner()
}
