// SPDX-License-Identifier: MIT OR Apache-2.0
// Numbers for people.

const PREFIXES = ["p", "n", "µ", "m", "", "k", "M", "G", "T"];

/** A whole number, in groups of three digits. */
export function count(number: number): string {
  return Math.round(number).toString().replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** With a prefix of its unit, and so many digits that count. */
export function si(value: number, unit: string, digits = 4): string {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return `0 ${unit}`.trim();
  const size = Math.floor(Math.log10(Math.abs(value)) / 3 + 1e-9);
  const step = Math.max(-4, Math.min(4, size));
  const number = Number((value / 1000 ** step).toPrecision(digits));
  // Rounded up to the next prefix.
  if (Math.abs(number) >= 1000 && step < 4) return si(Math.sign(value) * 1000 ** (step + 1), unit, digits);
  return `${number} ${PREFIXES[step + 4]}${unit}`.trim();
}

/** Units that take a prefix, and those that are one with a prefix. Others stay as they are. */
const UNITS = new Set(["s", "V", "A", "W", "Hz", "B", "m", "Pa", "T", "N", "J", "F", "H", "Ohm", "Ω", "g", "bit"]);
const TIMES: Record<string, number> = { ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3 };

/** A unit that takes a prefix, and its values as multiples of the given one; `undefined`: no prefix suits it. */
export function base(unit: string): { unit: string; factor: number } | undefined {
  const factor = TIMES[unit];
  return factor ? { unit: "s", factor } : UNITS.has(unit) ? { unit, factor: 1 } : undefined;
}

/** A value of a channel. */
export function value(number: number, unit: string): string {
  if (!Number.isFinite(number)) return "failed";
  const whole = base(unit);
  if (whole) return si(number * whole.factor, whole.unit);
  const digits = Number.isInteger(number) && Math.abs(number) < 1e15 ? count(number) : String(Number(number.toPrecision(6)));
  return `${digits} ${unit}`.trim();
}

/** Labels of an axis: as many digits as tell them apart. */
export function labels(splits: number[], step: number, unit: string): string[] {
  const whole = base(unit);
  const factor = whole?.factor ?? 1;
  const largest = Math.max(...splits.map(Math.abs)) * factor;
  const exponent = largest > 0 ? 3 * Math.floor(Math.log10(largest) / 3 + 1e-9) : 0;
  // Numbers without a prefix are said in full, unless they are too long.
  const power = whole ? Math.max(-12, Math.min(12, exponent)) : Math.abs(exponent) > 6 ? exponent : 0;
  const suffix = whole ? si(10 ** power, whole.unit).replace(/^1 ?/, "") : `${power ? `e${power} ` : ""}${unit}`;
  const scaled = (step * factor) / 10 ** power;
  let digits = 0;
  while (digits < 9 && Math.abs(scaled * 10 ** digits - Math.round(scaled * 10 ** digits)) > 1e-6) digits++;
  const space = suffix.startsWith("e") ? "" : " ";
  return splits.map((number) => `${((number * factor) / 10 ** power).toFixed(digits)}${space}${suffix}`.trim());
}

/** Seconds. */
export function span(seconds: number): string {
  if (seconds < 60) return si(seconds, "s", 3);
  const whole = Math.floor(seconds);
  const two = (number: number) => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return `${hours > 0 ? `${hours}:${two(minutes)}` : minutes}:${two(whole % 60)} ${hours > 0 ? "h" : "min"}`;
}

/** Bytes. */
export function bytes(number: number): string {
  return si(number, "B", 3);
}

/** How often the event comes. */
export function rate(period_ns: number | null): string {
  return period_ns ? si(1e9 / period_ns, "Hz") : "";
}
