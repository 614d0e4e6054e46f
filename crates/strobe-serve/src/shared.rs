// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was made of rows last. Clients that read the same rows in the same form at about the same time share it: it is made
//! once, not for each of them. Who wants what another one is just making waits for it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// Bytes of rows that are written at once, at most: so many that a client which reads as fast as it can seldom has to be woken,
/// few enough for many clients, and to be kept for others, however little that may be.
pub const PIECE: usize = (1 << 20) - (4 << 10);
/// How many forms may have as much as one may.
const FORMS: usize = 4;
/// Bytes of a piece besides what was made: slow runs have many small ones.
const OF_A_PIECE: usize = 128;
/// How long one waits for what another one makes: that may have to wait for rows itself, or for a disk that does not answer.
const WAIT: Duration = Duration::from_millis(100);

/// All forms `W` in which somebody reads, and what was made of rows in each, `M`.
pub struct Shared<W, M> {
    pools: Mutex<Vec<(W, Weak<Pool<M>>)>>,
    /// Bytes that are kept in one form at most, and in all forms together [`FORMS`] times as many.
    bound: usize,
    bytes: Arc<AtomicUsize>,
}

/// What was made in one form. It is there as long as somebody reads in it.
pub struct Pool<M> {
    kept: Mutex<Kept<M>>,
    /// Somebody who was making something has done so, or has given up.
    done: Notify,
    bound: usize,
    /// Of all pools.
    bytes: Arc<AtomicUsize>,
}

/// By the numbers of the first row, and of the row after the last one.
type Place = (u64, u64);

struct Kept<M> {
    all: BTreeMap<Place, Made<M>>,
    /// Oldest first: not the rows, but what was made of them.
    order: VecDeque<Place>,
    bytes: usize,
    /// The first rows of what is being made.
    making: Vec<u64>,
}

/// What becomes of somebody who wants rows.
pub enum Turn<M> {
    /// Another one has made this of them; the row after them.
    Made(u64, M),
    /// It is for this one to make it. Others wait as long as this is kept, if it is there: drop it before you wait for a client.
    Make(Option<Making<M>>),
}

/// Somebody makes what begins with this row.
pub struct Making<M> {
    /// Not counted as a reader.
    pool: Weak<Pool<M>>,
    row: u64,
}

struct Made<M> {
    bytes: usize,
    what: M,
}

impl<W: PartialEq, M: Clone> Shared<W, M> {
    /// Nobody reads yet. As many bytes of each form are kept as there are of the rows themselves in memory: who reads these
    /// finds what others were given.
    pub fn new(recent: usize) -> Self {
        Shared {
            pools: Mutex::default(),
            bound: recent,
            bytes: Arc::default(),
        }
    }

    /// One more reads in this form, as long as it keeps this.
    pub fn reader(&self, wanted: W) -> Arc<Pool<M>> {
        let mut pools = lock(&self.pools);
        pools.retain(|(_, pool)| pool.strong_count() > 0);
        let found = pools.iter().find(|(of, _)| *of == wanted);
        if let Some(pool) = found.and_then(|(_, pool)| pool.upgrade()) {
            return pool;
        }
        let kept = Kept {
            all: BTreeMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            making: Vec::new(),
        };
        let pool = Arc::new(Pool {
            kept: Mutex::new(kept),
            done: Notify::new(),
            bound: self.bound,
            bytes: Arc::clone(&self.bytes),
        });
        pools.push((wanted, Arc::downgrade(&pool)));
        pool
    }
}

impl<M: Clone> Pool<M> {
    /// What was made of rows that begin with this one and end before `to`, or the right to make it. May be dropped at any
    /// moment.
    pub async fn turn(self: &Arc<Self>, row: u64, to: u64) -> Turn<M> {
        let until_mine = async {
            loop {
                let mut done = std::pin::pin!(self.done.notified());
                // Before the look: what is done after it wakes this.
                done.as_mut().enable();
                if let Some(turn) = self.turn_now(row, to) {
                    return turn;
                }
                done.await;
            }
        };
        let turn = timeout(WAIT, until_mine).await;
        turn.unwrap_or(Turn::Make(None))
    }

