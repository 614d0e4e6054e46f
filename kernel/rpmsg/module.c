// SPDX-License-Identifier: GPL-2.0-only
/*
 * strobe_rpmsg.ko: rpmsg endpoints as file descriptors. This file: the module,
 * and the drivers of channels that it has.
 */
#include <linux/module.h>

#include "rpmsg.h"

/* All that this module binds, in order. */
static struct rpmsg_driver *const drivers[] = {
	&strobe_rpmsg_control_driver, &strobe_rpmsg_raw_driver,
};

static void unregister_drivers(size_t count)
{
	while (count--)
		unregister_rpmsg_driver(drivers[count]);
}

static int register_drivers(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++) {
		int ret = register_rpmsg_driver(drivers[i]);

		if (ret) {
			unregister_drivers(i);
			return ret;
		}
	}
	return 0;
}

static int __init strobe_rpmsg_init(void)
{
	int ret;

	ret = strobe_rpmsg_endpoint_setup();
	if (ret)
		return ret;
	ret = strobe_rpmsg_nodes_setup();
	if (ret)
		goto endpoint;
	strobe_rpmsg_raw_setup();
	ret = register_drivers();
	if (!ret)
		return 0;
	strobe_rpmsg_nodes_cleanup();
endpoint:
	strobe_rpmsg_endpoint_cleanup();
	return ret;
}

static void __exit strobe_rpmsg_exit(void)
{
	unregister_drivers(ARRAY_SIZE(drivers));
	strobe_rpmsg_nodes_cleanup();
	strobe_rpmsg_endpoint_cleanup();
}

module_init(strobe_rpmsg_init);
module_exit(strobe_rpmsg_exit);
MODULE_DESCRIPTION("rpmsg endpoints as file descriptors");
MODULE_LICENSE("GPL");
