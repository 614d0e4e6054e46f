// SPDX-License-Identifier: GPL-2.0-only
/* STROBE_TUNE: a variable of a run's program gets a new value. */
#include <linux/bits.h>
#include <linux/err.h>

#include "computer/computer.h"
#include "core/internal.h"
#include "uabi.h"

/* Whether this is a word of such a column. */
static bool fits(const struct strobe_value *column, u64 word)
{
	u32 unused = 64 - column->bits;

	if (column->type == STROBE_TYPE_S64)
		return (u64)((s64)(word << unused) >> unused) == word;
	return word << unused >> unused == word;
}

static int tune(struct strobe_run *run, u32 tunable, u64 value)
{
	if (!run->computer || tunable >= run->computer->tunables)
		return -EINVAL;
	if (!fits(&run->steps[run->step_count + tunable].value, value))
		return -ERANGE;
	if (READ_ONCE(run->state) >= STROBE_DONE)
		return -ESHUTDOWN;
	strobe_computer_tune(run->computer, tunable, value);
	return 0;
}

/**
 * strobe_ioctl_tune() - STROBE_TUNE.
 * @owned: the run, on an owner fd; NULL on the control device.
 * @arg: struct strobe_tune.
 *
 * Context: process.
 * Return: 0 or an errno.
 */
long strobe_ioctl_tune(struct strobe_run *owned, void __user *arg)
{
	struct strobe_tune t;
	struct strobe_run *run;
	int ret;

	ret = strobe_copy_struct(&t, sizeof(t), arg, sizeof(t));
	if (ret)
		return ret;
	if (t.flags || (owned && t.run))
		return -EINVAL;
	if (owned)
		return tune(owned, t.tunable, t.value);
	run = strobe_run_by_id(t.run, false);
	if (IS_ERR(run))
		return PTR_ERR(run);
	ret = tune(run, t.tunable, t.value);
	strobe_run_put(run);
	return ret;
}