    /// The same, unless another one is making it.
    fn turn_now(self: &Arc<Self>, row: u64, to: u64) -> Option<Turn<M>> {
        let mut kept = lock(&self.kept);
        if let Some((end, what)) = kept.find(row, to) {
            return Some(Turn::Made(end, what));
        }
        if !self.has_others() {
            return Some(Turn::Make(None));
        }
        if kept.making.contains(&row) {
            return None;
        }
        kept.making.push(row);
        let pool = Arc::downgrade(self);
        Some(Turn::Make(Some(Making { pool, row })))
    }

    /// What was made of just these rows.
    pub fn get(&self, rows: &Range<u64>) -> Option<M> {
        let kept = lock(&self.kept);
        let made = kept.all.get(&(rows.start, rows.end))?;
        Some(made.what.clone())
    }

    /// Whether others read, too.
    pub fn has_others(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }

    /// This was made of consecutive rows, and has so many bytes. If nobody else reads, nothing is kept.
    pub fn keep(self: &Arc<Self>, rows: Range<u64>, bytes: usize, what: M) {
        let mut kept = lock(&self.kept);
        if !self.has_others() {
            while self.forget(&mut kept) {}
            return;
        }
        let (place, bytes) = ((rows.start, rows.end), bytes + OF_A_PIECE);
        if rows.is_empty() || bytes > self.bound || kept.all.contains_key(&place) {
            return;
        }
        // A little more does no harm: several may see that there is room.
        let is_full = |kept: &Kept<M>| {
            let of_all = self.bytes.load(Ordering::Relaxed) + bytes;
            kept.bytes + bytes > self.bound || of_all > self.bound.saturating_mul(FORMS)
        };
        while is_full(&kept) {
            if !self.forget(&mut kept) {
                return;
            }
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        kept.bytes += bytes;
        kept.order.push_back(place);
        kept.all.insert(place, Made { bytes, what });
    }

    /// The oldest goes. Whether there was one.
    fn forget(&self, kept: &mut Kept<M>) -> bool {
        let oldest = kept.order.pop_front();
        let Some(oldest) = oldest.and_then(|place| kept.all.remove(&place)) else {
            return false;
        };
        kept.bytes -= oldest.bytes;
        self.bytes.fetch_sub(oldest.bytes, Ordering::Relaxed);
        true
    }
}

impl<M: Clone> Kept<M> {
    fn find(&self, row: u64, to: u64) -> Option<(u64, M)> {
        let found = self.all.range((row, row)..=(row, to.max(row))).next_back();
        found.map(|(place, made)| (place.1, made.what.clone()))
    }
}

impl<M> Drop for Making<M> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            lock(&pool.kept).making.retain(|row| *row != self.row);
            pool.done.notify_waiters();
        }
    }
}

