// SPDX-License-Identifier: MIT OR Apache-2.0
// The binary message of rows: least and greatest values of each channel, point by point.

const VERSION = 1;
const HEAD = 40;

/** Some rows in a row of points. A point stands for the rows from its own to that of the next point. */
export interface Message {
  /** The first row, and the one after the last. */
  first: number;
  end: number;
  /** Triggers among them that made no row, and rows that were lost. */
  missed: number;
  lost: number;
  /** Of each point, its first row, and when that was, in seconds since the start of the run. */
  row: Float64Array;
  time: Float64Array;
  /** Of each channel and point. NaN where the channel failed in all rows of the point. */
  min: Float64Array[];
  max: Float64Array[];
}

/** Reads a message; throws if it is none. */
export function decode(bytes: ArrayBuffer): Message {
  const view = new DataView(bytes);
  if (bytes.byteLength < HEAD || view.getUint8(0) !== VERSION) throw new Error("rows: the message is not understood");
  const columns = view.getUint8(1);
  const points = view.getUint32(4, true);
  if (bytes.byteLength !== HEAD + 16 * points * (columns + 1)) throw new Error("rows: the message is torn");
  let at = HEAD;
  const long = () => Number(view.getBigUint64((at += 8) - 8, true));
  const float = () => view.getFloat64((at += 8) - 8, true);
  const min = Array.from({ length: columns }, () => new Float64Array(points));
  const max = Array.from({ length: columns }, () => new Float64Array(points));
  for (let column = 0; column < columns; column++) {
    for (let point = 0; point < points; point++) {
      min[column]![point] = float();
      max[column]![point] = float();
    }
  }
  const row = new Float64Array(points).map(long);
  const time = new Float64Array(points).map(float);
  at = 8;
  return { first: long(), end: long(), missed: long(), lost: long(), row, time, min, max };
}
