/* SPDX-License-Identifier: GPL-2.0-only */
/* What triggers: the timer of a run, software, events of devices. */
#ifndef _STROBE_EVENTS_H
#define _STROBE_EVENTS_H

#include "row/run.h"

/* timer.c */
void strobe_timer_init(struct strobe_run *run);
void strobe_timer_start(struct strobe_run *run);
void strobe_timer_resume(struct strobe_run *run);
void strobe_timer_stop(struct strobe_run *run);
void strobe_timer_slept(struct strobe_run *run);
void strobe_timer_go_on(struct strobe_run *run);

/* soft.c */
int strobe_soft_triggers(struct strobe_run *run, u32 count);

/* event.c */
int strobe_event_listen(struct strobe_run *run);
bool strobe_event_unlisten(struct strobe_run *run);

#endif /* _STROBE_EVENTS_H */
