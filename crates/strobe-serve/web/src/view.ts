// SPDX-License-Identifier: MIT OR Apache-2.0
// What the strips show of a run: the newest rows as they come, or a part that was chosen.

import type { Api } from "./api";
import { Live, RATE } from "./live";
import { locate } from "./locate";
import type { Message } from "./message";
import { isOver, type RunView } from "./model";
import { Traces } from "./traces";

/** Points that are asked for at once; a screen has about so many columns. */
const POINTS = 1500;
const AGAIN_MS = 1000;

interface Still {
  from: number;
  to: number;
  traces: Traces;
}

export class View {
  run: RunView | undefined;
  columns: string[] = [];
  /** Seconds that are shown of a live run; Infinity: all of it. */
  window = 10;
  still: Still | undefined;
  /** Rows that this page's connection has lost. */
  lost = 0;
  private traces = new Traces(0);
  private live: Live | undefined;
  private again: ReturnType<typeof setTimeout> | undefined;
  /** What was asked for before is not wanted any more when this has changed. */
  private turn = 0;
  private zoomed = 0;
  private busy = Promise.resolve();

  constructor(
    private readonly api: Api,
    private readonly changed: () => void,
    private readonly heard: (run: RunView) => void,
  ) {}

  /** Shows these channels of a run. */
  show(run: RunView | undefined, columns: string[]): void {
    if (run?.id !== this.run?.id) {
      this.lost = 0;
      if (run && isOver(run)) this.window = Infinity;
    }
    this.run = run;
    this.columns = columns;
    this.still = undefined;
    this.open();
  }

  /** Shows so many of the newest seconds. */
  last(window: number): void {
    this.window = window;
    this.still = undefined;
    this.open();
  }

  /** What is drawn. */
  get drawn(): Traces {
    return this.still?.traces ?? this.traces;
  }

  /** From when to when, in seconds since the start of the run. */
  get range(): [number, number] {
    if (this.still) return [this.still.from, this.still.to];
    const newest = this.traces.newest ?? 0;
    const from = Number.isFinite(this.window) ? newest - this.window : (this.traces.time[0] ?? 0);
    return [from, newest > from ? newest : from + 1];
  }

  /** The picture stands still, while the run goes on. */
  hold(): void {
    const [from, to] = this.range;
    if (!this.still) void this.zoom(from, to);
  }

  /** Shows what is new again. */
  release(): void {
    this.still = undefined;
    this.zoomed++;
    this.changed();
  }

  /** Shows a part, with the rows that the daemon has of it. */
  zoom(from: number, to: number): Promise<void> {
    return (this.busy = this.fetch(from, to));
  }

  /** Resolves when nothing is asked for any more. */
  async settled(): Promise<void> {
    for (let busy; busy !== this.busy; ) await (busy = this.busy);
  }

  private async fetch(from: number, to: number): Promise<void> {
    if (!this.run || !(to > from)) return;
    this.still = { from, to, traces: this.drawn };
    this.changed();
    const zoomed = ++this.zoomed;
    const found = await this.part(from, to);
    if (!found || zoomed !== this.zoomed) return;
    const traces = Traces.of(found);
    this.still = { from, to, traces };
    this.changed();
    traces.marks = await locate(found, (a, b) => this.ask(a, b, 2), (found.end - found.first) / POINTS);
    if (zoomed === this.zoomed) this.changed();
  }

