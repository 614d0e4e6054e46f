// SPDX-License-Identifier: MIT OR Apache-2.0
// Finds the places where triggers were missed or rows lost: a part of the rows that has some is cut into halves.

import type { Message } from "./message";
import type { Mark } from "./traces";

/** Asks for rows, in one point or a few. */
export type Ask = (from: number, to: number) => Promise<Message>;

const ASKS = 48;

interface Part {
  message: Message;
  /** When what comes after it begins: a message says when its last point begins, and not when that ends. */
  until: number;
}

/** The places in a part whose message is known. When there are too many, some are wider than they are. */
export async function locate(whole: Message, ask: Ask, narrow: number): Promise<Mark[]> {
  const marks: Mark[] = [];
  const [before, last] = [whole.time.at(-2) ?? 0, whole.time.at(-1) ?? 0];
  const parts: Part[] = [{ message: whole, until: last + (last - before) }];
  let asks = 0;
  while (parts.length > 0) {
    // The part with the most rows first, so that none is left wide for the sake of others.
    parts.sort((a, b) => size(a) - size(b));
    const { message: part, until } = parts.pop()!;
    const { first, end, missed, lost } = part;
    if (missed === 0 && lost === 0) continue;
    if (end - first <= Math.max(narrow, 1) || asks + 3 > ASKS) {
      marks.push({ from: part.time[0] ?? until, to: until, missed, lost });
      continue;
    }
    const middle = Math.floor((first + end) / 2);
    const [left, right] = await Promise.all([ask(first, middle), ask(middle, end)]);
    asks += 2;
    const border = right.time[0] ?? until;
    parts.push({ message: left, until: border }, { message: right, until });
    // What neither has is between them.
    const between = { missed: Math.max(missed - left.missed - right.missed, 0), lost: Math.max(lost - left.lost - right.lost, 0) };
    if (between.missed > 0 || between.lost > 0) {
      const row = await ask(middle - 1, middle);
      asks++;
      marks.push({ from: row.time[0] ?? border, to: border, ...between });
    }
  }
  return marks.sort((a, b) => a.from - b.from);
}

function size({ message }: Part): number {
  return message.end - message.first;
}
