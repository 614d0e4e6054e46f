// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns of what is compared.

use std::time::{SystemTime, UNIX_EPOCH};

/// In which order the ways take their turns in a round: by chance, so that none always follows the same other.
pub fn order(round: u32, ways: usize) -> Vec<usize> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let chance = now.map_or(0, |now| u64::from(now.subsec_nanos())) + u64::from(round);
    let mut order: Vec<usize> = (0..ways).collect();
    let mut left = chance;
    for end in (1..ways).rev() {
        order.swap(end, (left % (end as u64 + 1)) as usize);
        left /= end as u64 + 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_one_turn_a_round() {
        for ways in 0..9 {
            let mut turns = order(3, ways);
            turns.sort_unstable();
            assert_eq!(turns, (0..ways).collect::<Vec<_>>());
        }
    }

    #[test]
    fn not_every_round_has_the_same_order() {
        let first = order(0, 5);
        assert!((0..1000).any(|round| order(round, 5) != first));
    }
}
