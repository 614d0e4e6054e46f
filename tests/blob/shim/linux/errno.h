/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The C library includes this one, too, and wants the real one. */
#include_next <linux/errno.h>
