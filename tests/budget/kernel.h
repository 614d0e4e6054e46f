/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* As much of the kernel as kernel/row/budget.c needs, for a program: one CPU, and a clock that the test sets. */
#ifndef _SHIM_KERNEL_H
#define _SHIM_KERNEL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef uint32_t u32;
typedef unsigned long long u64;
typedef long long s64;
typedef s64 ktime_t;

#define KERNEL_VERSION(a, b, c)	(((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE	KERNEL_VERSION(6, 13, 0)

#define NSEC_PER_USEC	1000L
#define NSEC_PER_MSEC	1000000L

#define KBUILD_MODNAME	"strobe"
#define module_param(name, type, mode)
#define MODULE_PARM_DESC(name, text)
#define pr_info(...)	((void)0)
#define pr_err(...)	((void)0)

#define unlikely(condition)	(condition)
#define READ_ONCE(place)	(*(volatile __typeof__(place) *)&(place))
#define WRITE_ONCE(place, value)	(*(volatile __typeof__(place) *)&(place) = (value))
#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))
#define offsetof(type, member)	__builtin_offsetof(type, member)
#define min(a, b)	((a) < (b) ? (a) : (b))
#define max(a, b)	((a) > (b) ? (a) : (b))

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c)
{
	return (unsigned __int128)a * b / c;
}

static inline u64 div64_u64(u64 a, u64 b)
{
	return a / b;
}

/* ---- the only CPU ---- */

#define DECLARE_PER_CPU(type, name)	extern type name
#define DEFINE_PER_CPU(type, name)	type name
#define this_cpu_ptr(pointer)		(pointer)
#define this_cpu_read(place)		(place)
#define __this_cpu_add(place, value)	((place) += (value))
#define preempt_disable()		((void)0)
#define preempt_enable()		((void)0)

/* ---- time ---- */

/* A tick of it is a nanosecond. Each look at it takes some. */
u64 get_cycles(void);

static inline ktime_t ktime_get(void)
{
	return get_cycles();
}

static inline s64 ktime_to_us(ktime_t time)
{
	return time / NSEC_PER_USEC;
}

enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };
enum hrtimer_mode { HRTIMER_MODE_REL_PINNED_HARD };

struct hrtimer {
	enum hrtimer_restart	(*function)(struct hrtimer *timer);
	u64			due;
};

/* There is one timer at a time: it fires into get_cycles(). */
void hrtimer_start(struct hrtimer *timer, u64 after, enum hrtimer_mode mode);
void hrtimer_cancel(struct hrtimer *timer);

static inline void hrtimer_setup_on_stack(struct hrtimer *timer,
					  enum hrtimer_restart (*function)(struct hrtimer *),
					  clockid_t clock, enum hrtimer_mode mode)
{
	(void)clock;
	(void)mode;
	timer->function = function;
}

static inline void hrtimer_forward_now(struct hrtimer *timer, u64 period)
{
	timer->due += period;
}

static inline void destroy_hrtimer_on_stack(struct hrtimer *timer)
{
	(void)timer;
}

#endif /* _SHIM_KERNEL_H */
