// SPDX-License-Identifier: MIT OR Apache-2.0
// Dark or light: as the system has it, unless it is said here.

const KEY = "strobe-theme";
type Theme = "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");

function theme(): Theme {
  const said = localStorage.getItem(KEY);
  return said === "light" || said === "dark" ? said : system.matches ? "dark" : "light";
}

/** Sets the theme, and calls back whenever it changes. */
export function followTheme(changed: () => void): void {
  const apply = () => {
    document.documentElement.dataset["theme"] = theme();
    changed();
  };
  system.addEventListener("change", apply);
  document.documentElement.dataset["theme"] = theme();
}

/** The other one from now on. */
export function switchTheme(changed: () => void): void {
  const other = theme() === "dark" ? "light" : "dark";
  // What the system has needs no word.
  if (other === (system.matches ? "dark" : "light")) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, other);
  document.documentElement.dataset["theme"] = other;
  changed();
}
