// SPDX-License-Identifier: MIT OR Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";

import { bars } from "../src/bars";
import { Traces } from "../src/traces";
import { rows } from "./samples";

const same = (value: number) => value;
const below = (value: number) => -value;
const points = (time: number[], low: (number | null)[], high = low) => ({ time, low, high });

test("points of one column of pixels are one bar, from the least to the greatest value", () => {
  const found = bars(points([0, 0.2, 0.4, 1, 1.4], [5, 1, 4, 2, 2], [6, 7, 5, 3, 9]), [0, 4], same, below, 4);
  assert.deepEqual(found.bars, [
    { left: 0, right: 1, top: -7, bottom: -1 },
    { left: 1, right: 2, top: -9, bottom: -2 },
  ]);
});

test("a bar ends where the next one begins, and touches it", () => {
  const found = bars(points([0, 3, 5], [1, 8, 4], [2, 9, 5]), [0, 2], same, below, 4);
  assert.deepEqual(found.bars, [
    { left: 0, right: 3, top: -2, bottom: -1 },
    { left: 3, right: 5, top: -9, bottom: -2 },
    { left: 5, right: 6, top: -8, bottom: -4 },
  ]);
  assert.deepEqual(found.lines, []);
});

test("a line, and no bar, goes over a time of which nothing is known", () => {
  const found = bars(points([0, 100], [1, 8], [5, 10]), [0, 1], same, below, 4);
  assert.deepEqual(found.bars, [
    { left: 0, right: 1, top: -5, bottom: -1 },
    { left: 100, right: 101, top: -10, bottom: -8 },
  ]);
  assert.deepEqual(found.lines, [[0, -3, 100, -9]]);
});

test("where there is no value there is no bar, and nothing is drawn over it", () => {
  const found = bars(points([0, 2, 4, 6], [1, null, 9, 9]), [0, 3], same, below, 4);
  assert.deepEqual(found.bars, [
    { left: 0, right: 1, top: -1, bottom: -1 },
    { left: 4, right: 6, top: -9, bottom: -9 },
    { left: 6, right: 7, top: -9, bottom: -9 },
  ]);
  assert.deepEqual(found.lines, []);
  assert.deepEqual(bars(points([1], [null]), [0, 0], same, below, 4), { bars: [], lines: [] });
});

test("nothing is drawn over lost rows", () => {
  const traces = new Traces(1);
  traces.append(rows(0, [1, 2]));
  traces.append(rows(8, [3]));
  const [low, high] = [traces.min[0]!, traces.max[0]!].map((list) => list.map((value) => (Number.isNaN(value) ? null : value)));
  const found = bars({ time: traces.time, low: low!, high: high! }, [0, 3], (at) => 1000 * at, below, 100);
  assert.deepEqual(found.bars.map(({ left, right }) => [left, right]), [
    [0, 1],
    [1, 2],
    [8, 9],
  ]);
  assert.deepEqual(found.lines, []);
});

test("a spike among thousands of points has its bar", () => {
  const low = Array.from({ length: 5000 }, (_, place) => (place === 3210 ? 90 : 0));
  const time = low.map((_, place) => place);
  const found = bars(points(time, low), [-1, 5000], (at) => at / 10, below, 4);
  assert.equal(found.bars.length, 501);
  assert.deepEqual(found.bars.filter((bar) => bar.top === -90), [{ left: 321, right: 322, top: -90, bottom: -0 }]);
  assert.equal(bars(points(time, low), [100, 199], (at) => at / 10, below, 4).bars.length, 11, "only those that are asked for");
});
