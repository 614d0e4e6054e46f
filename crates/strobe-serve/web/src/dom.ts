// SPDX-License-Identifier: MIT OR Apache-2.0
// Elements of the page.

type Attributes = Record<string, string | boolean | ((event: Event) => void)>;

/** An element with attributes, what is called on events (`onclick`), and children. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") element.toggleAttribute(name, value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** The element of this id, which the page has. */
export function the<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no ${id}`);
  return element as T;
}

/** Sets a text, if it is another one: what is unchanged is not read out again. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** A line at the bottom for some seconds, which is read out. */
export function tell(text: string, bad = false): void {
  const line = make("p", { class: bad ? "bad" : "good" }, text);
  the("told").replaceChildren(line);
  setTimeout(() => line.remove(), bad ? 15_000 : 5_000);
}

/** Tells why something was refused. */
export function refuse(error: unknown): void {
  tell(error instanceof Error ? error.message : String(error), true);
}
