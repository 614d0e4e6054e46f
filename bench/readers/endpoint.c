// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Makes and ends an rpmsg endpoint so often, each call in a span of its own:
 *
 *	endpoint file COUNT	by strobe_rpmsg: created, destroyed, closed
 *	endpoint node COUNT	by the stock driver: and opened, before it is destroyed
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/rpmsg.h>

#include "mark.h"

#define WARM_UP	200	/* in which the kernel's caches fill */

/* Spans 2 to 5. */
#define CREATE_BEGIN()	MARK(0x14)
#define CREATE_END()	MARK(0x15)
#define OPEN_BEGIN()	MARK(0x16)
#define OPEN_END()	MARK(0x17)
#define DESTROY_BEGIN()	MARK(0x18)
#define DESTROY_END()	MARK(0x19)
#define CLOSE_BEGIN()	MARK(0x1a)
#define CLOSE_END()	MARK(0x1b)

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void end(int endpoint)
{
	DESTROY_BEGIN();
	if (ioctl(endpoint, RPMSG_DESTROY_EPT_IOCTL, 0))
		fail("RPMSG_DESTROY_EPT_IOCTL");
	DESTROY_END();
	CLOSE_BEGIN();
	close(endpoint);
	CLOSE_END();
}

static void as_file(int control)
{
	struct rpmsg_endpoint_fd_info info = {
		.name = "bench", .src = RPMSG_ADDR_ANY, .dst = RPMSG_ADDR_ANY,
		.flags = O_RDWR | O_CLOEXEC,
	};

	CREATE_BEGIN();
	if (ioctl(control, RPMSG_CREATE_EPT_FD_IOCTL, &info))
		fail("RPMSG_CREATE_EPT_FD_IOCTL");
	CREATE_END();
	end(info.fd);
}

static void as_node(int control)
{
	struct rpmsg_endpoint_info info = {
		.name = "bench", .src = RPMSG_ADDR_ANY, .dst = RPMSG_ADDR_ANY,
	};
	int endpoint;

	CREATE_BEGIN();
	if (ioctl(control, RPMSG_CREATE_EPT_IOCTL, &info))
		fail("RPMSG_CREATE_EPT_IOCTL");
	CREATE_END();
	OPEN_BEGIN();
	endpoint = open("/dev/rpmsg0", O_RDWR);
	OPEN_END();
	if (endpoint < 0)
		fail("/dev/rpmsg0");
	end(endpoint);
}

int main(int argc, char **argv)
{
	int is_node = argc == 3 && !strcmp(argv[1], "node");
	int control = open(is_node ? "/dev/rpmsg_ctrl0" : "/dev/strobe_rpmsg0", O_RDWR);
	long count = argc == 3 ? atol(argv[2]) : 0;

	if (control < 0)
		fail("a control node");
	for (long i = -WARM_UP; i < count; i++) {
		if (!i)
			MARK_WINDOW_BEGIN();
		if (is_node)
			as_node(control);
		else
			as_file(control);
	}
	MARK_WINDOW_END();
	printf("endpoints %ld\n", count);
	return 0;
}
