// SPDX-License-Identifier: MIT OR Apache-2.0
// What can be done by keys alone. Each is said in the page's help.

export interface Key {
  keys: string[];
  about: string;
  press: () => void;
}

/** Names of keys, for people. */
const NAMES: Record<string, string> = { " ": "Space", ArrowLeft: "←", ArrowRight: "→" };

export function named(key: string): string {
  return NAMES[key] ?? key;
}

/** Calls these, unless somebody types a text. */
export function followKeys(keys: Key[]): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const target = event.target as HTMLElement;
    // What a closed dialog has taken away has the focus until the next frame; nobody types there.
    if (target.checkVisibility()) {
      if (target.closest("input, textarea, select, dialog")) return;
      // A button is pressed by the space bar.
      if (event.key === " " && target.closest("button, summary")) return;
    }
    const key = keys.find(({ keys }) => keys.includes(event.key));
    if (!key) return;
    event.preventDefault();
    key.press();
  });
}
