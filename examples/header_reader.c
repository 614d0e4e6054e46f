// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * header_reader [user:]RUN [ROWS]: a run of the kernel (user) engine, as CSV
 *
 * Uses nothing but include/uapi/strobe.h: maps the ring, follows the numbered
 * steps, and gives an account on stderr when the run has ended, or after ROWS.
 * Exit status: 0 the account holds, 1 it does not, 2 an error.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include "strobe.h"

typedef unsigned long long u64;
typedef unsigned int u32;

#define COPY_WORDS	8192U		/* of rows, copied at a time */
#define LINE_BYTES	(4U << 20)	/* of JSON, at most */
#define WAIT_NS		100000000ULL	/* for rows, at most */

static struct column {
	char name[STROBE_NAME_SIZE];
	u32 type;
	double scale, offset;
} column[STROBE_STEPS_MAX];
static unsigned int columns;
static int user, source = -1;		/* ring fd, or socket of the user engine */
static const struct strobe_ring_header *ring;	/* the mapping */
static struct strobe_ring_header fixed;	/* a copy, for what is constant in it */
static u64 prev_row = ~0ULL, prev_trigger = ~0ULL, prev_skipped, got, lost, failed, missed;
static int sound = 1;			/* no row has contradicted another */

#define LOAD(field)	__atomic_load_n(&ring->field, __ATOMIC_RELAXED)
#define FENCE()		__atomic_thread_fence(__ATOMIC_ACQUIRE)
#define DOUBLE(bits)	((union { u64 word; double value; }){ .word = (bits) }.value)

static void map(int fd, u64 bytes)
{
	u64 words;

	/* Shared, or the futex of the user engine would be one of our own. */
	ring = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED || bytes < sizeof(*ring))
		err(2, "the ring cannot be mapped");
	fixed = *ring;
	if (fixed.magic != STROBE_RING_MAGIC || fixed.major != STROBE_RING_MAJOR ||
	    fixed.incompat & ~(STROBE_INCOMPAT_FAULTS | STROBE_INCOMPAT_SKIPPED |
			       STROBE_INCOMPAT_ABSENT))
		errx(2, "not a ring that is known here");
	words = sizeof(struct strobe_row) / 8 + (u64)fixed.channels +
		strobe_fault_words(fixed.channels, fixed.outputs) +
		!!(fixed.incompat & STROBE_INCOMPAT_SKIPPED);
	if (fixed.header_size < sizeof(*ring) || !fixed.row_stride || fixed.row_stride % 64 ||
	    fixed.data_offset % 64 || fixed.data_offset > bytes ||
	    fixed.capacity < 2 || fixed.capacity & (fixed.capacity - 1) ||
	    fixed.capacity > (bytes - fixed.data_offset) / fixed.row_stride ||
	    fixed.row_size > fixed.row_stride || fixed.row_size % 8 ||
	    fixed.row_size < words * 8 || fixed.row_size > COPY_WORDS * 8 ||
	    columns != fixed.channels)
		errx(2, "the ring contradicts itself, or the names of its columns");
}

static void open_kernel(u32 run)
{
	static struct strobe_entry entry[STROBE_STEPS_MAX + 1];
	struct strobe_reader reader = { .size = sizeof(reader), .run = run };
	struct strobe_list list = {
		.size = sizeof(list), .run = run, .entry_size = sizeof(*entry),
		.buffer = (uintptr_t)entry, .room = STROBE_STEPS_MAX + 1,
	};
	int control = open(STROBE_DEVICE_PATH, O_RDONLY | O_CLOEXEC);

	if (control < 0)
		err(2, "%s", STROBE_DEVICE_PATH);
	if (ioctl(control, STROBE_READER, &reader) || ioctl(control, STROBE_LIST, &list))
		err(2, "run %u", run);
	close(control);
	for (struct strobe_entry *e = entry; e < entry + list.count && e < entry + list.room; e++) {
		if (e->kind != STROBE_KIND_CHANNEL)
			continue;
		memcpy(column[columns].name, e->name, STROBE_NAME_SIZE);
		column[columns].type = e->value.type;
		column[columns].scale = DOUBLE(e->value.scale);
		column[columns++].offset = DOUBLE(e->value.offset);
	}
	source = reader.fd;
	map(reader.fd, reader.ring_bytes);
}

/* What one key of a channel's object says. */
static void take(struct column *c, const char *key, const char *value)
{
	size_t n = strcspn(value + 1, "\"\\");

	if (!strncmp(key, "name\"", 5)) {
		if (*value != '"' || n >= STROBE_NAME_SIZE)
			errx(2, "a channel that cannot be");
		memcpy(c->name, value + 1, n);
	} else if (!strncmp(key, "type\"", 5)) {
		c->type = !strncmp(value, "\"s64\"", 5) ? STROBE_TYPE_S64 :
			  !strncmp(value, "\"f64\"", 5) ? STROBE_TYPE_F64 : STROBE_TYPE_U64;
	} else if (!strncmp(key, "scale\"", 6)) {
		c->scale = strtod(value, NULL);
	} else if (!strncmp(key, "offset\"", 7)) {
		c->offset = strtod(value, NULL);
	}
}

