// SPDX-License-Identifier: MIT OR Apache-2.0
// The page: what is on it, and what happens when somebody does something.

import "uplot/dist/uPlot.min.css";
import "./page.css";

import { account } from "./account";
import { Api, Refusal } from "./api";
import { Control } from "./control";
import { make, refuse, say, the } from "./dom";
import { health } from "./health";
import { followKeys, named, type Key } from "./keys";
import { lateness } from "./lateness";
import { columnNames, isOver, type About, type RunView } from "./model";
import { Runs } from "./runs";
import { Strips } from "./strips";
import { followTheme, switchTheme } from "./theme";
import { Tuning } from "./tuning";
import { View } from "./view";
import { rate } from "./words";

const CHANNELS = 16;
const LOOK_MS = 1000;
const HEALTH_MS = 60_000;

const api = new Api();
let about: About | undefined;
let current: RunView | undefined;
/** Of each run, the channels that are shown. */
const chosen = new Map<number, string[]>();

const view = new View(api, () => draw(), (run) => heard(run));
const hands = {
  zoom: (from: number, to: number) => void view.zoom(from, to).catch(refuse),
  release: () => view.release(),
  scale: (factor: number, around: number) => void view.scale(factor, around).catch(refuse),
};
const strips = new Strips(the("strips"), the("marks"), view, hands);
const runs = new Runs(the("runs"), (run) => choose(run));
const control = new Control(api, (run) => {
  if (run && run.id !== current?.id) choose(run);
  else if (run) heard(run);
  else choose(undefined);
  void look();
});
const tuning = new Tuning(api, (run) => heard(run));

function draw(): void {
  the("hold").setAttribute("aria-pressed", `${view.still !== undefined}`);
  const window = the<HTMLSelectElement>("window");
  if (document.activeElement !== window) window.value = `${view.window}`;
  strips.soon();
}

function choose(run: RunView | undefined): void {
  current = run;
  if (run) location.replace(`#run=${run.id}`);
  runs.show(runs.all, run?.id);
  const names = columnNames(run?.info.channels ?? []);
  const columns = run ? (chosen.get(run.id) ?? names.slice(0, CHANNELS)) : [];
  channels(names, columns);
  view.show(run, columns);
  strips.build(run, columns);
  the("run").hidden = run === undefined;
  the("nothing").hidden = run !== undefined;
  if (run) heard(run);
  void late();
}

/** The boxes with which channels are chosen. */
function channels(names: string[], columns: string[]): void {
  const boxes = names.map((name) => {
    const box = make("input", { type: "checkbox", value: name });
    box.checked = columns.includes(name);
    box.onchange = () => {
      const boxes = the("channels").querySelectorAll<HTMLInputElement>("input:checked");
      const columns = [...boxes].map((box) => box.value);
      if (!current) return;
      chosen.set(current.id, columns);
      view.show(current, columns);
      strips.build(current, columns);
    };
    return make("label", {}, box, name);
  });
  the("channels").replaceChildren(...boxes);
}

/** The newest of the run that is shown. */
function heard(run: RunView): void {
  if (run.id !== current?.id) return;
  const ended = !isOver(current) && isOver(run);
  current = run;
  say(the("run-name"), `${run.id} ${run.name}`);
  say(the("run-state"), run.state);
  the("run-state").className = `state ${run.state}`;
  const { engine, event, period_ns } = run.info;
  const often = rate(period_ns);
  say(the("run-about"), [event, event.endsWith(often.replace(" ", "")) ? "" : often, `${engine} engine`].filter(Boolean).join(", "));
  account(the("account"), run, view.lost);
  if (about?.role === "control") control.show(the("verbs"), run);
  tuning.show(run);
  if (ended) void late();
}

async function late(): Promise<void> {
  const run = current;
  if (!run) return;
  const found = await api.late(run.id).catch(() => undefined);
  if (found !== undefined && run.id === current?.id) lateness(the("late"), found);
}

