// SPDX-License-Identifier: MIT OR Apache-2.0
// The trace of one channel: the space between its least and its greatest values, and marks.

import uPlot from "uplot";

import { bars } from "./bars";
import { make, say } from "./dom";
import type { Mark, Traces } from "./traces";
import { count, labels, si, value } from "./words";

/** Of a line. */
const WIDTH = 1.25;
const lines = uPlot.paths.linear!();

export interface Look {
  name: string;
  unit: string;
  description: string;
  color: string;
  height: number;
  /** Whether it says the time. */
  last: boolean;
}

/** Colours of what all strips have. */
export interface Colors {
  text: string;
  grid: string;
  missed: string;
  lost: string;
  font: string;
}

/** Called with what somebody does with a strip. */
export interface Hands {
  zoom(from: number, to: number): void;
  release(): void;
  scale(factor: number, around: number): void;
}

export class Strip {
  readonly element: HTMLElement;
  readonly plot: uPlot;
  private readonly reading = make("output", { class: "reading" });
  private range: [number, number] = [0, 1];
  private traces: { marks: Mark[] } = { marks: [] };

  constructor(
    readonly look: Look,
    private readonly colors: Colors,
    hands: Hands,
    width: number,
  ) {
    const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = look.color;
    const title = make("figcaption", { title: look.description }, swatch, look.name, " ", this.reading);
    const body = make("div", { class: "canvas", "aria-hidden": "true" });
    this.element = make("figure", { class: "strip", "aria-label": `trace of ${look.name}` }, title, body);
    this.plot = new uPlot(this.options(hands, width), [[], [], []], body);
    this.plot.over.addEventListener("dblclick", () => hands.release());
    this.plot.over.addEventListener(
      "wheel",
      (event) => {
        // Without a key the wheel scrolls the page.
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        const around = this.plot.posToVal(event.offsetX, "x");
        hands.scale(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, around);
      },
      { passive: false },
    );
  }

  /** Draws these points of a column. */
  draw(traces: Traces, column: number, range: [number, number]): void {
    this.range = range;
    this.traces = traces;
    const there = (list: number[]) => list.map((number) => (Number.isNaN(number) ? null : number));
    const { min, max } = traces;
    this.plot.setData([traces.time, there(max[column] ?? []), there(min[column] ?? [])], false);
    this.plot.batch(() => {
      this.plot.setScale("x", { min: range[0], max: range[1] });
    });
    this.read();
  }

  resize(width: number): void {
    this.plot.setSize({ width, height: this.look.height });
  }

  /** The value below the cursor, or the newest one. */
  read(): void {
    const [time, max, min] = this.plot.data;
    const at = this.plot.cursor.idx ?? (time?.length ?? 0) - 1;
    const [low, high] = [min?.[at], max?.[at]];
    const { unit } = this.look;
    if (at < 0 || time?.[at] === undefined) return say(this.reading, "no rows");
    if (low == null || high == null) return say(this.reading, "failed");
    const values = low === high ? value(low, unit) : `${value(low, unit)} … ${value(high, unit)}`;
    say(this.reading, this.plot.cursor.idx == null ? values : `${values} at ${si(time[at]!, "s", 7)}`);
  }

