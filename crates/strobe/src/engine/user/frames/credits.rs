// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much the remote may send, so that what waits in the queue of the endpoint always has room: the rule of
//! docs/reference/frames.md.

use strobe_board::frame::HEADER_SIZE;

/// Messages that the queue of an endpoint holds at most: STROBE_RPMSG_QUEUE_MAX.
pub const QUEUE_MESSAGES: usize = 256;
/// The default of strobe_rpmsg, whose memory for an endpoint it is.
pub const QUEUE_KIB: usize = 32;
/// A message of virtio's.
const USUAL_MTU: usize = 496;
/// What of that is not for messages, at most.
const OWN: usize = 1024;
/// What the queue has in front of each message, and what messages are a multiple of there.
const LENGTH: usize = 4;
/// If nothing has come for so long, credits may have been lost.
pub const QUIET_NS: u64 = 100_000_000;

/// Frames that may wait: those that a queue surely holds, of which messages of one frame each take the most, but for those
/// that have taken their credits and are in the making, one message of at most `mtu` bytes (0: as virtio has).
pub fn room(queue_kib: usize, frame_bytes: usize, mtu: usize) -> usize {
    let message = LENGTH + (HEADER_SIZE + frame_bytes).next_multiple_of(LENGTH);
    let holds = ((1024 * queue_kib).saturating_sub(OWN) / message).min(QUEUE_MESSAGES);
    let mtu = if mtu == 0 { USUAL_MTU } else { mtu };
    let making = (mtu.saturating_sub(HEADER_SIZE) / frame_bytes).max(1);
    holds.saturating_sub(making)
}

/// What the remote was given, and when it is to have more.
#[derive(Debug)]
pub struct Credits {
    /// Frames of a grant: half of the room, for what was given before may come as well.
    each: u32,
    /// Samples that were taken or missed since the last grant.
    taken: u64,
    /// Since when nothing has come, as far as somebody has looked.
    quiet: Option<u64>,
}

impl Credits {
    /// For a queue with room for so many frames.
    pub fn new(room: usize) -> Credits {
        Credits {
            // 0 would be no limit.
            each: (room / 2).max(1) as u32,
            taken: 0,
            quiet: None,
        }
    }

    /// Frames of a grant.
    pub fn each(&self) -> u32 {
        self.each
    }

    /// START or CREDIT was sent at this time, in ns.
    pub fn granted(&mut self, now: u64) {
        self.taken = 0;
        self.quiet = Some(now);
    }

    /// A message has come, and with it so many samples are taken or missed.
    pub fn took(&mut self, samples: u64) {
        self.taken += samples;
        self.quiet = None;
    }

    /// A quarter of the room was taken: the next grant is due as soon as nothing waits.
    pub fn is_low(&self) -> bool {
        self.taken >= u64::from(self.each.div_ceil(2))
    }

    /// Nothing waits at this time, in ns: whether a grant is due.
    pub fn is_due(&mut self, now: u64) -> bool {
        let quiet = *self.quiet.get_or_insert(now);
        self.is_low() || now.saturating_sub(quiet) >= QUIET_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn the_room_is_what_the_queue_holds_of_messages_with_one_frame() {
        for (kib, bytes, mtu, frames) in [
            (32, 32, 496, 256 - 15),
            (32, 32, 0, 256 - 15),
            (32, 112, 496, 256 - 4),
            (32, 120, 496, 240 - 4),
            (32, 488, 496, 63 - 1),
            (4, 32, 496, 69 - 15),
            (4, 488, 40, 6 - 1),
            (1024, 488, 496, 256 - 1),
            (4, 32, 65536, 0),
        ] {
            let room = room(kib, bytes, mtu);
            assert_eq!(room, frames, "{kib} KiB, {bytes} bytes, {mtu} a message");
        }
    }

    #[test]
    fn a_quarter_or_silence_makes_a_grant_due() {
        let mut credits = Credits::new(256);
        assert_eq!(credits.each(), 128);
        credits.took(63);
        assert!(!credits.is_due(1_000));
        credits.took(1);
        assert!(credits.is_due(2_000));
        credits.granted(5_000);
        assert!(!credits.is_due(5_000 + QUIET_NS - 1));
        assert!(credits.is_due(5_000 + QUIET_NS));
        // What has come in the meantime was no silence.
        credits.took(0);
        assert!(!credits.is_due(6_000 + QUIET_NS));
    }

    #[test]
    fn the_smallest_room_has_credits_too() {
        for room in [0, 1, 2, 3] {
            let mut credits = Credits::new(room);
            assert_eq!(credits.each(), 1);
            assert!(!credits.is_due(0));
            credits.took(1);
            assert!(credits.is_due(0));
        }
    }

    /// A remote that samples, frames and a CREDIT on their way, the queue, and the host: who does something is left to
    /// chance, and some of what is sent is lost. A round trip is shorter than the time between two CREDITs.
    #[test]
    fn whatever_is_lost_no_more_waits_than_there_is_room_for() {
        let mut state = 0x5EED_u64;
        let mut dice = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as usize % bound.max(1)
        };
        for room in [4, 16, 93, 256] {
            let mut credits = Credits::new(room);
            let (mut has, mut sent) = (credits.each(), None);
            // How many CREDITs the remote has got; frames on their way have it beside their numbers.
            let mut got = 0;
            let mut under_way: VecDeque<(u64, u64)> = VecDeque::new();
            let mut queue: VecDeque<u64> = VecDeque::new();
            let (mut sequence, mut expected, mut now) = (0, 0, 0);
            let (mut most, mut rows, mut lost) = (0, 0, 0);
            for _ in 0..300_000 {
                now += dice(QUIET_NS as usize / 50) as u64;
                match dice(6) {
                    0 => {
                        for _ in 0..dice(room) {
                            if has > 0 {
                                has -= 1;
                                match dice(16) {
                                    0 => lost += 1,
                                    _ => under_way.push_back((sequence, got)),
                                }
                            }
                            sequence += 1;
                        }
                    }
                    1 => {
                        if let Some(credits) = sent.take() {
                            has = credits;
                            got += 1;
                        }
                    }
                    2 => {
                        let some = dice(1 + under_way.len());
                        queue.extend(under_way.drain(..some).map(|(sequence, _)| sequence));
                    }
                    _ => {
                        for _ in 0..dice(room) {
                            let Some(frame) = queue.pop_front() else {
                                break;
                            };
                            credits.took(frame + 1 - expected);
                            expected = frame + 1;
                            rows += 1;
                        }
                        let first = under_way.front();
                        let round_trip = sent.is_none() && first.is_none_or(|first| first.1 == got);
                        if queue.is_empty() && round_trip && credits.is_due(now) {
                            sent = (dice(8) > 0).then_some(credits.each());
                            credits.granted(now);
                        }
                    }
                }
                most = most.max(queue.len());
            }
            assert!(most <= room, "{most} wait where {room} have room");
            assert!(most > room / 2, "{most} of {room}");
            assert!(lost > 1_000 && rows > 10_000, "{rows} rows, {lost} lost");
        }
    }
}
