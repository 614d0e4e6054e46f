/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libstrobe: on every event, read a set of channels from any devices into one row, and lose nothing silently.
 *
 * Errors. A call that can fail says so by its answer: NULL, or -1. strobe_error() then has the object, the reason and the
 * remedy in one line, for the thread that has called. What is NULL and must not be is such an error, too.
 *
 * Who owns what. What comes from a call with `_new`, `_open`, `_attach` or `_of_` in its name, and a block, belongs to the
 * program, which frees it once, by the call that ends with `_free`; NULL may be freed. Texts and words that a call answers
 * belong to what was asked, and are good until that is freed; texts of errors until the next call of the thread fails. A
 * text that a program gives is UTF-8, ends with a byte 0, and is not needed after the call.
 *
 * Threads. A catalogue, a run and a block may be used by all threads at the same time; rows and a UIO device by one at a
 * time. Nothing is used while it is freed, or after. A process that has forked uses nothing that was made before; it may
 * call exec.
 *
 * Signals. The library handles SIGBUS for memory of devices that go away, and passes on what is not its own.
 *
 * Versions. Programs that were compiled with this header go on with each library of the same soname. What may grow is
 * opaque, or begins with its size; calls and constants are only added.
 */

#ifndef LIBSTROBE_H
#define LIBSTROBE_H

#include <stddef.h>
#include <stdint.h>
/* What is opaque here has the calls with its name. */

// Replace files that exist. Without it they are left as they are, and the recording is refused.
#define STROBE_OVERWRITE 1

// Journals (`.arrows`) are safe against a power cut: rows made more than a second ago are on the disk.
#define STROBE_SYNC 2

// What can be listed.
enum strobe_listed {
        // Units of hardware, and the simulator.
        STROBE_DEVICES,
        // What a row can read.
        STROBE_CHANNELS,
        // What a row can write.
        STROBE_OUTPUTS,
        // What can make rows.
        STROBE_EVENTS,
        // Runs of all programs.
        STROBE_RUNS,
};

// What `strobe_rows_next` has found.
enum strobe_next {
        // It failed.
        STROBE_ERROR = -1,
        // Nothing came in time.
        STROBE_NOTHING = 0,
        // A block, which is to be freed.
        STROBE_BLOCK = 1,
        // All rows were given: the run has ended, or the recording.
        STROBE_END = 2,
};

// Where a run is.
enum strobe_run_state {
        // It waits for its start.
        STROBE_RUN_READY,
        // Triggers make rows.
        STROBE_RUN_RUNNING,
        // Triggers are not counted.
        STROBE_RUN_PAUSED,
        // It has made all its rows.
        STROBE_RUN_DONE,
        // It was stopped.
        STROBE_RUN_STOPPED,
        // It has failed, such as by a device that went away.
        STROBE_RUN_FAILED,
        // In another state, which a newer strobe has.
        STROBE_RUN_OTHER,
};

// Some rows of a run, and what is missing before and between them. It does not change: all threads may use it.
struct strobe_block;

// What both engines have, as it was when it was asked for.
struct strobe_catalogue;

// The rows of a run or of a recording, with a place of its own: two readers of one run do not disturb each other. One
// thread at a time may use it.
struct strobe_rows;

// A run. All threads may use it at the same time.
struct strobe_run;

// An open UIO device. One thread at a time may use it; its memory may be used by all.
struct strobe_uio;