impl<M> Drop for Pool<M> {
    fn drop(&mut self) {
        let bytes = lock(&self.kept).bytes;
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: usize = 1 << 20;

    impl<M: Clone> Pool<M> {
        fn find(&self, row: u64, to: u64) -> Option<(u64, M)> {
            lock(&self.kept).find(row, to)
        }
    }

    #[test]
    fn only_the_same_rows_in_the_same_form_are_shared() {
        let shared = Shared::new(BOUND);
        let (one, two) = (shared.reader("a"), shared.reader("a"));
        let (other, another) = (shared.reader("b"), shared.reader("b"));
        one.keep(10..20, 1, 'x');
        assert_eq!(two.find(10, u64::MAX), Some((20, 'x')));
        assert_eq!(two.find(10, 20), Some((20, 'x')));
        assert_eq!((two.find(10, 19), two.find(11, 20)), (None, None));
        assert_eq!((other.find(10, 20), another.find(10, 20)), (None, None));
        two.keep(20..20, 1, 'y');
        assert_eq!(one.find(20, 20), None);
    }

    #[test]
    fn nothing_is_kept_for_one_reader_and_nothing_longer_than_readers_are_there() {
        let shared = Shared::new(BOUND);
        let one = shared.reader("a");
        one.keep(0..1, 1, 'x');
        assert_eq!(one.find(0, 1), None);
        let two = shared.reader("a");
        one.keep(0..1, 1, 'x');
        drop(one);
        assert_eq!(
            (two.find(0, 1), two.get(&(0..1))),
            (Some((1, 'x')), Some('x'))
        );
        two.keep(1..2, 1, 'y');
        assert_eq!((two.find(0, 1), two.find(1, 2)), (None, None));
        drop(two);
        assert_eq!(shared.bytes.load(Ordering::Relaxed), 0);
        let three = shared.reader("a");
        assert_eq!(three.find(0, 1), None);
        assert_eq!(lock(&shared.pools).len(), 1);
    }

    #[test]
    fn the_oldest_go_first_and_all_forms_together_have_a_bound() {
        let shared = Shared::new(BOUND);
        let readers: Vec<_> = (0..16).map(|form| shared.reader(form / 2)).collect();
        let one = &readers[0];
        for row in 0..8 {
            one.keep(row..row + 1, BOUND / 4 - OF_A_PIECE, ());
        }
        let kept = (0..8).filter(|row| one.find(*row, 8).is_some());
        assert_eq!(kept.collect::<Vec<_>>(), [4, 5, 6, 7]);
        one.keep(8..9, BOUND, ());
        assert_eq!((one.find(8, 9), one.find(7, 8)), (None, Some((8, ()))));
        for row in 100..100 + 2 * BOUND as u64 / OF_A_PIECE as u64 {
            one.keep(row..row + 1, 1, ());
            one.keep(row..row + 1, 1, ());
        }
        assert_eq!(lock(&one.kept).all.len(), BOUND / (OF_A_PIECE + 1));
        assert_eq!(lock(&one.kept).order.len(), BOUND / (OF_A_PIECE + 1));
        for reader in &readers {
            for row in 10..14 {
                reader.keep(row..row + 1, BOUND / 4 - OF_A_PIECE, ());
            }
        }
        let bytes = shared.bytes.load(Ordering::Relaxed);
        assert!(bytes <= FORMS * BOUND, "{bytes}");
        drop(readers);
        assert_eq!(shared.bytes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_several_want_is_made_by_one_of_them_and_the_others_wait_for_it() {
        let shared = Shared::new(BOUND);
        let readers: Vec<_> = (0..3).map(|_| shared.reader("a")).collect();
        let Turn::Make(Some(making)) = readers[0].turn(0, 10).await else {
            panic!("it is there, or nobody else reads");
        };
        let another = readers[1].turn(5, 10).await;
        assert!(matches!(another, Turn::Make(Some(_))), "other rows");
        let others = readers[1..].iter().map(|reader| {
            let reader = Arc::clone(reader);
            tokio::spawn(async move { reader.turn(0, 10).await })
        });
        let others: Vec<_> = others.collect();
        tokio::task::yield_now().await;
        readers[0].keep(0..4, 1, 'x');
        drop(making);
        for other in others {
            let turn = other.await.expect("no panic");
            assert!(matches!(turn, Turn::Made(4, 'x')));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_lets_the_next_one_make_it_and_who_takes_long_is_not_waited_for() {
        let shared = Shared::<_, ()>::new(BOUND);
        let (one, two) = (shared.reader("a"), shared.reader("a"));
        let making = one.turn(0, 10).await;
        assert!(matches!(making, Turn::Make(Some(_))));
        let begun = tokio::time::Instant::now();
        assert!(matches!(two.turn(0, 10).await, Turn::Make(None)));
        assert!(begun.elapsed() >= WAIT);
        let waits = tokio::spawn({
            let two = Arc::clone(&two);
            async move { two.turn(0, 10).await }
        });
        tokio::task::yield_now().await;
        drop(making);
        let turn = waits.await.expect("no panic");
        assert!(matches!(turn, Turn::Make(Some(_))));
        drop((turn, two));
        let alone = one.turn(0, 10).await;
        assert!(matches!(alone, Turn::Make(None)), "nobody else reads");
    }
}
