// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Does for each device node that appears what udev does at the least: hears of
 * it from the kernel, reads its properties and attributes, and gives the node its
 * owner and mode. udev does more: it matches rules, keeps a database, and tells
 * its own listeners.
 *
 *	uevents		says "ready" once it listens; ends when it is killed
 */
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void read_all(const char *device, const char *attribute)
{
	char path[512], text[4096];
	int fd;

	snprintf(path, sizeof(path), "/sys%s/%s", device, attribute);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
}

static void serve(const char *device, const char *name)
{
	char node[256], link[256], path[512];

	read_all(device, "uevent");
	read_all(device, "name");
	snprintf(path, sizeof(path), "/sys%s/subsystem", device);
	if (readlink(path, link, sizeof(link)) < 0)
		return;
	snprintf(node, sizeof(node), "/dev/%s", name);
	/* Either may be gone again: then there is nobody to be served. */
	if (!chown(node, 0, 0))
		chmod(node, 0660);
}

int main(void)
{
	struct sockaddr_nl all = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	int events = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
	int room = 8 << 20;
	char message[8192];
	ssize_t length;

	setsockopt(events, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	if (bind(events, (struct sockaddr *)&all, sizeof(all))) {
		perror("uevents");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	for (;;) {
		const char *device = NULL, *name = NULL;

		length = recv(events, message, sizeof(message) - 1, 0);
		if (length < 0)
			continue;
		message[length] = '\0';
		if (strncmp(message, "add@", 4))
			continue;
		for (char *word = message; word < message + length; word += strlen(word) + 1) {
			if (!strncmp(word, "DEVPATH=", 8))
				device = word + 8;
			else if (!strncmp(word, "DEVNAME=", 8))
				name = word + 8;
		}
		if (device && name)
			serve(device, name);
	}
}