/* The channels, out of one line of JSON. */
static void scan(const char *p)
{
	int depth = 0, inside = 0, version = 0;

	for (; *p; p++) {
		const char *s = p + 1, *q;

		depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		if (*p == '{' && depth == 3 && inside) {
			if (columns == STROBE_STEPS_MAX)
				errx(2, "more channels than a run can have");
			column[columns++].scale = 1;
		}
		if (*p != '"')
			continue;
		for (p = s; *p != '"'; p += *p == '\\' ? 2 : 1)
			if (!*p || !p[1])
				errx(2, "a string of the JSON has no end");
		q = p + 1 + strspn(p + 1, " \t");
		if (*q++ != ':')
			continue;	/* a value, not a key */
		q += strspn(q, " \t");
		if (depth == 1)
			inside = !strncmp(s, "channels\"", 9);
		if (depth == 1 && !strncmp(s, "version\"", 8))
			version = atoi(q);
		if (depth == 3 && inside)
			take(&column[columns - 1], s, q);
	}
	if (version != 2)
		errx(2, "JSON of version %d", version);
}

static void open_user(u32 run)
{
	static char line[LINE_BYTES];
	const char *own = getenv("STROBE_RUNTIME_DIR"), *xdg = getenv("XDG_RUNTIME_DIR");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char *path = address.sun_path;
	size_t room = sizeof(address.sun_path), length = 0;
	struct stat status;
	int fd = -1, n;

	snprintf(path, room, "/run/user/%u/strobe", getuid());
	if (own || xdg)
		n = snprintf(path, room, "%s%s/%u.sock", own ?: xdg, own ? "" : "/strobe", run);
	else
		n = snprintf(path, room, access(path, F_OK) ? "/tmp/strobe-%u/%u.sock" :
			     "/run/user/%u/strobe/%u.sock", getuid(), run);
	source = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (n >= (int)room || source < 0 ||
	    connect(source, (struct sockaddr *)&address, sizeof(address)))
		err(2, "%s", path);
	while (!length || line[length - 1] != '\n') {
		struct iovec part = { line + length, sizeof(line) - 1 - length };
		char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
		struct msghdr message = {
			.msg_iov = &part, .msg_iovlen = 1,
			.msg_control = control, .msg_controllen = sizeof(control),
		};
		ssize_t more = recvmsg(source, &message, MSG_CMSG_CLOEXEC);
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);

		if (more <= 0)
			break;
		if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		length += more;
	}
	if (fstat(fd, &status))
		err(2, "%s: no ring", path);
	send(source, "r", 1, MSG_NOSIGNAL);	/* the ring is ours, counted or not */
	scan(line);
	map(fd, status.st_size);
}

/* Waits for "rows" rows more than "head", or a quarter of the ring, or for a while. */
static void wait_for(u64 head, u64 rows, u32 wake)
{
	struct strobe_arm arm = { .size = sizeof(arm) };
	struct pollfd ready = { .fd = source, .events = POLLIN };
	struct timespec timeout = { .tv_nsec = WAIT_NS };

	fflush(stdout);
	if (rows > fixed.capacity / 4 + 1)
		rows = fixed.capacity / 4 + 1;
	arm.rows = head + rows;
	if (fixed.period_ns && rows < WAIT_NS / fixed.period_ns)
		timeout.tv_nsec = rows * fixed.period_ns;
	if (user)
		syscall(SYS_futex, &ring->wake, FUTEX_WAIT, wake, &timeout, NULL, 0);
	else if (ioctl(source, STROBE_ARM, &arm))
		err(2, "STROBE_ARM");
	else if (poll(&ready, 1, WAIT_NS / 1000000) < 0 && errno != EINTR)
		err(2, "poll");
}

static void print_row(const struct strobe_row *row, u64 number)
{
	u64 skipped = strobe_row_skipped(&fixed, row), skips = skipped - prev_skipped;
	u64 rows = row->row - prev_row, triggers = row->trigger - prev_trigger;

	/* From the row before to this one; that before the first one is "-1". */
	if (row->row != number || skipped < prev_skipped || !rows ||
	    triggers < rows || triggers - rows < skips)
		sound = 0;
	missed += triggers - rows - skips;
	prev_row = row->row;
	prev_trigger = row->trigger;
	prev_skipped = skipped;
	failed += !!strobe_row_faults(row, fixed.channels, fixed.outputs);
	got++;

	printf("%llu,%llu,%llu,%s%s,%llu", row->row, row->trigger, row->time,
	       row->status & STROBE_ROW_RESUMED ? "R" : "",
	       row->status & STROBE_ROW_LATE ? "L" : "", skipped);
	for (u32 i = 0; i < columns; i++) {
		const struct column *c = &column[i];
		u64 word = row->value[i];
		double value = c->type == STROBE_TYPE_F64 ? DOUBLE(word) :
			       c->type == STROBE_TYPE_S64 ? (double)(long long)word : (double)word;

		if (strobe_row_failed(row, columns, i))
			printf(",");
		else if (c->type == STROBE_TYPE_F64 || c->scale != 1 || c->offset != 0)
			printf(",%.17g", value * c->scale + c->offset);
		else
			printf(c->type == STROBE_TYPE_S64 ? ",%lld" : ",%llu", word);
	}
	putchar('\n');
}

