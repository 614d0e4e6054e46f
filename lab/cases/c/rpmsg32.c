// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * examples/rpmsg_ways.c as a 32-bit program on a 64-bit kernel: the structures
 * are the same.
 */
#include "../../../examples/rpmsg_ways.c"

_Static_assert(sizeof(void *) == 4, "build with -m32");
_Static_assert(sizeof(struct rpmsg_endpoint_info) == 40, "endpoint as a node");
_Static_assert(sizeof(struct strobe_rpmsg_create) == 64, "endpoint as a file");
_Static_assert(sizeof(struct strobe_rpmsg_stats) == 48, "statistics");
