#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# In a guest with Debian's root and strobe installed: what lab/cases/restarts has systemd do. The first argument is how
# often the daemon is killed or restarted. Lines are a word and its figures, or what the daemon says of all runs.
rounds=$1
# shellcheck source=lab/guest/daemon.sh
. /root/daemon.sh
service() { systemctl show -P "$1" strobe.service; }
kernel_runs() { find /sys/class/strobe -name 'run*'; }

systemctl daemon-reload
systemctl start strobe.socket strobe.service || fail "it does not start"
echo "security $(systemd-analyze security --no-pager strobe.service | sed -n 's/.*exposure level for strobe.service: \([0-9.]*\).*/\1/p')"
for run in 1 2 3; do until_beyond $run 0; done

for round in $(seq "$rounds"); do
	before=$(next 1) pid=$(service MainPID)
	sleep "0.$((round * 37 % 100))"
	if [ $((round % 2)) = 1 ]; then
		how="kill"
		systemctl kill --signal KILL strobe.service || fail "no kill"
	else
		how=restart
		systemctl restart strobe.service || fail "no restart"
	fi
	until_beyond 1 "$before"
	[ "$(service MainPID)" != "$pid" ] || fail "the daemon is still the same"
	echo "round $round $how $before $now"
done
get /api/runs
echo

# A daemon that stands still is killed, and the next one goes on. The unit's own 30 s would only be waited for.
mkdir -p /run/systemd/system/strobe.service.d
printf '[Service]\nWatchdogSec=10s\nTimeoutAbortSec=10s\n' >/run/systemd/system/strobe.service.d/soon.conf
systemctl daemon-reload
systemctl restart strobe.service || fail "no restart"
before=$(next 1) pid=$(service MainPID)
kill -STOP "$pid"
for _ in $(seq 600); do
	[ "$(service MainPID)" = "$pid" ] || break
	sleep 0.1
done
until_beyond 1 "$before"
[ "$(service MainPID)" != "$pid" ] || fail "the watchdog has not killed it"
echo "watchdog $(journalctl -q --no-pager -u strobe.service | grep -c 'Watchdog timeout')"

for run in 1 2 3; do post "/api/runs/$run/stop" >/dev/null; done
for _ in $(seq 1000); do
	all=$(get /api/runs)
	[ "$(echo "$all" | grep -o '"state":"stopped"' | wc -l)" = 3 ] && break
	sleep 0.2
done
echo "$all"
for run in 1 2 3; do get "/api/runs/$run/rows?follow=false" >"$OUT/$run.arrows" || fail "no rows of run $run"; done
[ -z "$(kernel_runs)" ] || fail "a run is left in the kernel: $(kernel_runs)"
journalctl -q --no-pager -o cat -u strobe.service >"$OUT/journal"

# Without a manager: the kernel ends the run with the daemon that has made it.
systemctl stop strobe.socket strobe.service
alone() { STROBE_RUNTIME_DIR=/tmp strobe-serve --data /var/lib/alone --http 127.0.0.1:8000 "$@" 2>>"$OUT/alone" & pid=$!; }
alone /etc/strobe/serve.toml
until_beyond 1 100
until_beyond 2 0
until_beyond 3 0
kill -KILL "$pid"
{ wait "$pid"; } 2>/dev/null
[ -z "$(kernel_runs)" ] || fail "a run has outlived its daemon: $(kernel_runs)"
alone
for _ in $(seq 1000); do get /api >/dev/null 2>&1 && break; sleep 0.1; done
get /api/runs
echo
for run in 1 2 3; do get "/api/runs/$run/rows?follow=false" >"$OUT/alone-$run.arrows" || fail "no rows of run $run"; done
kill "$pid"
