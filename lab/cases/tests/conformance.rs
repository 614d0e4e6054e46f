// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every engine has to do. Nothing here is said about speed: the machine
//! may be slow, and triggers may be missed at any time. They are counted then.
//!
//! A new engine implements `strobe_cases::Engine` and gets a line at the end.

mod channels;
pub(crate) mod events;
pub(crate) mod life;
pub(crate) mod pause;
pub(crate) mod rings;
mod rules;
mod tunables;

use strobe_cases::{Kernel, User};

/// One `#[test]` for each sentence, in a module of the engine.
macro_rules! conformance {
    ($engine_name:ident: $engine:ty; $($subject:ident: $($sentence:ident,)*;)*) => {
        mod $engine_name {
            use super::*;
            use strobe_cases::Engine;
            $($(
                #[test]
                fn $sentence() {
                    $subject::$sentence(&<$engine>::open());
                }
            )*)*
        }
    };
}

pub(crate) use conformance;

/// The sentences that hold whatever else is in the rows, and more. `providers` has them of runs that read devices, too.
macro_rules! everywhere {
    ($name:ident: $engine:ty; $($more:tt)*) => {
        conformance! { $name: $engine;
            life:
                a_run_waits_for_its_start,
                a_run_with_a_limit_makes_exactly_its_rows_and_is_done,
                a_run_can_be_stopped_in_every_state,
                what_a_state_forbids_is_refused_and_changes_nothing,
                a_run_whose_owner_goes_has_failed_and_keeps_its_rows,
            ;
            rings:
                a_linear_ring_keeps_every_row,
                a_circular_ring_with_a_limit_keeps_its_last_rows,
                a_continuous_ring_goes_on_until_it_is_stopped,
                a_reader_that_sleeps_knows_exactly_what_it_lost,
                a_reader_attached_late_begins_with_the_oldest_row,
                eight_readers_two_of_them_slow_are_all_exact,
                a_reader_that_is_polled_is_ready_for_each_row_and_for_the_end,
            ;
            pause:
                while_paused_triggers_are_not_counted,
                the_first_row_after_a_pause_says_so_and_no_other,
                the_grid_keeps_its_phase_over_a_pause,
            ;
            events:
                triggers_of_two_threads_make_one_row_each,
                a_device_event_makes_rows,
                triggers_that_are_left_out_are_skipped_and_not_missed,
                what_is_skipped_before_a_pause_and_a_stop_is_counted,
            ;
            $($more)*
        }
    };
}
pub(crate) use everywhere;

macro_rules! engine {
    ($name:ident: $engine:ty) => {
        everywhere! { $name: $engine;
            life:
                many_runs_start_and_stop_under_load,
            ;
            rings:
                a_row_that_is_counted_is_whole,
                a_program_written_from_the_header_alone_reads_every_row,
                a_reader_is_woken_at_the_row_it_waits_for,
                a_signal_ends_a_wait_and_the_longest_time_is_no_error,
                the_ring_holds_one_second_of_rows_unless_asked,
            ;
            events:
                one_call_triggers_a_thousand_rows,
                every_row_lies_on_the_grid_from_a_microsecond_to_a_second,
                what_a_timer_has_missed_is_where_the_triggers_step,
                a_row_is_late_if_it_comes_a_whole_period_after_it_was_due,
            ;
            channels:
                a_row_without_channels_is_a_stamp,
                elapsed_is_time_since_the_start,
                time_read_again_is_not_before_the_stamp,
                the_processor_is_one_of_this_machine,
                a_run_on_atomic_time_has_its_times_on_it,
                the_simulated_counter_counts_its_reads,
                the_simulated_ramp_and_sine_are_what_they_say,
                the_simulated_noise_is_the_same_each_time,
                an_output_is_written_before_the_channel_after_it_is_read,
                a_channel_that_sleeps_has_its_value_in_its_own_row,
                a_value_that_arrives_later_is_in_its_own_row,
                a_value_that_is_fetched_before_the_next_row_is_in_its_own_row,
                channels_of_all_classes_make_whole_rows,
                a_run_that_is_stopped_with_a_row_unfinished_has_counted_its_trigger,
                a_row_that_takes_longer_than_its_period_makes_others_missed,
            ;
            rules:
                a_rule_writes_its_output_in_the_rows_that_meet_it,
                a_variable_is_the_next_position_that_is_waited_for,
                rules_are_also_met_by_rows_that_are_left_out,
                an_output_of_a_rule_stands_last_and_has_its_rule,
            ;
            tunables:
                a_new_value_is_in_each_row_that_begins_after_it,
                rules_go_on_from_a_value_that_was_set,
                a_value_is_kept_until_the_program_runs,
                what_cannot_be_set_is_refused_and_changes_nothing,
                values_that_are_set_while_rows_are_made_are_seen_once_and_in_their_order,
            ;
        }
    };
}

engine!(kernel: Kernel);
engine!(user: User);
