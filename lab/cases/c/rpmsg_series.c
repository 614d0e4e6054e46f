// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The calls that the program makes which the series "rpmsg: char: Implement
 * eptdev based on anonymous inode" was introduced with, in its order and with
 * its arguments. As there, a structure is filled in once and used for all
 * rounds, a node is opened until that succeeds, what ends an endpoint gets a
 * pointer that it does not need, and who fails goes on.
 *
 *	rpmsg_series [ROUNDS [CONTROL NODE [WAY]]]
 *
 * WAY is how an endpoint is made a file after the nodes: "series" (default), by
 * the series' call; "strobe", by strobe_rpmsg's own; "none".
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

/* Seconds after which a node that does not come is none. */
#define PATIENCE 10

static struct rpmsg_endpoint_info node_info;
static struct rpmsg_endpoint_fd_info file_info;
static struct strobe_rpmsg_create own_info;
static int failures;

static void must(int done, const char *what)
{
	if (done >= 0)
		return;
	if (!failures++)
		fprintf(stderr, "rpmsg_series: %s: %s\n", what, strerror(errno));
}

static int open_until(const char *path)
{
	time_t end = time(NULL) + PATIENCE;
	int file;

	do {
		file = open(path, O_RDWR);
	} while (file < 0 && time(NULL) < end);
	must(file, path);
	return file;
}

static void end(int endpoint)
{
	must(ioctl(endpoint, RPMSG_DESTROY_EPT_IOCTL, &node_info), "RPMSG_DESTROY_EPT_IOCTL");
	close(endpoint);
}

static void by_node(int control, const char *node)
{
	must(ioctl(control, RPMSG_CREATE_EPT_IOCTL, &node_info), "RPMSG_CREATE_EPT_IOCTL");
	end(open_until(node));
}

static void by_series(int control)
{
	file_info.fd = -1;
	file_info.flags = O_RDWR | O_CLOEXEC | O_NONBLOCK;
	must(ioctl(control, RPMSG_CREATE_EPT_FD_IOCTL, &file_info), "RPMSG_CREATE_EPT_FD_IOCTL");
	end(file_info.fd);
}

static void by_strobe(int control)
{
	own_info.fd = -1;
	own_info.flags = STROBE_RPMSG_READ | STROBE_RPMSG_WRITE | STROBE_RPMSG_NONBLOCK;
	must(ioctl(control, STROBE_RPMSG_CREATE, &own_info), "STROBE_RPMSG_CREATE");
	end(own_info.fd);
}

static void fill_in(void)
{
	strcpy(node_info.name, "epx");
	node_info.src = RPMSG_ADDR_ANY;
	node_info.dst = RPMSG_ADDR_ANY;
	strcpy(file_info.name, "epx");
	file_info.src = RPMSG_ADDR_ANY;
	file_info.dst = RPMSG_ADDR_ANY;
	own_info.size = sizeof(own_info);
	strcpy(own_info.name, "epx");
	own_info.src = STROBE_RPMSG_ADDR_ANY;
	own_info.dst = STROBE_RPMSG_ADDR_ANY;
}

int main(int argc, char **argv)
{
	const char *path = argc > 3 ? argv[2] : "/dev/rpmsg_ctrl0";
	const char *node = argc > 3 ? argv[3] : "/dev/rpmsg0";
	const char *way = argc > 4 ? argv[4] : "series";
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	int control, files = 0;

	fill_in();
	control = open_until(path);
	for (int i = 0; i < rounds; i++)
		by_node(control, node);
	for (; files < rounds && strcmp(way, "none"); files++) {
		if (strcmp(way, "strobe"))
			by_series(control);
		else
			by_strobe(control);
	}
	close(control);
	printf("%d nodes, %d files, %d failures\n", rounds, files, failures);
	return failures != 0;
}
