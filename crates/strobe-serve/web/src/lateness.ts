// SPDX-License-Identifier: MIT OR Apache-2.0
// The histogram of lateness: how long after it was due a row was made. Both axes are logarithmic, so that the one late
// row in a million is seen.

import { make } from "./dom";
import type { Lateness } from "./model";
import { count, si } from "./words";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, FOOT] = [320, 120, 18];

function draw(name: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, `${value}`);
  element.textContent = text;
  return element;
}

/** Shows it; `null`: the event is never due. */
export function lateness(element: HTMLElement, late: Lateness | null): void {
  const shown = JSON.stringify(late);
  if (element.dataset["shown"] === shown) return;
  element.dataset["shown"] = shown;
  const bins = late?.bins ?? [];
  const filled = bins.filter(([, , number]) => number > 0);
  const [low, high] = [filled[0], filled.at(-1)];
  if (!late || !low || !high) {
    element.replaceChildren(make("p", { class: "empty" }, late ? "No rows yet." : "The event of this run is never due."));
    return;
  }
  const used = bins.slice(bins.indexOf(low), bins.indexOf(high) + 1);
  const most = Math.max(...used.map(([, , number]) => number));
  const rows = used.reduce((sum, [, , number]) => sum + number, 0);
  const time = (ns: number) => si(ns / 1e9, "s", 3);
  const words = `${count(rows)} rows, late by ${time(low[0])} to ${time(high[1])}`;
  const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT + FOOT}`, role: "img", "aria-label": words });
  const step = WIDTH / used.length;
  used.forEach(([from, to, number], place) => {
    if (number === 0) return;
    // One row is still seen.
    const height = (HEIGHT * Math.log10(1 + 9 * number)) / Math.log10(1 + 9 * most);
    const bar = draw("rect", { x: place * step + 0.5, y: HEIGHT - height, width: Math.max(step - 1, 0.5), height });
    bar.append(draw("title", {}, `${time(from)} to ${time(to)}: ${count(number)}`));
    svg.append(bar);
  });
  const middle = used[Math.floor(used.length / 2)]!;
  svg.append(
    draw("line", { x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }),
    draw("text", { x: 0, y: HEIGHT + 14 }, time(low[0])),
    draw("text", { x: WIDTH / 2, y: HEIGHT + 14, "text-anchor": "middle" }, time(middle[0])),
    draw("text", { x: WIDTH, y: HEIGHT + 14, "text-anchor": "end" }, time(high[1])),
  );
  element.replaceChildren(svg, make("p", { class: "about" }, words));
}
