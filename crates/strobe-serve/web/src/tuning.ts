// SPDX-License-Identifier: MIT OR Apache-2.0
// New values for the tunables of a run.

import type { Api } from "./api";
import { make, refuse, say, tell, the } from "./dom";
import { isOver, type RunView } from "./model";

export class Tuning {
  private run: RunView | undefined;
  private shown = "";

  constructor(
    private readonly api: Api,
    /** Called with the run that was tuned. */
    private readonly changed: (run: RunView) => void,
  ) {
    the<HTMLFormElement>("tune-form").onsubmit = (event) => {
      event.preventDefault();
      void this.tune().catch(refuse);
    };
    the<HTMLSelectElement>("tunable").onchange = () => this.unit();
  }

  /** Offers the tunables of this run. */
  show(run: RunView): void {
    this.run = run;
    const names = run.own && !isOver(run) ? (run.info.tunables ?? []) : [];
    const shown = JSON.stringify([run.id, names]);
    if (shown === this.shown) return;
    this.shown = shown;
    the("tunable").replaceChildren(...names.map((name) => make("option", { value: name }, name)));
    the<HTMLInputElement>("tuned").value = "";
    the("tunables").hidden = names.length === 0;
    this.unit();
  }

  /** Says in which unit a number is. */
  private unit(): void {
    const name = the<HTMLSelectElement>("tunable").value;
    // What is derived stands last: a channel before it may have this name.
    const unit = this.run?.info.channels.filter((channel) => channel.name === name).at(-1)?.unit;
    say(the("tuned-unit"), unit ? `A number is in ${unit}; another unit may follow it.` : "A number has no unit here.");
  }

  private async tune(): Promise<void> {
    if (!this.run) return;
    const { id } = this.run;
    const name = the<HTMLSelectElement>("tunable").value;
    const value = the<HTMLInputElement>("tuned").value.trim();
    const button = the<HTMLButtonElement>("tune");
    // One after the other, for the later value is to stay.
    button.disabled = true;
    try {
      this.changed(await this.api.tune(id, name, value));
      tell(`Run ${id}: ${name} is ${value} from the next row on`);
    } finally {
      button.disabled = false;
    }
  }
}
