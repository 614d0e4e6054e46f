// SPDX-License-Identifier: MIT OR Apache-2.0
// Messages as the daemon sends them.

import type { Message } from "../src/message";

export interface Sent {
  first: number;
  end: number;
  missed?: number;
  lost?: number;
  row: number[];
  time: number[];
  min: number[][];
  max: number[][];
}

/** The bytes of a message. */
export function encode(sent: Sent): ArrayBuffer {
  const points = sent.row.length;
  const bytes = new ArrayBuffer(40 + 16 * points * (sent.min.length + 1));
  const view = new DataView(bytes);
  view.setUint8(0, 1);
  view.setUint8(1, sent.min.length);
  view.setUint32(4, points, true);
  let at = 8;
  const long = (number: number) => view.setBigUint64((at += 8) - 8, BigInt(number), true);
  const float = (number: number) => view.setFloat64((at += 8) - 8, number, true);
  [sent.first, sent.end, sent.missed ?? 0, sent.lost ?? 0].forEach(long);
  sent.min.forEach((list, column) => list.forEach((low, point) => [low, sent.max[column]![point]!].forEach(float)));
  sent.row.forEach(long);
  sent.time.forEach(float);
  return bytes;
}

/** One channel, one point a row, a millisecond each. */
export function rows(first: number, values: number[], more: { missed?: number; lost?: number } = {}): Message {
  const list = Float64Array.from(values);
  const row = list.map((_, place) => first + place);
  const time = row.map((number) => number / 1000);
  return { first, end: first + values.length, missed: 0, lost: 0, ...more, row, time, min: [list], max: [list] };
}
