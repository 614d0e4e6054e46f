// SPDX-License-Identifier: MIT OR Apache-2.0
// What the daemon says, as far as the page needs it. docs/reference/serve.md describes it.

export interface About {
  strobe: string;
  machine: string;
  role: "view" | "control";
}

export interface Channel {
  name: string;
  description: string;
  unit: string;
  type: "u64" | "s64" | "f64";
}

export interface RunInfo {
  engine: string;
  event: string;
  clock: string;
  period_ns: number | null;
  channels: Channel[];
  /** Names of the columns whose values can be changed while the run goes on; not said if there are none. */
  tunables?: string[];
}

export type State = "ready" | "running" | "paused" | "done" | "stopped" | "failed";

export interface RunView {
  id: number;
  name: string;
  own: boolean;
  state: State;
  info: RunInfo;
  rows: number;
  triggers: number;
  missed: number;
  missed_by: Record<string, number>;
  skipped: number;
  errors: number;
  lost: number;
  oldest: number;
  next: number;
  end: string | null;
  elapsed_s: number;
  spool: { bytes: number; error: string | null };
  readers: number;
}

export interface Catalogue {
  channels: Channel[];
  outputs: Channel[];
}

export interface Note {
  check: string;
  state: "ok" | "advice" | "unknown";
  evidence: string;
  remedy?: string | null;
}

export interface Lateness {
  unit: string;
  bins: [number, number, number][];
}

export interface Recipe {
  name: string;
  text: string;
}

/** Whether no more rows will come. */
export function isOver(run: RunView): boolean {
  return run.end !== null;
}

/** Names of the columns of a run: a channel that is read twice is `name` and `name#2`. */
export function columnNames(channels: { name: string }[]): string[] {
  const seen = new Map<string, number>();
  return channels.map(({ name }) => {
    const times = (seen.get(name) ?? 0) + 1;
    seen.set(name, times);
    return times === 1 ? name : `${name}#${times}`;
  });
}
