// SPDX-License-Identifier: MIT OR Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";

import { decode } from "../src/message";
import { encode } from "./samples";

const SENT = {
  first: 7_000_000_000,
  end: 7_000_000_030,
  missed: 3,
  lost: 10,
  row: [7_000_000_000, 7_000_000_020],
  time: [700.5, 700.502],
  min: [
    [-1.5, NaN],
    [0, 1],
  ],
  max: [
    [2.5, NaN],
    [10, 1],
  ],
};

test("a message says what was sent", () => {
  const message = decode(encode(SENT));
  assert.deepEqual(
    { ...message, row: [...message.row], time: [...message.time], min: message.min.map((l) => [...l]), max: message.max.map((l) => [...l]) },
    SENT,
  );
});

test("a message without points has its counts", () => {
  const { first, end, missed, lost, row } = decode(encode({ first: 5, end: 5, missed: 2, lost: 1, row: [], time: [], min: [[]], max: [[]] }));
  assert.deepEqual([first, end, missed, lost, row.length], [5, 5, 2, 1, 0]);
});

test("a torn message, or one of another version, is refused", () => {
  const bytes = encode(SENT);
  for (let length = 0; length < bytes.byteLength; length++) assert.throws(() => decode(bytes.slice(0, length)), /rows: the message/);
  new DataView(bytes).setUint8(0, 2);
  assert.throws(() => decode(bytes), /not understood/);
});

test("rubbish is refused, and never takes long", () => {
  let seed = 1;
  const next = () => (seed = (seed * 48271) % 2147483647);
  for (let round = 0; round < 100_000; round++) {
    const bytes = Uint8Array.from({ length: next() % 96 }, () => next());
    if (bytes.length > 0 && next() % 2) bytes[0] = 1;
    try {
      const { row, min } = decode(bytes.buffer);
      assert.ok(row.length * (min.length + 1) * 16 <= bytes.length);
    } catch (error) {
      assert.match((error as Error).message, /^rows: the message is/);
    }
  }
});
