// SPDX-License-Identifier: MIT OR Apache-2.0
//! A list of runs to choose from.

use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{List, ListState};
use strobe::engine::user::registry::UnresponsiveRun;
use strobe::machine::Machine;
use strobe::runs::{Place, Runs};

use super::{Error, Key, Screen};
use crate::status;

/// How often the list is made anew.
const EVERY: Duration = Duration::from_secs(1);

/// The run that was chosen; `None` if somebody has left.
pub fn choose(machine: &dyn Machine, screen: &mut Screen) -> Result<Option<Place>, Error> {
    let mut runs = machine.runs()?;
    let mut looked = Instant::now();
    let mut chosen: Option<Place> = runs.places().first().copied();
    loop {
        if looked.elapsed() >= EVERY {
            runs = machine.runs()?;
            looked = Instant::now();
        }
        let places = runs.places();
        // Runs come and go; the mark stays on its run, if that is there.
        let index = places.iter().position(|place| Some(*place) == chosen);
        let index = index.or(Some(0)).filter(|_| !places.is_empty());
        screen.draw(|frame| draw(frame, &runs, index))?;
        let to = match screen.key()? {
            None => index,
            Some(Key::Leave) => return Ok(None),
            Some(Key::Up) => index.map(|index| index.saturating_sub(1)),
            Some(Key::Down) => index.map(|index| (index + 1).min(places.len() - 1)),
            Some(Key::Enter) => match index.and_then(|index| places.get(index)) {
                Some(place) => return Ok(Some(*place)),
                None => index,
            },
        };
        chosen = to.and_then(|index| places.get(index)).copied();
    }
}

fn draw(frame: &mut Frame<'_>, runs: &Runs, index: Option<usize>) {
    let rows = [
        Constraint::Length(2),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    let [top, middle, bottom] = Layout::vertical(rows).areas(frame.area());
    let table = status::table_of(&runs.runs);
    let mut lines = table.lines();
    let heading = lines.next().unwrap_or("no runs").to_owned();
    let mut items: Vec<Line<'_>> = lines.map(Line::from).collect();
    for UnresponsiveRun { run, why, .. } in &runs.silent {
        items.push(Line::from(format!("  user:{run} {why}")));
    }
    let text = vec![Line::from("strobe: which run?"), Line::from(heading)];
    frame.render_widget(ratatui::text::Text::from(text), top);
    let list = List::new(items).highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = ListState::default().with_selected(index);
    frame.render_stateful_widget(list, middle, &mut state);
    frame.render_widget(
        Line::from("Up and Down choose, Enter watches, q leaves"),
        bottom,
    );
}