static int account(u64 cursor, u32 state, const char *early)
{
	static const char *const name[STROBE_MISSED_CAUSES] = {
		"overrun", "busy", "throttled", "source", "suspended", "5", "6", "7"
	};
	u64 triggers = prev_trigger + 1, rows = prev_row + 1, skipped = prev_skipped;
	u64 cause[STROBE_MISSED_CAUSES], sum = 0;
	int holds;

	for (int i = 0; i < STROBE_MISSED_CAUSES; i++)
		sum += cause[i] = LOAD(missed[i]);
	if (state >= STROBE_DONE) {	/* the header is exact; else the last row is */
		triggers = LOAD(triggers);
		rows = LOAD(head);
		skipped = LOAD(skipped);
		sound &= missed <= sum && prev_skipped <= skipped &&
			 (got != rows || failed == LOAD(errors));
		missed = sum;
	}
	holds = sound && triggers == rows + missed + skipped && got + lost == cursor &&
		(*early || cursor == rows);
	fprintf(stderr, "run %u state %u error %d%s: triggers %llu = rows %llu + missed %llu",
		fixed.run, state, LOAD(error), early, triggers, rows, missed);
	for (int i = 0; i < STROBE_MISSED_CAUSES; i++)
		if (cause[i])
			fprintf(stderr, " (%s %llu)", name[i], cause[i]);
	fprintf(stderr, " + skipped %llu; got %llu + lost %llu of %llu, %llu with a failure; "
		"the account %s\n", skipped, got, lost, cursor, failed,
		holds ? "holds" : "DOES NOT HOLD");
	return !holds;
}

int main(int argc, char **argv)
{
	static u64 copy[COPY_WORDS];
	u64 cursor = 0, want = argc > 2 ? strtoull(argv[2], NULL, 0) : ~0ULL;
	u32 words, state;

	if (argc < 2 || argc > 3)
		errx(2, "usage: header_reader [user:]RUN [ROWS]");
	user = !strncmp(argv[1], "user:", 5);
	(user ? open_user : open_kernel)(strtoul(argv[1] + 5 * user, NULL, 10));
	words = fixed.row_size / 8;
	printf("row,trigger,time,status,skipped");
	for (u32 i = 0; i < columns; i++)
		printf(",%s", column[i].name);
	putchar('\n');

	for (;;) {
		u32 wake = LOAD(wake);
		u64 head, oldest, end, r, most = COPY_WORDS / words;
		int cut, idle;

		/* Both before state, as state is before head. Nothing is said to come there. */
		errno = 0;
		cut = user && recv(source, &idle, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN;
		FENCE();
		state = LOAD(state);					/* 1 */
		FENCE();
		head = LOAD(head);					/* 2 */
		FENCE();
		oldest = strobe_ring_oldest(head, fixed.capacity, fixed.limit);
		if (cursor < oldest) {
			lost += oldest - cursor;
			cursor = oldest;
		}
		most = most < want - got ? most : want - got;
		end = most < head - cursor ? cursor + most : head;
		for (r = cursor; r < end; r++)				/* 3 */
			for (u32 i = 0; i < words; i++)
				copy[(r - cursor) * words + i] = __atomic_load_n((u64 *)
					((char *)ring + fixed.data_offset + (r & (fixed.capacity - 1)) *
					 fixed.row_stride) + i, __ATOMIC_RELAXED);
		FENCE();						/* 4 */
		oldest = strobe_ring_oldest(LOAD(head), fixed.capacity, fixed.limit);
		for (r = cursor; r < end; r++) {
			const struct strobe_row *row = (void *)(copy + (r - cursor) * words);

			if (r < oldest || strobe_row_absent(&fixed, row, r))	/* 5 */
				lost++;
			else
				print_row(row, r);
		}
		idle = cursor == end;
		cursor = end;
		if (got >= want || (cursor == head && (state >= STROBE_DONE || cut)))	/* 6 */
			break;
		if (idle)
			wait_for(head, want - got, wake);
	}
	return fflush(stdout) || ferror(stdout) ? 2 : account(cursor, state,
		got >= want ? " (left early)" : state < STROBE_DONE ? " (cut)" : "");
}