  private options(hands: Hands, width: number): uPlot.Options {
    const { look, colors } = this;
    const paths: uPlot.Series.PathBuilder = (plot, series, first, last) => (this.isDense ? null : lines(plot, series, first, last));
    const line: uPlot.Series = { stroke: look.color, width: WIDTH, points: { size: 4, fill: look.color }, paths };
    const axis = { stroke: colors.text, font: colors.font, grid: { stroke: colors.grid, width: 1 }, ticks: { show: false } };
    return {
      width,
      height: look.height,
      legend: { show: false },
      padding: [6, 12, look.last ? 0 : 6, 0],
      cursor: {
        sync: { key: "strips", scales: ["x", null] },
        drag: { x: true, y: false, setScale: false },
        points: { show: false },
        y: false,
        bind: { dblclick: () => null },
      },
      scales: {
        x: { time: false, range: () => this.range },
        y: { range: (_, low, high) => around(low, high) },
      },
      series: [{}, line, { ...line }],
      bands: [{ series: [1, 2], fill: look.color.replace(")", " / 0.4)") }],
      axes: [
        { ...axis, size: look.last ? 30 : 0, values: (_, splits, __, ___, step) => (look.last ? labels(splits, step, "s") : []) },
        { ...axis, size: 70, space: 22, values: (_, splits, __, ___, step) => labels(splits, step, look.unit) },
      ],
      hooks: {
        drawSeries: [(_, series) => series === 1 && this.fill()],
        draw: [() => this.mark()],
        setCursor: [() => this.read()],
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (width < 4) return;
            hands.zoom(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
      },
    };
  }

  /** The points that are in the picture. */
  private get inside(): [number, number] {
    return this.plot.series[0]!.idxs ?? [0, -1];
  }

  /** Whether these are more than there are pixels: bars are drawn of them, and no lines. */
  private get isDense(): boolean {
    const [first, last] = this.inside;
    return last - first > this.plot.bbox.width / devicePixelRatio;
  }

  private fill(): void {
    if (!this.isDense) return;
    const { ctx, bbox, data } = this.plot;
    const [time, high, low] = data as [number[], (number | null)[], (number | null)[]];
    const edge = bbox.left + bbox.width - 1;
    // The newest point is at the very edge, where nothing would be seen of it.
    const x = (at: number) => {
      const exact = this.plot.valToPos(at, "x", true);
      return at <= this.range[1] ? Math.min(exact, edge) : exact;
    };
    const y = (value: number) => this.plot.valToPos(value, "y", true);
    const one = devicePixelRatio;
    const width = WIDTH * one;
    // One point more at each side: what is drawn there goes on beyond the edge.
    const [first, last] = this.inside;
    const drawn = bars({ time, low, high }, [first - 1, last + 1], x, y, 4 * one);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = ctx.strokeStyle = this.look.color;
    for (const { left, right, top, bottom } of drawn.bars) ctx.fillRect(left, top - width / 2, right - left, bottom - top + width);
    ctx.lineWidth = width;
    ctx.beginPath();
    for (const [x1, y1, x2, y2] of drawn.lines) {
      ctx.moveTo(x1, y1);
      ctx.lineTo(x2, y2);
    }
    ctx.stroke();
    ctx.restore();
  }

  /** Missed triggers hang from above, lost rows stand below. */
  private mark(): void {
    const { ctx, bbox } = this.plot;
    const one = devicePixelRatio;
    for (const { from, to, missed, lost } of this.traces.marks) {
      if (to < this.range[0] || from > this.range[1]) continue;
      const [left, right] = [from, to].map((time) => this.plot.valToPos(time, "x", true)) as [number, number];
      const start = Math.max(left, bbox.left);
      const width = Math.max(Math.min(right, bbox.left + bbox.width) - start, one);
      ctx.save();
      for (const [number, color, above] of [
        [missed, this.colors.missed, true],
        [lost, this.colors.lost, false],
      ] as const) {
        if (number === 0) continue;
        ctx.fillStyle = color;
        // A place that is known less well is paler.
        ctx.globalAlpha = width < bbox.width / 50 ? 0.25 : 0.08;
        ctx.fillRect(start, bbox.top, width, bbox.height);
        ctx.globalAlpha = 1;
        const middle = start + width / 2;
        const [edge, tip] = above ? [bbox.top, bbox.top + 8 * one] : [bbox.top + bbox.height, bbox.top + bbox.height - 8 * one];
        ctx.beginPath();
        ctx.moveTo(middle - 4 * one, edge);
        ctx.lineTo(middle + 4 * one, edge);
        ctx.lineTo(middle, tip);
        ctx.fill();
      }
      ctx.restore();
    }
  }
}

/** A mark in words. */
export function words({ from, missed, lost }: Mark): string {
  const parts = [missed > 0 ? `${count(missed)} missed` : "", lost > 0 ? `${count(lost)} lost` : ""];
  return `${parts.filter(Boolean).join(", ")} at ${si(from, "s", 6)}`;
}

/** A little more than from the least to the greatest value. */
function around(low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [0, 1];
  const more = high > low ? (high - low) * 0.08 : Math.abs(high) * 0.05 || 1;
  return [low - more, high + more];
}
