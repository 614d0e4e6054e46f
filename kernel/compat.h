/* SPDX-License-Identifier: GPL-2.0-only */
/* What newer kernels have and 6.12 has under other names. */
#ifndef _STROBE_COMPAT_H
#define _STROBE_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/version.h>

#if KERNEL_VERSION(6, 12, 0) > LINUX_VERSION_CODE
#error "strobe needs Linux 6.12 or newer, which Debian 12 has in its backports"
#endif

#if KERNEL_VERSION(6, 13, 0) > LINUX_VERSION_CODE
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}

static inline void hrtimer_setup_on_stack(struct hrtimer *timer,
					  enum hrtimer_restart (*function)(struct hrtimer *),
					  clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init_on_stack(timer, clock, mode);
	timer->function = function;
}
#endif

#endif /* _STROBE_COMPAT_H */
