// SPDX-License-Identifier: GPL-2.0-only
/* Defines the tracepoints of trace.h. */
#define CREATE_TRACE_POINTS
#include "row/trace.h"
