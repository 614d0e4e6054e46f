// SPDX-License-Identifier: MIT OR Apache-2.0
// The points that are drawn. They are bounded: when there are too many, two become one, with the least and the greatest
// value of both. So a value that stands out stays, however long the run is.

import type { Message } from "./message";

/** Where triggers were missed, or rows lost: between these times, seconds since the start. */
export interface Mark {
  from: number;
  to: number;
  missed: number;
  lost: number;
}

const POINTS = 4096;
const MARKS = 512;

export class Traces {
  row: number[] = [];
  time: number[] = [];
  min: number[][];
  max: number[][];
  marks: Mark[] = [];
  /** The newest mark, if it reaches to what comes next. */
  private marked: Mark | undefined;
  /** The row after the last one; before there is any, nothing. */
  end: number | undefined;

  constructor(
    readonly columns: number,
    readonly limit = POINTS,
  ) {
    this.min = Array.from({ length: columns }, () => []);
    this.max = Array.from({ length: columns }, () => []);
  }

  /** All points of a message. */
  static of(message: Message, marks: Mark[] = []): Traces {
    const traces = new Traces(message.min.length, Infinity);
    traces.append(message, marks);
    return traces;
  }

  get length(): number {
    return this.time.length;
  }

  /** The time of the newest point. */
  get newest(): number | undefined {
    return this.time.at(-1);
  }

  /** Adds what came after, with its marks if they are known; what is there already is left out. */
  append(message: Message, marks?: Mark[]): void {
    if (message.min.length !== this.columns) throw new Error("rows: another number of channels");
    if (this.end !== undefined && message.first < this.end) return;
    // When the last point of the message before ended, is known now.
    if (this.marked && message.time.length > 0) this.marked.to = message.time[0]!;
    this.marked = undefined;
    if (marks) this.marks.push(...marks);
    else if (message.missed > 0 || message.lost > 0) this.mark(message);
    // No line is drawn over rows that are not there.
    if (this.end !== undefined && message.first > this.end && message.time.length > 0) this.gap(this.newest ?? message.time[0]!);
    for (let point = 0; point < message.time.length; point++) {
      this.row.push(message.row[point]!);
      this.time.push(message.time[point]!);
      for (let column = 0; column < this.columns; column++) {
        this.min[column]!.push(message.min[column]![point]!);
        this.max[column]!.push(message.max[column]![point]!);
      }
    }
    this.end = message.end;
    while (this.length > this.limit) this.halve();
  }

  /** Forgets what is older than this time. */
  forget(before: number): void {
    const old = this.time.findIndex((time) => time >= before);
    // One point more: a line begins outside.
    const count = old < 0 ? this.length : old - 1;
    if (count > 0) for (const list of [this.row, this.time, ...this.min, ...this.max]) list.splice(0, count);
    this.marks = this.marks.filter((mark) => mark.to >= before);
  }

  private mark(message: Message): void {
    const last = this.marks.at(-1);
    const to = message.time.at(-1) ?? this.newest ?? 0;
    const from = Math.min(this.newest ?? message.time[0] ?? to, to);
    const { missed, lost } = message;
    if (last && this.marks.length >= MARKS) {
      // Too many to tell apart.
      Object.assign(last, { to, missed: last.missed + missed, lost: last.lost + lost });
    } else {
      this.marks.push({ from, to, missed, lost });
    }
    this.marked = this.marks.at(-1);
  }

  /** From the last point on, where nothing is drawn. */
  private gap(time: number): void {
    this.row.push(this.end!);
    this.time.push(time);
    for (const list of [...this.min, ...this.max]) list.push(NaN);
  }

  private halve(): void {
    const first = (list: number[]) => list.filter((_, point) => point % 2 === 0);
    this.row = first(this.row);
    this.time = first(this.time);
    this.min = this.min.map((list) => pairs(list, Math.min));
    this.max = this.max.map((list) => pairs(list, Math.max));
  }
}

/** Of two each the least or greatest; of a failed value and another, the other. */
function pairs(list: number[], choose: (a: number, b: number) => number): number[] {
  const half: number[] = [];
  for (let point = 0; point < list.length; point += 2) {
    const a = list[point]!;
    const b = list[point + 1] ?? NaN;
    half.push(Number.isNaN(a) ? b : Number.isNaN(b) ? a : choose(a, b));
  }
  return half;
}
