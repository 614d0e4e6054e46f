// SPDX-License-Identifier: MIT OR Apache-2.0
// What the role control may do: make, start and stop runs, and set outputs.

import type { Api } from "./api";
import { make, refuse, tell, the } from "./dom";
import { isOver, type Channel, type Recipe, type RunView, type State } from "./model";

const SAMPLE = `event = "timer:1kHz"
read = ["sim.sine", "sim.ramp", "sim.noise", "clock.late"]
engine = "user"
`;

/** What can be done with a run in a state. */
const VERBS: Record<State, string[]> = {
  ready: ["start", "stop"],
  running: ["pause", "stop"],
  paused: ["resume", "stop"],
  done: [],
  stopped: [],
  failed: [],
};

export class Control {
  private recipes: Recipe[] = [];
  private shown = "";

  constructor(
    private readonly api: Api,
    /** Called with a run that has changed; `undefined`: one has gone. */
    private readonly changed: (run: RunView | undefined) => void,
  ) {
    const choice = the<HTMLSelectElement>("recipe");
    choice.onchange = () => this.choose(choice.value);
    the("new-cancel").onclick = () => the<HTMLDialogElement>("new").close();
    the<HTMLFormElement>("new-form").onsubmit = (event) => {
      event.preventDefault();
      void this.create();
    };
    the<HTMLFormElement>("set-form").onsubmit = (event) => {
      event.preventDefault();
      void this.set();
    };
  }

  /** The buttons for a run. */
  show(element: HTMLElement, run: RunView): void {
    const verbs = run.own ? [...VERBS[run.state]] : [];
    if (run.own && run.state === "running" && run.info.event === "soft") verbs.unshift("trigger");
    if (isOver(run)) verbs.push("remove");
    const shown = JSON.stringify([run.id, verbs]);
    if (shown === this.shown) return;
    this.shown = shown;
    element.replaceChildren(
      ...verbs.map((verb) => {
        const press = () => void this.press(run.id, run.name, verb).catch(refuse);
        return make("button", { type: "button", "data-verb": verb, onclick: press }, verb[0]!.toUpperCase() + verb.slice(1));
      }),
    );
  }

  async press(id: number, name: string, verb: string): Promise<void> {
    if (verb === "stop" && !(await ask(`Stop run ${id} ${name}?`, "Its rows stay, but it cannot go on.", "Stop"))) return;
    if (verb === "remove") {
      if (!(await ask(`Remove run ${id} ${name}?`, "Its rows are given up.", "Remove"))) return;
      await this.api.remove(id);
      return this.changed(undefined);
    }
    this.changed(await this.api.control(id, verb, verb === "trigger" ? { count: 1 } : undefined));
  }

  /** Opens the form of a new run. */
  async open(): Promise<void> {
    the<HTMLDialogElement>("new").showModal();
    this.recipes = await this.api.recipes().catch((error: unknown) => {
      refuse(error);
      return [];
    });
    const choice = the<HTMLSelectElement>("recipe");
    const options = this.recipes.map(({ name }) => make("option", { value: name }, name));
    choice.replaceChildren(make("option", { value: "" }, "a text of my own"), ...options);
    const first = this.recipes[0]?.name ?? "";
    choice.value = first;
    this.choose(first);
  }

  private choose(name: string): void {
    const text = the<HTMLTextAreaElement>("recipe-text");
    text.value = this.recipes.find((recipe) => recipe.name === name)?.text ?? SAMPLE;
  }

  private async create(): Promise<void> {
    const name = the<HTMLSelectElement>("recipe").value;
    const text = the<HTMLTextAreaElement>("recipe-text").value;
    const unchanged = this.recipes.some((recipe) => recipe.name === name && recipe.text === text);
    try {
      const run = await this.api.create(unchanged ? { name } : { recipe: text });
      the<HTMLDialogElement>("new").close();
      this.changed(run);
    } catch (error) {
      refuse(error);
    }
  }

  /** Offers these outputs. */
  outputs(outputs: Channel[]): void {
    const choice = the<HTMLSelectElement>("output");
    const chosen = choice.value;
    choice.replaceChildren(...outputs.map(({ name, description }) => make("option", { value: name, title: description }, name)));
    if (outputs.some(({ name }) => name === chosen)) choice.value = chosen;
    the("outputs").hidden = outputs.length === 0;
  }

  private async set(): Promise<void> {
    const name = the<HTMLSelectElement>("output").value;
    const value = the<HTMLInputElement>("output-value").valueAsNumber;
    try {
      await this.api.set({ [name]: value });
      tell(`${name} is set to ${value}`);
    } catch (error) {
      refuse(error);
    }
  }
}

/** Asks before something is done that cannot be undone. */
function ask(title: string, about: string, yes: string): Promise<boolean> {
  const dialog = the<HTMLDialogElement>("ask");
  the("ask-title").textContent = title;
  the("ask-about").textContent = about;
  the("ask-yes").textContent = yes;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue === "yes");
  });
}
