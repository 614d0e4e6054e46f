// SPDX-License-Identifier: GPL-2.0-only
/*
 * Power, clocks and resets of platform devices.
 *
 * A register of a part that has no power, no clock, or is held in reset, reads
 * as nothing, or stops the machine. So all three are set before the first
 * access, and stay until the driver has left the device: rows are read in
 * interrupts, which could switch nothing on.
 */
#include <linux/clk.h>
#include <linux/device.h>
#include <linux/of.h>
#include <linux/pm_runtime.h>
#include <linux/reset.h>

#include "board/board.h"

struct board_clocks {
	struct clk_bulk_data	*clocks;
	int			count;
};

static void board_power_off(void *data)
{
	pm_runtime_put_sync(data);
}

static void board_clocks_off(void *data)
{
	struct board_clocks *all = data;

	clk_bulk_disable_unprepare(all->count, all->clocks);
	clk_bulk_put_all(all->count, all->clocks);
}

static void board_reset(void *data)
{
	reset_control_assert(data);
}

/* All clocks that a device tree gives it; else the one of its name, if there is one. */
static int board_clocks_on(struct device *dev)
{
	struct board_clocks *all;
	int ret;

	if (!dev->of_node)
		return PTR_ERR_OR_ZERO(devm_clk_get_optional_enabled(dev, NULL));
	all = devm_kzalloc(dev, sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	ret = clk_bulk_get_all(dev, &all->clocks);
	if (ret <= 0)
		return ret;
	all->count = ret;
	ret = clk_bulk_prepare_enable(all->count, all->clocks);
	if (ret) {
		clk_bulk_put_all(all->count, all->clocks);
		return ret;
	}
	return devm_add_action_or_reset(dev, board_clocks_off, all);
}

static int board_reset_end(struct device *dev)
{
	struct reset_control *resets = devm_reset_control_array_get_optional_exclusive(dev);
	int ret;

	if (IS_ERR(resets))
		return PTR_ERR(resets);
	ret = reset_control_deassert(resets);
	if (ret)
		return ret;
	return devm_add_action_or_reset(dev, board_reset, resets);
}

/**
 * board_power_on() - the device has power and its clocks, and is in no reset.
 * @dev: the device; until its driver leaves it.
 *
 * Context: process, in probe.
 * Return: 0 or a negative errno; the log says why.
 */
int board_power_on(struct device *dev)
{
	int ret;

	ret = devm_pm_runtime_enable(dev) ?: pm_runtime_resume_and_get(dev);
	if (!ret)
		ret = devm_add_action_or_reset(dev, board_power_off, dev);
	if (ret)
		return dev_err_probe(dev, ret, "its power cannot be switched on\n");
	ret = board_clocks_on(dev);
	if (ret)
		return dev_err_probe(dev, ret, "its clocks cannot be switched on\n");
	ret = board_reset_end(dev);
	if (ret)
		return dev_err_probe(dev, ret, "its reset cannot be ended\n");
	return 0;
}