  /** A part so many times as long, around its middle or a time. */
  scale(factor: number, around?: number): Promise<void> {
    const [from, to] = this.range;
    const middle = around ?? (from + to) / 2;
    return this.zoom(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  /** The part beside it, by a share of its length. */
  move(share: number): Promise<void> {
    const [from, to] = this.range;
    return this.zoom(from + (to - from) * share, to + (to - from) * share);
  }

  private open(): void {
    const turn = ++this.turn;
    this.zoomed++;
    clearTimeout(this.again);
    this.live?.close();
    this.live = undefined;
    this.traces = new Traces(this.columns.length);
    this.changed();
    const later = () => {
      if (turn === this.turn) this.again = setTimeout(() => this.open(), AGAIN_MS);
    };
    if (this.run && this.columns.length > 0) this.busy = this.follow(turn, this.run, later).catch(later);
  }

  private async follow(turn: number, run: RunView, later: () => void): Promise<void> {
    const back = Number.isFinite(this.window) ? this.window * this.pace : Infinity;
    const traces = this.traces;
    let from = Math.floor(Math.max(run.oldest, run.next - back));
    const whole = run.next - from;
    // Meanwhile more rows come: the second time they are few.
    for (let tries = 0; tries < 3 && run.next - from > whole / 100; tries++) {
      const points = Math.ceil((POINTS * (run.next - from)) / whole);
      const message = await this.ask(from, run.next, points);
      const marks = await locate(message, (a, b) => this.ask(a, b, 2), (message.end - message.first) / points);
      run = await this.api.run(run.id);
      if (turn !== this.turn) return;
      traces.append(message, marks);
      from = message.end;
      this.changed();
    }
    if (isOver(run) && from >= run.next) return;
    // More than are seen: the first message may have the rows of some more time.
    const points = Number.isFinite(this.window) ? Math.ceil((2 * POINTS) / (this.window * RATE)) : 8;
    const wanted = { from: traces.end ?? ("now" as const), columns: this.columns, points: Math.min(points, 1000) };
    this.live = new Live(this.api.live(run.id), wanted, {
      run: (now) => {
        this.run = now;
        this.heard(now);
      },
      rows: (message) => {
        traces.append(message);
        if (Number.isFinite(this.window)) traces.forget((traces.newest ?? 0) - this.window);
        if (!this.still) this.changed();
      },
      lost: (a, b) => (this.lost += b - a),
      closed: () => {
        if (!this.run || !isOver(this.run)) later();
      },
    });
  }

  /** Rows a second. */
  private get pace(): number {
    const { info, rows, elapsed_s } = this.run!;
    return info.period_ns ? 1e9 / info.period_ns : elapsed_s > 0 ? rows / elapsed_s : 1;
  }

  private ask(from: number, to: number, points: number): Promise<Message> {
    return this.api.trace(this.run!.id, from, to, points, this.columns);
  }

  /** The rows of a time. The rows near it are known; when they were is not, before they are here. */
  private async part(from: number, to: number): Promise<Message | undefined> {
    const { oldest, next } = this.run!;
    const bound = (row: number) => Math.min(Math.max(row, oldest), next);
    let first = bound(Math.floor(this.rowAt(from)));
    let end = bound(Math.ceil(this.rowAt(to)) + 1);
    let found: Message | undefined;
    for (let tries = 0; tries < 4; tries++) {
      if (end <= first) return found;
      found = await this.ask(first, end, POINTS);
      const earlier = (found.time[0] ?? from) - from;
      const later = to - (found.time.at(-1) ?? to) - (to - from) / POINTS;
      const [before, after] = [first, end];
      if (earlier > 0) first = bound(Math.floor(first - earlier * this.pace * 1.2) - 1);
      if (later > 0) end = bound(Math.ceil(end + later * this.pace * 1.2) + 1);
      if (first === before && end === after) return found;
    }
    return found;
  }

  private rowAt(time: number): number {
    for (const { time: times, row } of [this.drawn, this.traces]) {
      const after = times.findIndex((at) => at > time);
      if (after > 0) {
        const [t0, t1, r0, r1] = [times[after - 1]!, times[after]!, row[after - 1]!, row[after]!];
        return r0 + ((time - t0) / (t1 - t0)) * (r1 - r0);
      }
    }
    const known = this.traces.newest === undefined ? this.drawn : this.traces;
    return (known.row.at(-1) ?? 0) + (time - (known.newest ?? 0)) * this.pace;
  }
}
