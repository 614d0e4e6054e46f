// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program for the series' call, as a 32-bit one: it knows include/compat alone,
 * and that call's structure keeps its address from one round to the next.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/rpmsg.h>

_Static_assert(sizeof(void *) == 4, "build with -m32");
_Static_assert(sizeof(struct rpmsg_endpoint_fd_info) == 48, "endpoint as a file");
#ifdef STROBE_RPMSG_CREATE
#error strobe_rpmsg.h is not to be needed
#endif

int main(int argc, char **argv)
{
	struct rpmsg_endpoint_fd_info info = {
		.name = "series", .src = RPMSG_ADDR_ANY, .dst = RPMSG_ADDR_ANY,
		.flags = O_RDWR | O_CLOEXEC | O_NONBLOCK, .fd = -1,
	};
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	int control = open("/dev/rpmsg_ctrl0", O_RDWR);

	for (int i = 0; i < rounds; i++) {
		if (ioctl(control, RPMSG_CREATE_EPT_FD_IOCTL, &info) ||
		    ioctl(info.fd, RPMSG_DESTROY_EPT_IOCTL, 0) || close(info.fd)) {
			fprintf(stderr, "rpmsg_series32: round %d: %s\n", i, strerror(errno));
			return 1;
		}
	}
	printf("as a file: %d\n", rounds);
	return 0;
}
