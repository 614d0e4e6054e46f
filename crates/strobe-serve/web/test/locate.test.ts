// SPDX-License-Identifier: MIT OR Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";

import { locate } from "../src/locate";
import type { Message } from "../src/message";

/** A run at 1 kHz in which triggers were missed before these rows. What is missed before its first row a part does not know. */
function run(missed: Map<number, number>) {
  let asks = 0;
  const ask = async (first: number, end: number): Promise<Message> => {
    asks++;
    const among = [...missed].filter(([row]) => row > first && row < end);
    // The points begin with their first rows, and say nothing of the last.
    const points = Math.min(end - first, end - first > 500 ? 500 : 2);
    const row = new Float64Array(points).map((_, place) => first + Math.floor((place * (end - first)) / points));
    const list = new Float64Array(points);
    return {
      first,
      end,
      missed: among.reduce((sum, [, number]) => sum + number, 0),
      lost: 0,
      row,
      time: row.map((number) => number / 1000),
      min: [list],
      max: [list],
    };
  };
  return { ask, asks: () => asks };
}

test("each place is found, with what was missed there", async () => {
  const { ask } = run(new Map([[1234, 5], [8000, 1]]));
  const marks = await locate(await ask(0, 10_000), ask, 10);
  assert.deepEqual(marks.map(({ missed }) => missed), [5, 1]);
  for (const [place, time] of [1.234, 8].entries()) {
    assert.ok(marks[place]!.from < time && marks[place]!.to >= time, `${JSON.stringify(marks)} around ${time}`);
    assert.ok(marks[place]!.to - marks[place]!.from <= 0.0101);
  }
});

test("what was missed between two halves is found too", async () => {
  const { ask } = run(new Map([[500, 7]]));
  assert.deepEqual(await locate(await ask(0, 1000), ask, 1), [{ from: 0.499, to: 0.5, missed: 7, lost: 0 }]);
});

test("nothing is asked where nothing is missed", async () => {
  const { ask, asks } = run(new Map());
  assert.deepEqual(await locate(await ask(0, 1e9), ask, 1), []);
  assert.equal(asks(), 1);
});

test("with many places the asks are bounded, and the sum is right", async () => {
  const { ask, asks } = run(new Map(Array.from({ length: 500 }, (_, place) => [place * 97 + 1, 1])));
  const marks = await locate(await ask(0, 50_000), ask, 1);
  assert.ok(asks() < 100);
  assert.equal(marks.reduce((sum, { missed }) => sum + missed, 0), 500);
});