/** Looks what runs there are, and who is asked. */
async function look(): Promise<void> {
  const { token } = api;
  try {
    if (!about) await enter();
    const all = await api.runs();
    runs.show(all, current?.id);
    const here = all.find((run) => run.id === current?.id);
    if (here) {
      view.run = here;
      heard(here);
    } else {
      const wanted = Number(/^#run=(\d+)$/.exec(location.hash)?.[1]);
      const next = all.find((run) => run.id === wanted) ?? all.find((run) => !isOver(run)) ?? all.at(-1);
      if (next || current || the("nothing").hidden) choose(next);
    }
    if (current && !isOver(current)) void late();
    connected(true);
  } catch (error) {
    const isRefused = error instanceof Refusal && error.status === 401;
    // That of before was refused, which says nothing of the one that was entered meanwhile.
    if (isRefused && token !== api.token) return;
    if (isRefused) askForToken();
    connected(false);
  }
}

async function enter(): Promise<void> {
  about = await api.about();
  say(the("machine"), about.machine);
  document.title = `strobe on ${about.machine}`;
  say(the("role"), about.role === "control" ? "control" : "view only");
  document.body.classList.toggle("control", about.role === "control");
  void examine();
  const { kernel, user } = await api.catalogue();
  const outputs = [...(kernel?.outputs ?? []), ...user.outputs];
  control.outputs(outputs.filter(({ name }, place) => outputs.findIndex((other) => other.name === name) === place));
}

async function examine(): Promise<void> {
  const notes = await api.health().catch(() => undefined);
  if (notes) health(the("health"), notes);
}

function connected(is: boolean): void {
  say(the("connection"), is ? "" : "no connection; trying again");
  document.body.classList.toggle("away", !is);
}

function askForToken(): void {
  const dialog = the<HTMLDialogElement>("enter");
  if (dialog.open) return;
  dialog.showModal();
  the<HTMLFormElement>("enter-form").onsubmit = () => {
    api.token = the<HTMLInputElement>("token").value;
    about = undefined;
    void look();
  };
}

const hold = () => (view.still ? view.release() : view.hold());
const scale = (factor: number) => () => void view.scale(factor).catch(refuse);
const move = (share: number) => () => void view.move(share).catch(refuse);
const theme = () => switchTheme(rebuild);
const rebuild = () => strips.build(current, view.columns);
const help = () => the<HTMLDialogElement>("help").showModal();
const step = (by: number) => () => {
  const run = runs.beside(current?.id, by);
  if (run) choose(run);
};
const press = (verb: string) => () => the("verbs").querySelector<HTMLElement>(`[data-verb=${verb}]`)?.click();
const create = () => {
  if (about?.role === "control") void control.open();
};

const keys: Key[] = [
  { keys: [" "], about: "hold the picture, and let it go", press: hold },
  { keys: ["+", "="], about: "show a shorter part", press: scale(0.5) },
  { keys: ["-"], about: "show a longer part", press: scale(2) },
  { keys: ["ArrowLeft"], about: "show what was before", press: move(-0.5) },
  { keys: ["ArrowRight"], about: "show what came after", press: move(0.5) },
  { keys: ["l", "Escape"], about: "show the newest rows", press: () => view.release() },
  { keys: ["j"], about: "next run", press: step(1) },
  { keys: ["k"], about: "run before", press: step(-1) },
  { keys: ["n"], about: "new run", press: create },
  { keys: ["s"], about: "stop the run (asks first)", press: press("stop") },
  { keys: ["t"], about: "dark or light", press: theme },
  { keys: ["?"], about: "this help", press: help },
];

function listen(): void {
  the("hold").onclick = hold;
  the("longer").onclick = scale(2);
  the("shorter").onclick = scale(0.5);
  the("before").onclick = move(-0.5);
  the("after").onclick = move(0.5);
  the("newest").onclick = () => view.release();
  the("theme").onclick = theme;
  the("help-open").onclick = help;
  the("new-open").onclick = create;
  the("examine").onclick = () => void examine();
  const window = the<HTMLSelectElement>("window");
  window.onchange = () => view.last(Number(window.value));
  the("keys").replaceChildren(
    ...keys.flatMap(({ keys, about }) => [
      make("dt", {}, ...keys.map((key) => make("kbd", {}, named(key)))),
      make("dd", {}, about),
    ]),
  );
  followKeys(keys);
  followTheme(rebuild);
}

async function run(): Promise<void> {
  if (!document.hidden) await look();
  setTimeout(() => void run(), LOOK_MS);
}

// For tests: what is drawn, as it is handed to the canvas.
Object.assign(globalThis, { strobe: { view, strips, current: () => current } });

listen();
void run();
setInterval(() => void examine(), HEALTH_MS);
