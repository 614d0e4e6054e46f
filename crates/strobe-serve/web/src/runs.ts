// SPDX-License-Identifier: MIT OR Apache-2.0
// The list of runs.

import { make, say } from "./dom";
import type { RunView } from "./model";
import { count } from "./words";

export class Runs {
  all: RunView[] = [];
  private shown = "";

  constructor(
    private readonly element: HTMLElement,
    private readonly chosen: (run: RunView) => void,
  ) {}

  /** Shows these, and which one is chosen. */
  show(all: RunView[], current: number | undefined): void {
    this.all = all;
    const focused = (document.activeElement as HTMLElement | null)?.dataset["run"];
    const ids = JSON.stringify([all.map((run) => run.id), current]);
    if (ids !== this.shown) {
      this.shown = ids;
      this.element.replaceChildren(...all.map((run) => this.item(run, run.id === current)));
      if (focused) this.element.querySelector<HTMLElement>(`[data-run="${focused}"]`)?.focus();
      if (all.length === 0) this.element.append(make("li", { class: "empty" }, "No run yet."));
    }
    for (const run of all) this.update(run);
  }

  /** The run that is so many places after this one. */
  beside(current: number | undefined, step: number): RunView | undefined {
    const at = this.all.findIndex((run) => run.id === current);
    return this.all[at + step];
  }

  private item(run: RunView, current: boolean): HTMLElement {
    const choose = () => this.chosen(this.all.find(({ id }) => id === run.id) ?? run);
    const button = make(
      "button",
      { type: "button", "data-run": `${run.id}`, onclick: choose },
      make("span", { class: "name" }, `${run.id} ${run.name}`),
      make("span", { class: "state" }),
      make("span", { class: "rows" }),
    );
    if (current) button.setAttribute("aria-current", "true");
    return make("li", {}, button);
  }

  private update(run: RunView): void {
    const button = this.element.querySelector(`[data-run="${run.id}"]`);
    const [, state, rows] = button?.children ?? [];
    if (!state || !rows) return;
    say(state, run.state);
    state.className = `state ${run.state}`;
    const missed = run.missed > 0 ? [`${count(run.missed)} missed`] : [];
    const lost = run.lost > 0 ? [`${count(run.lost)} lost`] : [];
    say(rows, [`${count(run.rows)} rows`, ...missed, ...lost].join(", "));
    rows.classList.toggle("bad", run.missed + run.lost > 0);
  }
}
