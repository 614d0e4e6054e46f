#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# In a guest with Debian's root and strobe installed: how scripts speak with the daemon. $TOKEN, if there is one, is sent.
export LC_ALL=C

# What the daemon answers, without its head. Who asks while it is restarted waits for it.
ask() {
	exec 3<>/dev/tcp/127.0.0.1/8000 || return
	printf '%s HTTP/1.0\r\nHost: 127.0.0.1:8000\r\nContent-Type: application/json\r\nContent-Length: 0\r\nAuthorization: Bearer %s\r\n\r\n' "$1" "$TOKEN" >&3
	sed '1,/^\r$/d' <&3
}
get() { ask "GET $1"; }
post() { ask "POST $1"; }
fail() { echo "${0##*/}: $1" >&2; journalctl -q --no-pager -n 50 -u strobe.service >&2; exit 1; }
# The row that comes next in a run.
next() { get "/api/runs/$1" | sed 's/.*"next":\([0-9]*\),.*/\1/'; }
# Until the run has more rows than that: the daemon drains it.
until_beyond() {
	SECONDS=0
	while [ "$SECONDS" -lt 300 ]; do
		now=$(next "$1" 2>/dev/null)
		[ "${now:-0}" -gt "$2" ] 2>/dev/null && return
		sleep 0.1
	done
	fail "no rows of run $1 after $2"
}