// The account of a run. Set `size` to `sizeof(struct strobe_account)` before each call: a library that knows more, or
// less, than the program was compiled with fills what both know.
//
// triggers = rows + missed + skipped
struct strobe_account {
        // Bytes of this struct, set by the program.
        size_t size;
        // Rows made.
        uint64_t rows;
        // Triggers there were.
        uint64_t triggers;
        // Triggers that should have made a row, and did not.
        uint64_t missed;
        // Triggers that were left out on purpose: no loss.
        uint64_t skipped;
        // Rows that were overwritten before this reader, or this recording, read them.
        uint64_t lost;
        // Rows in which a channel or an output failed.
        uint64_t errors;
        // An `enum strobe_run_state`.
        uint32_t state;
        // Always 0.
        uint32_t reserved;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Frees it, and its words.
void strobe_block_free(struct strobe_block *block);

// How many rows it has. It may have none, and tell of a loss.
size_t strobe_block_rows(const struct strobe_block *block);

// The number of its first row; without rows, of the next one.
uint64_t strobe_block_first(const struct strobe_block *block);

// Rows that were overwritten before they were read, right before its first one.
uint64_t strobe_block_lost(const struct strobe_block *block);

// Triggers that should have made a row and did not, from the row before it to its last one.
uint64_t strobe_block_missed(const struct strobe_block *block);

// All its words, row after row, as `struct strobe_row` of strobe.h (the contract) has them; `strobe_block_width` words
// are a row. They belong to the block.
const uint64_t *strobe_block_words(const struct strobe_block *block);

// How many words a row has.
size_t strobe_block_width(const struct strobe_block *block);

// The column of this name; -1 if there is none.
ptrdiff_t strobe_block_column(const struct strobe_block *block, const char *name);

// Writes when each row was made, ns on the clock of the run, `room` of them at most. Answers how many rows there are, or -1.
ptrdiff_t strobe_block_times(const struct strobe_block *block,
                             uint64_t *times,
                             size_t room);

// Writes the number of each row's trigger, as `strobe_block_times` does.
ptrdiff_t strobe_block_triggers(const struct strobe_block *block, uint64_t *triggers, size_t room);

// Writes the values of a column in their unit, NaN where the channel failed, as `strobe_block_times` does.
ptrdiff_t strobe_block_values(const struct strobe_block *block, size_t column, double *values, size_t room);

// Writes the words of a column as they were read, before scale and offset, as `strobe_block_times` does. That of a row in
// which the channel failed means nothing.
ptrdiff_t strobe_block_raw(const struct strobe_block *block,
                           size_t column,
                           uint64_t *words,
                           size_t room);

// Writes 1 for each row in which the column's channel failed, else 0, as `strobe_block_times` does.
ptrdiff_t strobe_block_failed(const struct strobe_block *block, size_t column, uint8_t *failed, size_t room);

// The last error of this thread in one line, `object: reason; remedy`; NULL if no call of it has failed. It is good
// until the next call of this thread fails.
const char *strobe_error(void);

// What the last error of this thread is about, such as `channel sim.sinus`.
const char *strobe_error_object(void);

// What is wrong with it.
const char *strobe_error_reason(void);

// What to do about it; NULL if nothing can be done.
const char *strobe_error_remedy(void);

// The version of the library, such as `0.1.0`.
const char *strobe_version(void);

// What is here: of the user engine, and of the kernel engine if it is loaded. NULL if it failed.
struct strobe_catalogue *strobe_catalogue_new(void);

// Frees it, and all texts of it.
void strobe_catalogue_free(struct strobe_catalogue *catalogue);

// Why the kernel engine is not available; NULL if it is.
const char *strobe_catalogue_no_kernel(const struct strobe_catalogue *catalogue);

// How many there are of a kind (`enum strobe_listed`). 0 of a kind that there is not.
size_t strobe_catalogue_count(const struct strobe_catalogue *catalogue, uint32_t kind);

// Its name, as a run takes it; behind the events `timer` and `hpet` a run wants a period, as in `timer:1kHz`. NULL if there
// is no such item.
const char *strobe_catalogue_name(const struct strobe_catalogue *catalogue,
                                  uint32_t kind,
                                  size_t index);

// What it is, for people.
const char *strobe_catalogue_description(const struct strobe_catalogue *catalogue, uint32_t kind, size_t index);

// The unit of its values; empty if it has none.
const char *strobe_catalogue_unit(const struct strobe_catalogue *catalogue, uint32_t kind, size_t index);

// `kernel` or `user`: the engine that has it.
const char *strobe_catalogue_engine(const struct strobe_catalogue *catalogue, uint32_t kind, size_t index);

// Records a run into `count` sinks, whose names end with `.arrows`, `.h5`, `.parquet` or `.csv` (`-`: CSV on standard
// output), and returns when the run has ended. A run that was made here is started by that; another thread may stop it.
// The account is optional (NULL).
//
// Answers 0 if all is there, 1 if something was missed, lost or failed (then the account says what), and -1 if nothing
// was recorded, or a sink could not be written to its end.
int strobe_run_record(const struct strobe_run *run,
                      const char *const *sinks,
                      size_t count,
                      uint32_t flags,
                      struct strobe_account *account);

// The rows of a run, from the oldest one in its ring on. They stay readable when the run is freed. NULL if it failed.
struct strobe_rows *strobe_rows_of_run(const struct strobe_run *run);

// The rows of a recording, `.arrows` or `.h5`. NULL if it failed.
struct strobe_rows *strobe_rows_of_file(const char *path);

// Frees it; blocks that it has given stay.
void strobe_rows_free(struct strobe_rows *rows);

// The next rows. If there are none yet, it waits for the first one so many milliseconds at most; -1: as long as it
// takes. Answers an `enum strobe_next`; `*block` is NULL unless that is STROBE_BLOCK. A block without rows tells of a loss.
int strobe_rows_next(struct strobe_rows *rows,
                     int timeout_ms,
                     struct strobe_block **block);

// A descriptor for poll, epoll and what is built on them. It becomes ready once it is armed and there is something to
// read. It belongs to the rows: it is not to be closed. -1 if it failed, as for a recording.
int strobe_rows_fd(const struct strobe_rows *rows);

// Makes the descriptor ready when there are so many more rows, or the run has ended. It may be ready early. Call this
// first, then `strobe_rows_next` with a timeout of 0 until it finds nothing, then wait for the descriptor; and again.
// 0, or -1 if it failed.
int strobe_rows_arm(const struct strobe_rows *rows, uint64_t more);

// The account of the run as far as it is known; `lost` are the rows that were lost here. Once all rows were given, rows
// that were read + lost = rows, if reading began with the first one. -1 if it failed, as of a recording before its end,
// or that was cut off: nobody knows then.
int strobe_rows_account(const struct strobe_rows *rows, struct strobe_account *account);

// Makes the run of a recipe's file, which waits for its start. It ends when it is freed. NULL if it failed.
struct strobe_run *strobe_run_of_recipe(const char *path);

// The same of a recipe's text, such as `"event = 'timer:1kHz'\nread = ['sim.sine']\nrows = 1000"`. Its keys are those
// of a recipe's file: docs/reference/command-line.md explains them. `sinks`, `last` and `sync` are not of the run:
// `strobe_run_record` takes sinks and flags.
struct strobe_run *strobe_run_of_text(const char *recipe);

// The same of words as `strobe record` takes them: an event, channels with commas between them, and outputs with their
// values (`"sim.latch=1,sim.level=3"`; NULL: none). It ends after so many rows; 0: when it is stopped.
struct strobe_run *strobe_run_new(const char *event, const char *read, const char *set, uint64_t rows);

// A run of another program, by its name: `user:3`, or `3`. It can be read, and does not notice that.
struct strobe_run *strobe_run_attach(const char *name);

// Frees it. A run that was made here ends; what is in its ring can be read by who reads it already.
void strobe_run_free(struct strobe_run *run);

// Triggers make rows from now on. 0, or -1 if it failed.
int strobe_run_start(const struct strobe_run *run);

// Ends the run; nothing if it has ended. 0, or -1 if it failed.
int strobe_run_stop(const struct strobe_run *run);

// Triggers are not counted from now on, until the run goes on. 0, or -1 if it failed.
int strobe_run_pause(const struct strobe_run *run);

// A paused run goes on. 0, or -1 if it failed.
int strobe_run_resume(const struct strobe_run *run);

// So many triggers of the event `soft`. 0, or -1 if it failed.
int strobe_run_trigger(const struct strobe_run *run, uint32_t count);

// Gives a tunable of the run's program a new value: a number in the unit of the column that shows it, such as `"1000"`,
// or one with a unit, such as `"2.5 mV"`. Also of another program's run, if this user may tune it. The column shows from
// which row on it was so. 0, or -1 if it failed.
int strobe_run_tune(const struct strobe_run *run,
                    const char *tunable,
                    const char *value);

// Its name among runs, such as `user:3`.
const char *strobe_run_name(const struct strobe_run *run);

// How many channels a row has.
size_t strobe_run_channels(const struct strobe_run *run);

// The name of a channel; one that a row has twice is called `name#2` the second time. NULL if there is no such channel.
const char *strobe_run_channel(const struct strobe_run *run, size_t index);

// The unit of a channel's values; empty if it has none.
const char *strobe_run_unit(const struct strobe_run *run, size_t index);

// The account of the run, now; `lost` is 0, for that is each reader's own. 0, or -1 if it failed.
int strobe_run_account(const struct strobe_run *run, struct strobe_account *account);

// Opens the device of this name: as its driver calls it, or `uioN`. NULL if it failed.
struct strobe_uio *strobe_uio_open(const char *name);

// Closes it; its memory is not mapped any more.
void strobe_uio_free(struct strobe_uio *uio);

// Its descriptor, which is ready to be read when an interrupt has come; read it by `strobe_uio_wait` with a timeout of 0.
// It belongs to the device. -1 if it failed.
int strobe_uio_fd(const struct strobe_uio *uio);

// Waits for an interrupt, so many milliseconds at most; -1: as long as it takes. `*count` is the kernel's count of the
// device's interrupts, `*missed` how many came before this one that no call has seen; both may be NULL. Answers 1, 0 if
// none came in time, or -1.
int strobe_uio_wait(struct strobe_uio *uio, int timeout_ms, uint32_t *count, uint32_t *missed);

// Lets it interrupt (1), or keeps it from that (0). Some drivers need it before the first interrupt, and after each.
// 0, or -1 if it failed, as of a driver that has no such thing.
int strobe_uio_enable(const struct strobe_uio *uio, int on);

// The memory of one of its maps, to be read and written, from where the device's memory begins; `*size` (may be NULL) is
// how many bytes there are. It is mapped until the device is freed. If the device goes away, it reads as all ones. NULL if
// it failed.
void *strobe_uio_map(struct strobe_uio *uio,
                     uint32_t map,
                     size_t *size);

// Reads a register of 1, 2, 4 or 8 bytes at an offset of a map, by one access. 0, or -1 if it failed.
int strobe_uio_read(struct strobe_uio *uio, uint32_t map, uint64_t offset, uint32_t bytes, uint64_t *value);

// Writes such a register. 0, or -1 if it failed.
int strobe_uio_write(struct strobe_uio *uio, uint32_t map, uint64_t offset, uint32_t bytes, uint64_t value);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LIBSTROBE_H */
