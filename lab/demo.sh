#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What `make run` shows, inside a guest with an edu card: a timer's rows write the register that makes the card raise
# its interrupt, and each interrupt reads five of the card's registers.
set -eu
exec 2>&1

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { say "# $*"; "$@"; }

run strobe board install /boards/edu.toml

card=edu.id,edu.liveness,edu.factorial,edu.status,edu.irq_status
say "# strobe record --event edu.irq --read $card --rows 1000 -o card.arrows -o card.csv &"
strobe record --event edu.irq --read "$card" --rows 1000 \
	-o "$OUT/card.arrows" -o "$OUT/card.csv" 2>"$OUT/card.txt" &
card_run=$!
until grep -qs running /sys/class/strobe/run*/state; do sleep 0.1; done

say "# strobe record --event timer:1kHz --set edu.liveness=1,edu.raise=1 --read clock.late --rows 1000 -o timer.arrows --json"
strobe record --event timer:1kHz --set edu.liveness=1,edu.raise=1 --read clock.late --rows 1000 \
	-o "$OUT/timer.arrows" --json >"$OUT/timer.json" || timer_status=$?
cat "$OUT/timer.json"
card_status=0
wait $card_run || card_status=$?

say "# the run on the card's interrupt:"
cat "$OUT/card.txt"
say "# head -n 4 card.csv"
head -n 4 "$OUT/card.csv"
say "exit status: ${timer_status:-0} (timer), $card_status (card)"
exit $((${timer_status:-0} | card_status))
