// SPDX-License-Identifier: MIT OR Apache-2.0
// The traces of all chosen channels, one below the other, on one axis of time.

import { make } from "./dom";
import { columnNames, type RunView } from "./model";
import { Strip, words, type Colors, type Hands } from "./strip";
import type { Mark } from "./traces";
import type { View } from "./view";

const COLORS = 8;
const MARKS = 6;

export class Strips {
  strips: Strip[] = [];
  private waiting = false;
  private shown = "";

  constructor(
    private readonly element: HTMLElement,
    private readonly marks: HTMLElement,
    private readonly view: View,
    private readonly hands: Hands,
  ) {
    new ResizeObserver(() => {
      const width = this.width;
      for (const strip of this.strips) if (strip.plot.width !== width) strip.resize(width);
    }).observe(element);
  }

  /** Makes the strips of these channels of a run. */
  build(run: RunView | undefined, columns: string[]): void {
    for (const strip of this.strips) strip.plot.destroy();
    const colors = this.colors();
    const names = columnNames(run?.info.channels ?? []);
    this.strips = columns.map((name, index) => {
      const channel = run?.info.channels[names.indexOf(name)];
      const last = index === columns.length - 1;
      const look = {
        name,
        unit: channel?.unit ?? "",
        description: channel?.description ?? "",
        // The same channel has the same colour, whichever others are chosen.
        color: this.style(`--trace-${(names.indexOf(name) % COLORS) + 1}`),
        height: height(columns.length) + (last ? 30 : 0),
        last,
      };
      return new Strip(look, colors, this.hands, this.width);
    });
    this.element.replaceChildren(...this.strips.map((strip) => strip.element));
    this.soon();
  }

  /** Draws with the next frame, however often it was asked for before. */
  soon(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const { drawn, range } = this.view;
      this.strips.forEach((strip, column) => {
        if (drawn.columns === this.strips.length) strip.draw(drawn, column, range);
      });
      this.list(drawn.marks.filter((mark) => mark.to >= range[0] && mark.from <= range[1]));
    });
  }

  /** The marks in words; each shows its place. */
  private list(marks: Mark[]): void {
    const shown = JSON.stringify(marks);
    if (shown === this.shown) return;
    this.shown = shown;
    const buttons = marks.slice(-MARKS).map((mark) => {
      const around = Math.max(mark.to - mark.from, 1e-3);
      const zoom = () => this.hands.zoom(mark.from - around, mark.to + around);
      return make("button", { type: "button", class: mark.missed > 0 ? "missed" : "lost", onclick: zoom }, words(mark));
    });
    const more = marks.length > MARKS ? [`and at ${marks.length - MARKS} places before`] : [];
    this.marks.replaceChildren(...buttons, ...more);
  }

  private get width(): number {
    return Math.max(this.element.clientWidth, 200);
  }

  private colors(): Colors {
    const [text, grid, missed, lost] = ["--dim", "--grid", "--missed", "--lost"].map((name) => this.style(name)) as [string, string, string, string];
    return { text, grid, missed, lost, font: "11px system-ui, sans-serif" };
  }

  private style(name: string): string {
    return getComputedStyle(this.element).getPropertyValue(name).trim();
  }
}

function height(strips: number): number {
  return strips <= 1 ? 320 : strips === 2 ? 210 : strips <= 4 ? 140 : 96;
}
