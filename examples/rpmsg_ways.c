// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Compares the two ways to an rpmsg endpoint: as a node, which is created,
 * opened, destroyed and closed, and as a file, which is created, destroyed and
 * closed.
 *
 *	gcc -O2 -Iinclude/uapi -o rpmsg_ways examples/rpmsg_ways.c
 *	rpmsg_ways [LOOPS [CONTROL NODE]]
 *
 * CONTROL is /dev/rpmsg_ctrl0 if not said, and NODE, that the first creation
 * makes, /dev/rpmsg0: of the stock driver, or of strobe_rpmsg with stock_names=1.
 * strobe_rpmsg alone calls them /dev/strobe_rpmsg0 and /dev/strobe_rpmsg_ept0. The
 * stock driver knows nodes only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <linux/rpmsg.h>
#include <strobe_rpmsg.h>

static void fail(const char *what)
{
	fprintf(stderr, "rpmsg_ways: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static void as_node(int control, const char *node)
{
	struct rpmsg_endpoint_info info = {
		.name = "epx", .src = RPMSG_ADDR_ANY, .dst = RPMSG_ADDR_ANY,
	};
	int endpoint;

	if (ioctl(control, RPMSG_CREATE_EPT_IOCTL, &info))
		fail("RPMSG_CREATE_EPT_IOCTL");
	/* With udev it is there, or ours, a little later. */
	while ((endpoint = open(node, O_RDWR)) < 0)
		if (errno != ENOENT && errno != EACCES)
			fail(node);
	if (ioctl(endpoint, RPMSG_DESTROY_EPT_IOCTL, 0))
		fail("RPMSG_DESTROY_EPT_IOCTL on a node");
	close(endpoint);
}

static void as_file(int control)
{
	struct strobe_rpmsg_create info = {
		.size = sizeof(info), .name = "epx",
		.src = STROBE_RPMSG_ADDR_ANY, .dst = STROBE_RPMSG_ADDR_ANY,
		.flags = STROBE_RPMSG_READ | STROBE_RPMSG_WRITE | STROBE_RPMSG_NONBLOCK,
	};

	if (ioctl(control, STROBE_RPMSG_CREATE, &info))
		fail("STROBE_RPMSG_CREATE");
	if (ioctl(info.fd, RPMSG_DESTROY_EPT_IOCTL, 0))
		fail("RPMSG_DESTROY_EPT_IOCTL on a file");
	close(info.fd);
}

int main(int argc, char **argv)
{
	const char *path = argc > 3 ? argv[2] : "/dev/rpmsg_ctrl0";
	const char *node = argc > 3 ? argv[3] : "/dev/rpmsg0";
	long loops = argc > 1 ? atol(argv[1]) : 1000;
	int control = open(path, O_RDWR);
	double begin, node_us, file_us;

	if (control < 0)
		fail(path);
	if (loops < 1) {
		fprintf(stderr, "rpmsg_ways: LOOPS is 1 or more\n");
		return 1;
	}
	begin = now_us();
	for (long i = 0; i < loops; i++)
		as_node(control, node);
	node_us = (now_us() - begin) / loops;
	begin = now_us();
	for (long i = 0; i < loops; i++)
		as_file(control);
	file_us = (now_us() - begin) / loops;
	printf("%ld loops, us each: as a node: %.2f, as a file: %.2f, ratio %.1f\n",
	       loops, node_us, file_us, node_us / file_us);
	return 0;
}
