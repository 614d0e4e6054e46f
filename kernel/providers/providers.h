/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The devices that are part of strobe.ko: "clock" and "cpu" (builtin.c), and the
 * simulator "sim" (sim.c), whose events are in sim_pulse.c, and whose
 * channels that are not ready at once in sim_slow.c.
 */
#ifndef _STROBE_PROVIDERS_H
#define _STROBE_PROVIDERS_H

#include "provider.h"

/* builtin.c */
int strobe_builtin_init(void);
void strobe_builtin_exit(void);

/* sim.c */
bool strobe_sim_is_hit(u64 n);
int strobe_sim_lock(struct strobe_channel *channel);
void strobe_sim_vanish(void);
int strobe_sim_init(void);
void strobe_sim_exit(void);

/* sim_pulse.c */
#define STROBE_SIM_EVENTS	2
extern struct strobe_event strobe_sim_events[STROBE_SIM_EVENTS];
void strobe_sim_pulse_init(void);

/* sim_slow.c */
extern const struct strobe_channel_ops strobe_sim_slow_ops;
extern const struct strobe_channel_ops strobe_sim_async_ops;
extern const struct strobe_channel_ops strobe_sim_next_ops;
void strobe_sim_slow_init(void);
void strobe_sim_slow_reset(void);

#endif /* _STROBE_PROVIDERS_H */
