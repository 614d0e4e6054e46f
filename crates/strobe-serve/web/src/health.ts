// SPDX-License-Identifier: MIT OR Apache-2.0
// The doctor's notes of the machine: what stands in the way of regular rows, and what mends it.

import { make } from "./dom";
import type { Note } from "./model";

const SIGNS = { ok: "✓", advice: "!", unknown: "?" };
const ORDER = ["advice", "unknown", "ok"];

/** Shows them; what is as it should be comes last, and closed. */
export function health(element: HTMLElement, notes: Note[]): void {
  const sorted = [...notes].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
  const item = ({ check, state, evidence, remedy }: Note) =>
    make(
      "li",
      { class: state },
      make("span", { class: "sign", role: "img", "aria-label": state }, SIGNS[state]),
      make("strong", {}, check),
      " ",
      evidence,
      ...(remedy ? [make("code", {}, remedy)] : []),
    );
  const good = sorted.filter(({ state }) => state === "ok");
  const others = sorted.filter(({ state }) => state !== "ok");
  const rest = make("details", {}, make("summary", {}, `${good.length} as they should be`), make("ul", {}, ...good.map(item)));
  element.replaceChildren(make("ul", {}, ...others.map(item)), rest);
}
