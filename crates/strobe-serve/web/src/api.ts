// SPDX-License-Identifier: MIT OR Apache-2.0
// Calls to the daemon that has sent the page; to nobody else.

import { decode, type Message } from "./message";
import type { About, Catalogue, Lateness, Note, Recipe, RunView } from "./model";

const TOKEN = "strobe-token";
const TRIES = 10;

/** What the daemon has refused, and why. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    said: { object?: string; reason?: string; remedy?: string | null },
  ) {
    const { object, reason, remedy } = said;
    super([object, reason ?? `refused (${status})`].filter(Boolean).join(": ") + (remedy ? `; ${remedy}` : ""));
  }
}

export class Api {
  /** Kept until the tab is closed. */
  get token(): string {
    return sessionStorage.getItem(TOKEN) ?? "";
  }
  set token(token: string) {
    sessionStorage.setItem(TOKEN, token);
  }

  about = () => this.json<About>("GET", "");
  runs = async () => (await this.json<{ runs: RunView[] }>("GET", "/runs")).runs;
  run = (id: number) => this.json<RunView>("GET", `/runs/${id}`);
  health = async (): Promise<Note[]> => {
    const said = await this.json<Note[] | { notes: Note[] }>("GET", "/health");
    return Array.isArray(said) ? said : said.notes;
  };
  recipes = async () => (await this.json<{ recipes: Recipe[] }>("GET", "/recipes")).recipes;
  catalogue = () => this.json<{ kernel: Catalogue | null; user: Catalogue }>("GET", "/catalogue");
  late = (id: number) => this.json<Lateness | null>("GET", `/runs/${id}/late?bins=48`);

  create = (recipe: { recipe: string } | { name: string }) => this.json<RunView>("POST", "/runs", recipe);
  control = (id: number, verb: string, said?: unknown) => this.json<RunView>("POST", `/runs/${id}/${verb}`, said);
  remove = (id: number) => this.json<null>("DELETE", `/runs/${id}`);
  tune = (id: number, name: string, value: string) => this.json<RunView>("POST", `/runs/${id}/tune`, { name, value });
  set = (outputs: Record<string, number>) => this.json<unknown>("POST", "/set", { outputs });

  /** Rows of a run, in so many points at most. */
  async trace(id: number, from: number, to: number, points: number, columns: string[]): Promise<Message> {
    const query = new URLSearchParams({ from: `${from}`, to: `${to}`, points: `${points}`, columns: columns.join(",") });
    const answer = await this.call("GET", `/runs/${id}/trace?${query}`);
    return decode(await answer.arrayBuffer());
  }

  /** Where the WebSocket of a run is. */
  live(id: number): string {
    const url = new URL(`api/runs/${id}/live`, location.href);
    url.protocol = url.protocol.replace("http", "ws");
    if (this.token) url.searchParams.set("token", this.token);
    url.hash = "";
    return url.href;
  }

  private async json<T>(method: string, path: string, said?: unknown): Promise<T> {
    const answer = await this.call(method, path, said);
    return answer.status === 204 ? (null as T) : ((await answer.json()) as T);
  }

  private async call(method: string, path: string, said?: unknown): Promise<Response> {
    const headers: Record<string, string> = {};
    if (this.token) headers["Authorization"] = `Bearer ${this.token}`;
    const request: RequestInit = { method, headers };
    if (method === "POST") {
      headers["Content-Type"] = "application/json";
      request.body = JSON.stringify(said ?? {});
    }
    let answer = await fetch(`api${path}`, request);
    // Asked too often: it was not done.
    for (let tries = 0; answer.status === 429 && tries < TRIES; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      answer = await fetch(`api${path}`, request);
    }
    if (!answer.ok) throw new Refusal(answer.status, await answer.json().catch(() => ({})));
    return answer;
  }
}
