#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# In a guest with Debian's root and strobe installed: what lab/cases/clocksteps does to the clock, and what the daemon says.
# shellcheck source=lab/guest/daemon.sh
. /root/daemon.sh
HOUR=3600
chmod 600 /etc/strobe/token
TOKEN=$(cut -d ' ' -f 2 /etc/strobe/tokens)

# The clock goes by so many seconds, and rows come as before.
step() {
	before=$(next 1)
	date -s "@$(($(date +%s) + $1))" >/dev/null || fail "the clock cannot be set"
	until_beyond 1 $((before + 200))
	say "step $1"
}
say() {
	echo "$1"
	get /api/runs
	echo
}
# Run N ends, and all its rows are in the spool.
stop() {
	post "/api/runs/$1/stop" >/dev/null
	for _ in $(seq 1000); do
		get "/api/runs/$1" | grep -q '"state":"stopped"' && return
		sleep 0.2
	done
	fail "run $1 does not end"
}
kill_daemon() {
	before=$(next 1)
	systemctl kill --signal KILL strobe.service
	until_beyond 1 "$before"
}

chgrp strobe /etc/strobe/tokens
chmod 640 /etc/strobe/tokens
nats-server -js -a 127.0.0.1 -sd /tmp/bus >/dev/null 2>&1 &
systemctl daemon-reload
systemctl start strobe.socket strobe.service || fail "it does not start"
until_beyond 1 0
until_beyond 2 0
/usr/bin/strobe record --at http://127.0.0.1:8000 --token /etc/strobe/token --run 2 --json --allow-loss -o "$OUT/recorded.arrows" \
	>"$OUT/recorded.json" 2>"$OUT/recorded.said" &
recorder=$!
strobe-serve subscribe nats://127.0.0.1:4222 --run user --allow-loss -o "$OUT/taken.arrows" 2>"$OUT/taken.said" &
subscriber=$!
sleep 2
say begin
step $HOUR
step -$HOUR
step -$HOUR
# A file of tokens that is older than the one before is another one nevertheless.
old=$TOKEN TOKEN=another-token-0123456789
echo "control $TOKEN" >/etc/strobe/tokens
get /api/runs | grep -q '"runs"' || fail "the new token is none"
TOKEN=$old
! get /api/runs | grep -q '"runs"' || fail "the old token is still one"
echo "control $TOKEN" >/etc/strobe/tokens
step $HOUR
stop 2
say stopped
get "/api/runs/2/rows?follow=false" >"$OUT/2.arrows"
wait $recorder || fail "the recording: $(cat "$OUT/recorded.said")"
wait $subscriber || fail "the subscriber: $(cat "$OUT/taken.said")"
# The daemon is killed while the clock is an hour behind, and while it is an hour ahead.
step -$HOUR
kill_daemon
step $HOUR
step $HOUR
kill_daemon
step -$HOUR
stop 1
say end
get "/api/runs/1/rows?follow=false" >"$OUT/1.arrows"
journalctl -q --no-pager -o cat -u strobe.service >"$OUT/journal"
