// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of two runs find each other by their times.

use strobe::samples::{channel, info, totals};

use super::*;

const WAIT: Duration = Duration::from_secs(1);

/// A run: blocks of rows, by number and time in ns since its start; nothing where it is late.
struct Run {
    info: Arc<RunInfo>,
    blocks: VecDeque<Vec<(u64, u64)>>,
    last: Option<Place>,
    next: u64,
    is_torn: bool,
}

/// One that was started so many ns after the other ones, with these rows.
fn run(name: &str, started: u64, blocks: &[&[(u64, u64)]]) -> Run {
    let mut info = info(vec![channel(name, Type::U64)]);
    info.start.tai += started;
    Run {
        info: Arc::new(info),
        blocks: blocks.iter().map(|rows| rows.to_vec()).collect(),
        last: Some(Place::START),
        next: 0,
        is_torn: false,
    }
}

impl RowSource for Run {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn next(&mut self, _: Duration) -> Result<Option<Block>, Error> {
        let Some(rows) = self.blocks.pop_front() else {
            return Ok(None);
        };
        let start = self.info.start.time;
        // The value is ten times the number; of rows that are multiples of 7 it has failed.
        let words = rows.iter().flat_map(|(row, ns)| {
            let status = u64::from(*row % 7 == 6) << 32;
            [*row, *row, start + ns, status, 10 * row]
        });
        let first = rows.first().map_or(self.next, |(row, _)| *row);
        let numbers = (first, first - self.next);
        self.next = first + rows.len() as u64;
        let words = Arc::new(words.collect());
        let info = Arc::clone(&self.info);
        Ok(Some(Block::new(
            info,
            words,
            0..rows.len(),
            numbers,
            &mut self.last,
        )))
    }

    fn totals(&self) -> Option<Totals> {
        Some(totals(self.next))
    }

    fn is_torn(&self) -> bool {
        self.is_torn
    }
}

/// A row of the first run, and number and distance of that beside it.
type Pair = (u64, Option<(u64, i64)>);

struct Joined {
    pairs: Vec<Pair>,
    lost: u64,
    totals: Option<Totals>,
    shared: Arc<Mutex<Shared>>,
}

fn joined(first: Run, second: Run, within: u64) -> Joined {
    let shared = Arc::new(Mutex::new(Shared::default()));
    let (first, second) = (Box::new(first), Box::new(second));
    let within = Duration::from_nanos(within);
    let join = Join::new(first, second, within, "there", Arc::clone(&shared));
    let mut join = join.expect("two runs");
    let names: Vec<_> = join
        .info()
        .channels
        .iter()
        .map(|c| c.name.clone())
        .collect();
    assert_eq!(names, ["a.x", "there.row", "there.after", "there.b.y"]);
    let (mut pairs, mut lost, mut next) = (Vec::new(), 0, 0);
    while let Some(block) = join.next(WAIT).expect("rows") {
        assert_eq!(block.first() - block.lost(), next, "nothing is left out");
        next = block.first() + block.len() as u64;
        lost += block.lost();
        for row in block.rows() {
            assert_eq!(row.faults.failed(0), row.row % 7 == 6, "{row:?}");
            assert_eq!(row.values[0], 10 * row.row);
            let beside = (!row.faults.failed(1)).then(|| (row.values[1], row.values[2] as i64));
            if let Some((other, _)) = beside {
                assert_eq!(row.faults.failed(3), other % 7 == 6, "{row:?}");
                assert_eq!(row.values[3], 10 * other);
            }
            assert_eq!(row.faults.failed(2), beside.is_none());
            pairs.push((row.row, beside));
        }
    }
    let matches = shared.lock().expect("counts").matches;
    assert_eq!(matches.joined + matches.alone, pairs.len() as u64);
    let totals = join.totals();
    Joined {
        pairs,
        lost,
        totals,
        shared,
    }
}

fn matches(joined: &Joined) -> (u64, u64, u64, u64) {
    let matches = joined.shared.lock().expect("counts").matches;
    let (others, lost) = (matches.others, matches.others_lost);
    (matches.joined, matches.alone, others, lost)
}

