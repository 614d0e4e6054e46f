// SPDX-License-Identifier: MIT OR Apache-2.0
// The account of a run: triggers = rows + missed + skipped, by cause, and where its rows are.

import { make } from "./dom";
import type { RunView } from "./model";
import { bytes, count, span } from "./words";

interface Line {
  name: string;
  text: string;
  about: string;
  bad?: boolean;
  part?: boolean;
}

/** Shows the account of a run, and what this page has lost of it. */
export function account(element: HTMLElement, run: RunView, lostHere: number): void {
  const number = (name: string, value: number, about: string, bad = false, part = false): Line => ({
    name,
    text: count(value),
    about,
    bad: bad && value > 0,
    part,
  });
  const lines: Line[] = [
    number("triggers", run.triggers, "occurrences of the event"),
    number("rows", run.rows, "triggers that made a row"),
    number("missed", run.missed, "triggers that made no row", true),
    ...Object.entries(run.missed_by).map(([cause, value]) => number(cause, value, `missed, because of: ${cause}`, true, true)),
    number("skipped", run.skipped, "triggers that were left out on purpose"),
    number("errors", run.errors, "rows in which a channel or an output failed", true),
    number("lost", run.lost, "rows that the ring lost before they were in the spool", true),
    number("lost here", lostHere, "rows that this page was too slow for", true),
    { name: "kept", text: `${count(run.oldest)} to ${count(run.next)}, ${bytes(run.spool.bytes)}`, about: "rows that can be read" },
    { name: "readers", text: count(run.readers), about: "clients that read the run" },
    { name: "time", text: span(run.elapsed_s), about: "since its start" },
  ];
  if (run.end) lines.push({ name: "end", text: run.end, about: "how it ended", bad: run.end.startsWith("failed") });
  if (run.spool.error) lines.push({ name: "spool", text: run.spool.error, about: "why rows are not on disk", bad: true });
  const shown = JSON.stringify(lines);
  if (element.dataset["shown"] === shown) return;
  element.dataset["shown"] = shown;
  element.replaceChildren(...lines.flatMap(({ name, text, about, bad, part }) => {
    const kind = [bad ? "bad" : "", part ? "part" : ""].join(" ").trim();
    return [make("dt", { title: about, class: kind }, name), make("dd", { class: kind, "data-account": name }, text)];
  }));
}
