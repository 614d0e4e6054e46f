// SPDX-License-Identifier: MIT OR Apache-2.0
// @ts-check
/**
 * Draws what strobe._live sends: a strip for each channel, a red line where rows are missing, and the account above. It loads
 * nothing. A picture that was drawn is acknowledged, so that the next one is sent when this browser is ready for it.
 *
 * @typedef {{number: number, count: number, seconds: number, bounds: ([number, number] | null)[], rows: number, missed: number,
 *   lost: number, end: string, bad: boolean}} Said
 * @typedef {{get(name: string): any, set(name: string, value: unknown): void, save_changes(): void,
 *   on(event: string, call: () => void): void, off(event: string, call: () => void): void}} Model
 */

const HEIGHT = 44;
const SPACE = 8;
// Where the values are said, and where the names.
const LEFT = 170;
const RIGHT = 80;
const BLUE = "#4c8dd6";
const RED = "#d62728";

/** @param {{model: Model, el: HTMLElement}} where */
function render({ model, el }) {
  const head = document.createElement("div");
  const canvas = document.createElement("canvas");
  head.className = "strobe-account";
  canvas.className = "strobe-live";
  canvas.style.width = "100%";
  el.append(head, canvas);
  let asked = 0;

  const draw = () => {
    asked = 0;
    /** @type {Said} */
    const said = model.get("said");
    write(head, said);
    paint(canvas, said, model.get("channels"), floats(model.get("points")));
    canvas.dataset["number"] = String(said.number);
    canvas.dataset["drawn"] = String(Number(canvas.dataset["drawn"] ?? 0) + 1);
    if (model.get("drawn") < said.number) {
      model.set("drawn", said.number);
      model.save_changes();
    }
  };
  // Of pictures that come while the browser is busy, the newest is drawn.
  const ask = () => {
    asked ||= requestAnimationFrame(draw);
  };
  const wide = new ResizeObserver(ask);
  wide.observe(el);
  model.on("change:said", ask);
  ask();
  return () => {
    model.off("change:said", ask);
    wide.disconnect();
    cancelAnimationFrame(asked);
  };
}

/** @param {DataView | undefined} bytes */
function floats(bytes) {
  if (!bytes) return new Float32Array();
  // A view of whole numbers of four begins where they may.
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

/** @param {HTMLElement} head @param {Said} said */
function write(head, said) {
  const missing = [said.missed ? `${said.missed} triggers missed` : "", said.lost ? `${said.lost} rows not seen here` : ""];
  const end = document.createElement("span");
  const loud = document.createElement("b");
  loud.style.color = RED;
  loud.textContent = missing.filter(Boolean).join(", ");
  end.textContent = said.end;
  if (said.bad) end.style.color = RED;
  const rows = said.rows ? `up to row ${said.rows - 1}` : "no rows yet";
  head.replaceChildren(...[rows, loud, end].filter((part) => typeof part === "string" || part.textContent).flatMap((part) => [part, " "]));
}

/**
 * The points: time before the newest, whether something is missing there, and of each channel the least and the greatest value,
 * as a part of its bounds.
 * @param {HTMLCanvasElement} canvas @param {Said} said @param {[string, string][]} channels @param {Float32Array} points
 */
function paint(canvas, said, channels, points) {
  const width = Math.max(LEFT + RIGHT + 100, canvas.clientWidth);
  const height = channels.length * (HEIGHT + SPACE) + SPACE + 16;
  const fine = devicePixelRatio;
  if (canvas.width !== Math.round(width * fine) || canvas.height !== Math.round(height * fine)) {
    canvas.width = Math.round(width * fine);
    canvas.height = Math.round(height * fine);
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.setTransform(fine, 0, 0, fine, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px sans-serif";
  const text = getComputedStyle(canvas).color;
  const across = width - LEFT - RIGHT;
  const count = said.count;
  /** @param {number} part */
  const column = (part) => points.subarray(part * count, (part + 1) * count);
  const times = column(0);
  const gaps = column(1);
  const x = Array.from(times, (time) => LEFT + (1 + time / said.seconds) * across);
  channels.forEach(([name, unit], number) => {
    const top = number * (HEIGHT + SPACE) + SPACE;
    pen.strokeStyle = RED;
    pen.lineWidth = 1;
    pen.beginPath();
    x.forEach((at, place) => {
      if (!gaps[place]) return;
      pen.moveTo(at, top);
      pen.lineTo(at, top + HEIGHT);
    });
    pen.stroke();
    const least = column(2 + 2 * number);
    const greatest = column(3 + 2 * number);
    pen.strokeStyle = BLUE;
    pen.lineCap = pen.lineJoin = "round";
    pen.beginPath();
    let open = false;
    x.forEach((at, place) => {
      const [low, high] = [least[place] ?? NaN, greatest[place] ?? NaN].map((part) => top + HEIGHT * (1 - part));
      if (low === undefined || high === undefined || Number.isNaN(low)) {
        open = false;
        return;
      }
      if (open && !gaps[place]) pen.lineTo(at, low);
      else pen.moveTo(at, low);
      // A point alone is a line too: its ends are round.
      pen.lineTo(at, high);
      open = true;
    });
    pen.stroke();
    pen.fillStyle = text;
    pen.textAlign = "right";
    pen.fillText(unit ? `${name} / ${unit}` : name, LEFT - 6, top + HEIGHT / 2 + 4, LEFT - 8);
    pen.textAlign = "left";
    const bounds = said.bounds[number];
    if (!bounds) {
      if (count) pen.fillText("no value", LEFT + across / 2, top + HEIGHT / 2 + 4);
      return;
    }
    pen.fillText(brief(bounds[1]), LEFT + across + 6, top + 9);
    if (bounds[1] > bounds[0]) pen.fillText(brief(bounds[0]), LEFT + across + 6, top + HEIGHT);
  });
  pen.fillText(`the last ${brief(said.seconds)} s`, LEFT, height - 4);
}

/**
 * In five digits, and no longer than there is room for.
 * @param {number} value
 */
function brief(value) {
  const text = String(Number(value.toPrecision(5)));
  return text.length <= 10 ? text : value.toExponential(4);
}

export default { render };
