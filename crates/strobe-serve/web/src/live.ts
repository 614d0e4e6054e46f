// SPDX-License-Identifier: MIT OR Apache-2.0
// The connection that brings new rows of one run.

import { decode, type Message } from "./message";
import type { RunView } from "./model";

/** Messages a second. */
export const RATE = 20;

export interface Wanted {
  from: number | "now";
  columns: string[];
  /** Of each message, at most. */
  points: number;
}

/** Called with what has come. */
export interface Ears {
  run(run: RunView): void;
  rows(message: Message): void;
  lost(from: number, to: number): void;
  /** It has ended, for this reason if there is one. */
  closed(why: string): void;
}

export class Live {
  private readonly socket: WebSocket;

  constructor(url: string, wanted: Wanted, ears: Ears) {
    this.socket = new WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => this.socket.send(JSON.stringify({ ...wanted, policy: "latest", rate: RATE }));
    this.socket.onclose = (event) => ears.closed(event.reason);
    this.socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (typeof data !== "string") return ears.rows(decode(data));
      const said = JSON.parse(data) as { run?: RunView; lost?: [number, number] };
      if (said.run) ears.run(said.run);
      if (said.lost) ears.lost(...said.lost);
    };
  }

  close(): void {
    this.socket.onclose = this.socket.onmessage = null;
    this.socket.close();
  }
}
