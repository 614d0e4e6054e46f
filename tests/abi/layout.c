/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The layout of all structures of the contract, frozen: a change that moves a
 * field does not compile here. Checked for C and C++, for 64-bit and for 32-bit
 * callers:
 *
 *	cc -fsyntax-only -Iinclude/uapi -m32 tests/abi/layout.c
 *	c++ -x c++ -fsyntax-only -Iinclude/uapi -m32 tests/abi/layout.c
 */
#include "strobe.h"
#include "strobe_board.h"
#include "strobe_rpmsg.h"
#include "../../include/compat/linux/rpmsg.h"

#ifdef __cplusplus
#define _Static_assert static_assert
#endif
#define SIZE(type, size) \
	_Static_assert(sizeof(struct type) == (size), "size of " #type)
#define AT(type, field, offset) \
	_Static_assert(__builtin_offsetof(struct type, field) == (offset), \
		       #type "." #field)

SIZE(strobe_ring_header, 256);
AT(strobe_ring_header, magic, 0x00);
AT(strobe_ring_header, major, 0x08);
AT(strobe_ring_header, minor, 0x0a);
AT(strobe_ring_header, header_size, 0x0c);
AT(strobe_ring_header, row_stride, 0x10);
AT(strobe_ring_header, channels, 0x14);
AT(strobe_ring_header, capacity, 0x18);
AT(strobe_ring_header, limit, 0x20);
AT(strobe_ring_header, data_offset, 0x28);
AT(strobe_ring_header, clock, 0x30);
AT(strobe_ring_header, incompat, 0x34);
AT(strobe_ring_header, period_ns, 0x38);
AT(strobe_ring_header, run, 0x40);
AT(strobe_ring_header, engine, 0x44);
AT(strobe_ring_header, outputs, 0x48);
AT(strobe_ring_header, row_size, 0x4c);
AT(strobe_ring_header, reserved0, 0x50);
AT(strobe_ring_header, start_time, 0x58);
AT(strobe_ring_header, start_realtime, 0x60);
AT(strobe_ring_header, start_tai, 0x68);
AT(strobe_ring_header, first_due, 0x70);
AT(strobe_ring_header, reserved1, 0x78);
AT(strobe_ring_header, head, 0x80);
AT(strobe_ring_header, triggers, 0x88);
AT(strobe_ring_header, state, 0x90);
AT(strobe_ring_header, error, 0x94);
AT(strobe_ring_header, wake, 0x98);
AT(strobe_ring_header, reserved2, 0x9c);
AT(strobe_ring_header, missed, 0xa0);
AT(strobe_ring_header, errors, 0xe0);
AT(strobe_ring_header, end_time, 0xe8);
AT(strobe_ring_header, skipped, 0xf0);
AT(strobe_ring_header, reserved3, 0xf8);

SIZE(strobe_row, 32);
AT(strobe_row, row, 0x00);
AT(strobe_row, trigger, 0x08);
AT(strobe_row, time, 0x10);
AT(strobe_row, status, 0x18);
AT(strobe_row, value, 0x20);

SIZE(strobe_features, 40);
AT(strobe_features, size, 0x00);
AT(strobe_features, flags, 0x04);
AT(strobe_features, major, 0x08);
AT(strobe_features, minor, 0x0a);
AT(strobe_features, create_flags, 0x0c);
AT(strobe_features, reader_flags, 0x10);
AT(strobe_features, incompat, 0x14);
AT(strobe_features, causes, 0x18);
AT(strobe_features, steps_max, 0x1c);
AT(strobe_features, features, 0x20);

SIZE(strobe_value, 48);
AT(strobe_value, type, 0x00);
AT(strobe_value, cost_class, 0x04);
AT(strobe_value, unit, 0x08);
AT(strobe_value, scale, 0x18);
AT(strobe_value, offset, 0x20);
AT(strobe_value, bits, 0x28);
AT(strobe_value, cost_ns, 0x2c);

SIZE(strobe_run_info, 96);
AT(strobe_run_info, state, 0x00);
AT(strobe_run_info, error, 0x04);
AT(strobe_run_info, channels, 0x08);
AT(strobe_run_info, readers, 0x0c);
AT(strobe_run_info, uid, 0x10);
AT(strobe_run_info, pid, 0x14);
AT(strobe_run_info, capacity, 0x18);
AT(strobe_run_info, limit, 0x20);
AT(strobe_run_info, head, 0x28);
AT(strobe_run_info, triggers, 0x30);
AT(strobe_run_info, period_ns, 0x38);
AT(strobe_run_info, elapsed_ns, 0x40);
AT(strobe_run_info, skipped, 0x48);
AT(strobe_run_info, errors, 0x50);
AT(strobe_run_info, outputs, 0x58);
AT(strobe_run_info, reserved, 0x5c);

SIZE(strobe_entry, 288);
AT(strobe_entry, kind, 0x00);
AT(strobe_entry, id, 0x04);
AT(strobe_entry, parent, 0x08);
AT(strobe_entry, flags, 0x0c);
AT(strobe_entry, name, 0x10);
AT(strobe_entry, text, 0x50);
AT(strobe_entry, value, 0xa0);
AT(strobe_entry, run, 0xa0);
AT(strobe_entry, reserved, 0xa0);

SIZE(strobe_list, 40);
AT(strobe_list, size, 0x00);
AT(strobe_list, flags, 0x04);
AT(strobe_list, run, 0x08);
AT(strobe_list, entry_size, 0x0c);
AT(strobe_list, buffer, 0x10);
AT(strobe_list, room, 0x18);
AT(strobe_list, count, 0x1c);
AT(strobe_list, generation, 0x20);

SIZE(strobe_step, 80);
AT(strobe_step, op, 0x00);
AT(strobe_step, flags, 0x04);
AT(strobe_step, value, 0x08);
AT(strobe_step, name, 0x10);

SIZE(strobe_created, 56);
AT(strobe_created, fd, 0x00);
AT(strobe_created, run, 0x04);
AT(strobe_created, fault_step, 0x08);
AT(strobe_created, why, 0x0c);
AT(strobe_created, channels, 0x10);
AT(strobe_created, outputs, 0x14);
AT(strobe_created, row_size, 0x18);
AT(strobe_created, row_stride, 0x1c);
AT(strobe_created, capacity, 0x20);
AT(strobe_created, ring_bytes, 0x28);
AT(strobe_created, cost_ns, 0x30);

SIZE(strobe_create, 144);
AT(strobe_create, size, 0x00);
AT(strobe_create, flags, 0x04);
AT(strobe_create, event, 0x08);
AT(strobe_create, period_ns, 0x48);
AT(strobe_create, capacity, 0x50);
AT(strobe_create, limit, 0x58);
AT(strobe_create, steps, 0x60);
AT(strobe_create, step_count, 0x68);
AT(strobe_create, step_size, 0x6c);
AT(strobe_create, clock, 0x70);
AT(strobe_create, priority, 0x74);
AT(strobe_create, answer, 0x78);
AT(strobe_create, answer_size, 0x80);
AT(strobe_create, reserved, 0x84);
AT(strobe_create, program, 0x88);

SIZE(strobe_program, 48);
AT(strobe_program, size, 0x00);
AT(strobe_program, flags, 0x04);
AT(strobe_program, insns, 0x08);
AT(strobe_program, insn_count, 0x10);
AT(strobe_program, state, 0x14);
AT(strobe_program, derived, 0x18);
AT(strobe_program, derived_count, 0x20);
AT(strobe_program, derived_size, 0x24);
AT(strobe_program, tunables, 0x28);
AT(strobe_program, reserved, 0x2c);

SIZE(strobe_derived, 112);
AT(strobe_derived, name, 0x00);
AT(strobe_derived, value, 0x40);

SIZE(strobe_control, 56);
AT(strobe_control, size, 0x00);
AT(strobe_control, op, 0x04);
AT(strobe_control, flags, 0x08);
AT(strobe_control, count, 0x0c);
AT(strobe_control, state, 0x10);
AT(strobe_control, error, 0x14);
AT(strobe_control, head, 0x18);
AT(strobe_control, triggers, 0x20);
AT(strobe_control, skipped, 0x28);
AT(strobe_control, cause, 0x30);
AT(strobe_control, reserved, 0x34);

SIZE(strobe_reader, 48);
AT(strobe_reader, size, 0x00);
AT(strobe_reader, flags, 0x04);
AT(strobe_reader, run, 0x08);
AT(strobe_reader, reserved, 0x0c);
AT(strobe_reader, first, 0x10);
AT(strobe_reader, fd, 0x18);
AT(strobe_reader, channels, 0x1c);
AT(strobe_reader, outputs, 0x20);
AT(strobe_reader, row_size, 0x24);
AT(strobe_reader, ring_bytes, 0x28);

SIZE(strobe_arm, 16);
AT(strobe_arm, size, 0x00);
AT(strobe_arm, flags, 0x04);
AT(strobe_arm, rows, 0x08);

SIZE(strobe_tune, 24);
AT(strobe_tune, size, 0x00);
AT(strobe_tune, flags, 0x04);
AT(strobe_tune, run, 0x08);
AT(strobe_tune, tunable, 0x0c);
AT(strobe_tune, value, 0x10);

SIZE(strobe_board_header, 168);
AT(strobe_board_header, magic, 0x00);
AT(strobe_board_header, version, 0x08);
AT(strobe_board_header, size, 0x0c);
AT(strobe_board_header, crc32, 0x10);
AT(strobe_board_header, irq, 0x14);
AT(strobe_board_header, vendor, 0x18);
AT(strobe_board_header, device, 0x1a);
AT(strobe_board_header, subvendor, 0x1c);
AT(strobe_board_header, subdevice, 0x1e);
AT(strobe_board_header, bars, 0x20);
AT(strobe_board_header, channels, 0x22);
AT(strobe_board_header, outputs, 0x24);
AT(strobe_board_header, events, 0x26);
AT(strobe_board_header, writes, 0x28);
AT(strobe_board_header, vectors, 0x2a);
AT(strobe_board_header, setup_first, 0x2c);
AT(strobe_board_header, setup_count, 0x2e);
AT(strobe_board_header, platform, 0x30);
AT(strobe_board_header, reserved, 0x34);
AT(strobe_board_header, name, 0x38);
AT(strobe_board_header, text, 0x58);

SIZE(strobe_board_bar, 16);
AT(strobe_board_bar, number, 0x00);
AT(strobe_board_bar, reserved, 0x04);
AT(strobe_board_bar, size, 0x08);

SIZE(strobe_board_register, 16);
AT(strobe_board_register, bar, 0x00);
AT(strobe_board_register, width, 0x01);
AT(strobe_board_register, shift, 0x02);
AT(strobe_board_register, bits, 0x03);
AT(strobe_board_register, flags, 0x04);
AT(strobe_board_register, reserved, 0x08);
AT(strobe_board_register, offset, 0x0c);

SIZE(strobe_board_value, 160);
AT(strobe_board_value, name, 0x00);
AT(strobe_board_value, unit, 0x20);
AT(strobe_board_value, text, 0x30);
AT(strobe_board_value, scale, 0x80);
AT(strobe_board_value, offset, 0x88);
AT(strobe_board_value, reg, 0x90);

SIZE(strobe_board_event, 160);
AT(strobe_board_event, name, 0x00);
AT(strobe_board_event, text, 0x20);
AT(strobe_board_event, flags, 0x70);
AT(strobe_board_event, vector, 0x74);
AT(strobe_board_event, missed, 0x76);
AT(strobe_board_event, pending, 0x78);
AT(strobe_board_event, mask, 0x88);
AT(strobe_board_event, silence_first, 0x90);
AT(strobe_board_event, silence_count, 0x92);
AT(strobe_board_event, enable_first, 0x94);
AT(strobe_board_event, enable_count, 0x96);
AT(strobe_board_event, disable_first, 0x98);
AT(strobe_board_event, disable_count, 0x9a);
AT(strobe_board_event, reserved2, 0x9c);

SIZE(strobe_board_write, 32);
AT(strobe_board_write, reg, 0x00);
AT(strobe_board_write, flags, 0x10);
AT(strobe_board_write, reserved, 0x14);
AT(strobe_board_write, value, 0x18);

/* As the series that proposes it has it. */
SIZE(strobe_rpmsg_create, 64);
AT(strobe_rpmsg_create, size, 0x00);
AT(strobe_rpmsg_create, flags, 0x04);
AT(strobe_rpmsg_create, name, 0x08);
AT(strobe_rpmsg_create, src, 0x28);
AT(strobe_rpmsg_create, dst, 0x2c);
AT(strobe_rpmsg_create, reserved, 0x30);
AT(strobe_rpmsg_create, fd, 0x34);
AT(strobe_rpmsg_create, address, 0x38);
AT(strobe_rpmsg_create, mtu, 0x3c);

SIZE(strobe_rpmsg_stats, 48);
AT(strobe_rpmsg_stats, size, 0x00);
AT(strobe_rpmsg_stats, state, 0x04);
AT(strobe_rpmsg_stats, address, 0x08);
AT(strobe_rpmsg_stats, dst, 0x0c);
AT(strobe_rpmsg_stats, mtu, 0x10);
AT(strobe_rpmsg_stats, queued, 0x14);
AT(strobe_rpmsg_stats, received, 0x18);
AT(strobe_rpmsg_stats, dropped, 0x20);
AT(strobe_rpmsg_stats, sent, 0x28);

/* The series' call, of include/compat. */
SIZE(rpmsg_endpoint_fd_info, 48);
AT(rpmsg_endpoint_fd_info, name, 0x00);
AT(rpmsg_endpoint_fd_info, src, 0x20);
AT(rpmsg_endpoint_fd_info, dst, 0x24);
AT(rpmsg_endpoint_fd_info, flags, 0x28);
AT(rpmsg_endpoint_fd_info, fd, 0x2c);
_Static_assert(RPMSG_CREATE_EPT_FD_IOCTL == 0xC030B507, "RPMSG_CREATE_EPT_FD_IOCTL");

/* The size of an argument is not in the number of a call. */
_Static_assert(STROBE_LIST == 0xDA00, "STROBE_LIST");
_Static_assert(STROBE_CREATE == 0xDA01, "STROBE_CREATE");
_Static_assert(STROBE_CONTROL == 0xDA02, "STROBE_CONTROL");
_Static_assert(STROBE_READER == 0xDA03, "STROBE_READER");
_Static_assert(STROBE_ARM == 0xDA04, "STROBE_ARM");
_Static_assert(STROBE_RPMSG_CREATE == 0xDA20, "STROBE_RPMSG_CREATE");
_Static_assert(STROBE_RPMSG_STATS == 0xDA21, "STROBE_RPMSG_STATS");
_Static_assert(STROBE_FEATURES == 0xDA05, "STROBE_FEATURES");

/* The magics are text in memory, on a little-endian machine. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
_Static_assert((STROBE_RING_MAGIC & 0xff) == 'S' &&
	       (STROBE_RING_MAGIC >> 40 & 0xff) == 'E', "ring magic");
_Static_assert((STROBE_BOARD_MAGIC & 0xff) == 'S' &&
	       (STROBE_BOARD_MAGIC >> 56) == 'D', "board magic");
#endif