#[test]
fn each_row_has_the_nearest_one_beside_it_or_none() {
    // The second one was started 100 ns later: its rows are at 90, 104, 198, 206, 500 and 900 ns of the first one.
    let first = run(
        "a.x",
        0,
        &[&[(0, 100), (1, 200)], &[(2, 300), (3, 400), (4, 500)]],
    );
    let second = run(
        "b.y",
        100,
        &[&[(0, 4), (1, 98)], &[(2, 106)], &[(3, 400), (4, 800)]],
    );
    let joined = joined(first, second, 10);
    let expected = [
        (0, Some((0, 4))),
        (1, Some((1, -2))),
        (2, None),
        (3, None),
        (4, Some((3, 0))),
    ];
    assert_eq!(joined.pairs, expected);
    // Row 2 there is near, but another one is nearer; row 4 was made when the first run was over.
    assert_eq!(matches(&joined), (3, 2, 1, 0));
    assert_eq!(joined.totals.expect("an account").errors, 2);
}

#[test]
fn a_slow_run_is_beside_several_rows_of_a_quick_one() {
    let quick: Vec<(u64, u64)> = (0..10).map(|row| (row, 10 * row)).collect();
    let first = run("a.x", 0, &[&quick]);
    let second = run("b.y", 0, &[&[(0, 0)], &[(1, 50)], &[(2, 100)]]);
    let joined = joined(first, second, 20);
    let numbers: Vec<_> = joined
        .pairs
        .iter()
        .map(|(_, other)| other.map(|(n, _)| n))
        .collect();
    let (zero, one, two) = (Some(0), Some(1), Some(2));
    let expected = [zero, zero, zero, one, one, one, one, one, two, two];
    assert_eq!(numbers, expected);
    assert_eq!(matches(&joined), (10, 0, 0, 0));
}

#[test]
fn rows_wait_for_a_run_that_is_late_and_for_none_that_is_over() {
    let first = run("a.x", 0, &[&[(0, 100), (1, 200), (2, 300)], &[(3, 400)]]);
    let second = run("b.y", 0, &[&[], &[], &[(0, 101)], &[], &[(1, 201)], &[]]);
    let joined = joined(first, second, 10);
    let expected = [(0, Some((0, 1))), (1, Some((1, 1))), (2, None), (3, None)];
    assert_eq!(joined.pairs, expected);
    assert_eq!(matches(&joined), (2, 2, 0, 0));
}

#[test]
fn when_the_second_run_breaks_off_no_more_rows_are_said_to_be_alone() {
    let first = run("a.x", 0, &[&[(0, 100), (1, 200), (2, 300)]]);
    let mut second = run("b.y", 0, &[&[(0, 100), (1, 211)]]);
    second.is_torn = true;
    let joined = joined(first, second, 10);
    assert_eq!(joined.pairs, [(0, Some((0, 0))), (1, None)]);
    assert_eq!(joined.totals, None);
}

#[test]
fn losses_of_both_are_counted_and_what_failed_has_failed() {
    let first = run("a.x", 0, &[&[(5, 500), (6, 600)], &[(9, 900)]]);
    let second = run("b.y", 0, &[&[(6, 600)], &[(9, 900), (10, 1000)]]);
    let joined = joined(first, second, 10);
    let expected = [(5, None), (6, Some((6, 0))), (9, Some((9, 0)))];
    assert_eq!(joined.pairs, expected);
    assert_eq!((joined.lost, matches(&joined)), (7, (2, 1, 0, 8)));
}

#[test]
fn what_was_kept_says_what_is_not_needed_any_more() {
    let first = run("a.x", 0, &[&[(0, 100)], &[(1, 200)], &[(2, 300)]]);
    let second = run(
        "b.y",
        0,
        &[&[(0, 100), (1, 150), (2, 200), (3, 300), (4, 900)]],
    );
    let joined = joined(first, second, 10);
    let mut shared = joined.shared.lock().expect("counts");
    assert_eq!(shared.kept(0), None);
    assert_eq!(shared.kept(1), Some(0));
    assert_eq!(shared.kept(3), Some(3));
    assert_eq!(shared.kept(3), None);
}

#[test]
fn columns_behind_those_of_the_status_fail_in_words_of_their_own() {
    let mut info = info(
        (0..40)
            .map(|n| channel(&format!("a.x{n}"), Type::U64))
            .collect(),
    );
    info.outputs = vec!["a.out".to_owned()];
    info.skips = true;
    let shape = info.shape();
    let mut row = vec![0; shape.words() as usize];
    for place in [3, 33, 39, 40] {
        fail(&mut row, shape, place);
    }
    let row = strobe::ring::Rows::new(&row, shape).next().expect("a row");
    assert_eq!(row.faults.iter().collect::<Vec<_>>(), [3, 33, 39, 40]);
    assert_eq!(row.skipped, 0);
}
