// SPDX-License-Identifier: MIT OR Apache-2.0
// A trace that has more points than pixels: to stroke lines through all of them takes ten times as long as to fill the columns of
// pixels between their least and greatest values.

/** Columns of pixels from `left` to before `right`, and what is filled of them. */
export interface Bar {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Values of a channel over time; where there is none, no bar is. */
export interface Points {
  time: ArrayLike<number>;
  low: ArrayLike<number | null | undefined>;
  high: ArrayLike<number | null | undefined>;
}

/** From where to where a line is drawn. */
export type Line = [x1: number, y1: number, x2: number, y2: number];

/** The bars of the points from `first` to `last`. Each touches the one before, as a line would, or a line goes to it, if it is
 * further away than `far` pixels: nothing is known of what is between. */
export function bars(
  points: Points,
  [first, last]: [number, number],
  x: (time: number) => number,
  y: (value: number) => number,
  far: number,
): { bars: Bar[]; lines: Line[] } {
  const found: Bar[] = [];
  const lines: Line[] = [];
  let open: Bar | undefined;
  let before: Bar | undefined;
  const close = (right: number) => {
    if (!open) return;
    open.right = Math.max(right, open.left + 1);
    const { left, top, bottom } = open;
    if (before && before.right < left) lines.push([before.left, (before.top + before.bottom) / 2, left, (top + bottom) / 2]);
    else if (before) {
      open.top = Math.min(top, before.bottom);
      open.bottom = Math.max(bottom, before.top);
    }
    found.push(open);
    // Only its own values: what fills the way to it is not passed on.
    before = { ...open, top, bottom };
    open = undefined;
  };
  for (let point = Math.max(first, 0); point <= last && point < points.time.length; point++) {
    const [low, high] = [points.low[point], points.high[point]];
    const left = Math.round(x(points.time[point]!));
    if (low == null || high == null) {
      close(-Infinity);
      before = undefined;
      continue;
    }
    if (open && left > open.left) close(left - open.left > far ? -Infinity : left);
    const [top, bottom] = [y(high), y(low)];
    open ??= { left, right: left, top, bottom };
    open.top = Math.min(open.top, top);
    open.bottom = Math.max(open.bottom, bottom);
  }
  close(-Infinity);
  return { bars: found, lines };
}
