// SPDX-License-Identifier: MIT OR Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";

import { columnNames } from "../src/model";
import { count, labels, rate, si, span, value } from "../src/words";

test("whole numbers are in groups of three", () => {
  assert.equal(count(1234567), "1\u202f234\u202f567");
  assert.equal(count(12), "12");
});

test("values have a prefix of their unit", () => {
  assert.equal(si(0.0123456, "V"), "12.35 mV");
  assert.equal(si(-1500, "V"), "-1.5 kV");
  assert.equal(si(0, "V"), "0 V");
  assert.equal(si(999.99, "s", 3), "1 ks");
  assert.equal(si(1e-6, "s"), "1 µs");
  assert.equal(si(1e-15, "s"), "0.001 ps");
  assert.equal(si(NaN, "s"), "–");
});

test("values without a unit have no prefix", () => {
  assert.equal(value(123456, ""), "123\u202f456");
  assert.equal(value(0.1234567, ""), "0.123457");
  assert.equal(value(NaN, ""), "failed");
});

test("a unit with a prefix does not get another one", () => {
  assert.equal(value(12_380, "ns"), "12.38 µs");
  assert.equal(value(1500, "mV"), "1\u202f500 mV");
  assert.equal(value(21.5, "°C"), "21.5 °C");
});

test("labels of an axis can be told apart", () => {
  assert.deepEqual(labels([-1, -0.5, 0], 0.5, "V"), ["-1.0 V", "-0.5 V", "0.0 V"]);
  assert.deepEqual(labels([0, 2.5e-6, 5e-6], 2.5e-6, "s"), ["0.0 µs", "2.5 µs", "5.0 µs"]);
  assert.deepEqual(labels([0, 2e6], 2e6, "ns"), ["0 ms", "2 ms"]);
  assert.deepEqual(labels([0, 250_000, 500_000], 250_000, ""), ["0", "250000", "500000"]);
  assert.deepEqual(labels([1e10, 2e10], 1e10, ""), ["10e9", "20e9"]);
  assert.deepEqual(labels([0, 25], 25, "°C"), ["0 °C", "25 °C"]);
});

test("times and rates are said as people say them", () => {
  assert.equal(span(1.5), "1.5 s");
  assert.equal(span(75), "1:15 min");
  assert.equal(span(3700), "1:01:40 h");
  assert.equal(rate(100_000), "10 kHz");
  assert.equal(rate(null), "");
});

test("a channel that is read twice has two columns", () => {
  assert.deepEqual(columnNames(["a", "b", "a"].map((name) => ({ name }))), ["a", "b", "a#2"]);
});
