// SPDX-License-Identifier: MIT OR Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";

import { Traces } from "../src/traces";
import { rows } from "./samples";

test("a spike of one row in a million stays, however few points are left", () => {
  const traces = new Traces(1, 1000);
  for (let first = 0; first < 1_000_000; first += 500) {
    traces.append(rows(first, Array.from({ length: 500 }, (_, place) => (first + place === 654_321 ? 99 : Math.sin(place)))));
  }
  assert.ok(traces.length <= 1000);
  assert.equal(traces.end, 1_000_000);
  const place = traces.max[0]!.findIndex((high) => high === 99);
  assert.ok(place >= 0, "it is drawn");
  assert.ok(traces.row[place]! <= 654_321 && traces.row[place + 1]! > 654_321, "where it was");
  assert.ok(traces.max[0]!.every((high, other) => other === place || high <= 1), "nothing else is drawn");
});

test("points are in the order of their time, and each begins with its own row", () => {
  const traces = new Traces(1, 64);
  for (let first = 0; first < 3000; first += 30) traces.append(rows(first, Array(30).fill(first)));
  assert.equal(traces.row[0], 0);
  assert.ok(traces.time.every((time, place) => place === 0 || time > traces.time[place - 1]!));
  assert.ok(traces.time.every((time, place) => time === traces.row[place]! / 1000));
});

test("a window keeps what is in it, and one point before", () => {
  const traces = new Traces(1);
  traces.append(rows(0, Array(1000).fill(1)));
  traces.forget(0.5);
  assert.equal(traces.time[0], 0.499);
  assert.equal(traces.newest, 0.999);
});

test("no line is drawn over lost rows, and they are marked", () => {
  const traces = new Traces(1);
  traces.append(rows(0, [1, 2]));
  traces.append(rows(10, [3, 4], { lost: 8 }));
  assert.deepEqual(traces.max[0]!.map(String), ["1", "2", "NaN", "3", "4"]);
  assert.deepEqual(traces.marks, [{ from: 0.001, to: 0.011, missed: 0, lost: 8 }]);
});

test("a mark reaches to what comes next", () => {
  const traces = new Traces(1);
  traces.append(rows(0, [1, 2]));
  traces.append(rows(2, [3, 4], { missed: 4 }));
  traces.append(rows(10, [5]));
  traces.append(rows(11, [6]));
  assert.deepEqual(traces.marks, [{ from: 0.001, to: 0.01, missed: 4, lost: 0 }]);
});

test("marks are bounded, and nothing of their counts goes away", () => {
  const traces = new Traces(1);
  for (let row = 0; row < 5000; row++) traces.append(rows(row, [0], { missed: 2 }));
  assert.ok(traces.marks.length <= 512);
  assert.equal(traces.marks.reduce((sum, { missed }) => sum + missed, 0), 10_000);
});

test("a failed value is a gap, unless a good one is in the same point", () => {
  const traces = new Traces(1, 2);
  traces.append(rows(0, [NaN, NaN, NaN, 5]));
  assert.deepEqual(traces.max[0]!.map(String), ["NaN", "5"]);
});

test("rows that are here already are not drawn twice", () => {
  const traces = new Traces(1);
  traces.append(rows(0, [1, 2, 3]));
  traces.append(rows(1, [2, 3]));
  assert.deepEqual(traces.row, [0, 1, 2]);
});

test("marks that are known take the place of one for the whole message", () => {
  const marks = [{ from: 0.001, to: 0.001, missed: 3, lost: 0 }];
  const traces = new Traces(1);
  traces.append(rows(0, [1, 2, 3], { missed: 3 }), marks);
  assert.deepEqual(traces.marks, marks);
  assert.deepEqual(Traces.of(rows(0, [1, 2, 3], { missed: 3 })).marks, []);
});
