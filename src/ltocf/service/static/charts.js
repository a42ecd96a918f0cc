// Small charts of lines and bars, and a line of times.

import { h, small } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [420, 220, 62, 12, 14, 32];

function framed({ title, note, label, text, low, high, first, last, written = small }, drawn, legend) {
  const py = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const px = (value) => LEFT + ((value - first) / (last - first || 1)) * (WIDTH - LEFT - RIGHT);
  const axis = h("g", { class: "axis" },
    [low, (low + high) / 2, high].map((value) => [h("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: py(value), y2: py(value) }), h("text", { x: LEFT - 6, y: py(value) + 4, "text-anchor": "end" }, written(value))]),
    [...new Set([first, last])].map((value, n) => h("text", { x: px(value), y: HEIGHT - 10, "text-anchor": n ? "end" : "start" }, small(value))),
    h("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 10, "text-anchor": "middle" }, label));
  return h("figure", { class: "card" },
    h("figcaption", {}, h("h3", {}, title), note ? h("p", { class: "quiet" }, note) : null),
    h("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": text }, axis, drawn(px, py)),
    legend);
}

export function chart({ title, note, x, curves, label, written }) {
  const all = curves.flatMap((curve) => curve.y).filter(Number.isFinite);
  let [low, high] = [Math.min(...all), Math.max(...all)];
  if (high - low < 1e-12) [low, high] = [low - 0.5, high + 0.5];
  const path = (y, px, py) => y.map((value, n) => (Number.isFinite(value) ? `${n && Number.isFinite(y[n - 1]) ? "L" : "M"}${px(x[n]).toFixed(1)} ${py(value).toFixed(1)}` : "")).join("");
  const legend = curves.length > 1 ? h("p", { class: "legend quiet" }, curves.map((curve, n) => h("span", {}, h("span", { class: `key curve-key-${n}`, "aria-hidden": "true" }), curve.name))) : null;
  const settings = { title, note, label, written, low, high, first: Math.min(...x), last: Math.max(...x), text: `${title}: from ${small(curves[0].y[0])} to ${small(curves[0].y.at(-1))}` };
  return framed(settings, (px, py) => curves.map((curve, n) => h("path", { class: `curve curve-${n}`, d: path(curve.y, px, py) })), legend);
}

export function columns({ title, note, x, y, label }) {
  const high = Math.max(...y, 1);
  const first = Math.min(...x) - 0.5;
  const last = Math.max(...x) + 0.5;
  const settings = { title, note, label, low: 0, high, first, last, text: `${title}: ${small(y.at(-1))} in the latest, ${small(high)} at most` };
  const wide = Math.max(1, ((WIDTH - LEFT - RIGHT) / (last - first)) * 0.75);
  return framed({ ...settings, first: Math.round(first + 0.5), last: Math.round(last - 0.5) || 0 }, (_, py) => {
    const px = (value) => LEFT + ((value - first) / (last - first)) * (WIDTH - LEFT - RIGHT);
    return y.map((value, n) => h("rect", { class: "column", x: px(x[n]) - wide / 2, width: wide, y: py(value), height: Math.max(0, HEIGHT - BOTTOM - py(value)), rx: 1.5 }));
  });
}

export function timeline(times) {
  const end = Math.floor(Math.max(...times)) + 1;
  const at = (time) => 16 + (time / end) * 388;
  const whole = [...Array(end + 1).keys()];
  return h("svg", { viewBox: "0 0 420 110", role: "img", "aria-label": `Read at ${times.map(small).join(", ")}` },
    h("g", { class: "axis" },
      h("line", { class: "track", x1: at(0), x2: at(end), y1: 55, y2: 55 }),
      whole.map((time) => [h("line", { x1: at(time), x2: at(time), y1: 50, y2: 60 }), h("text", { x: at(time), y: 82, "text-anchor": "middle" }, String(time))])),
    times.map((time) => [h("circle", { class: "dot", cx: at(time), cy: 55, r: 7 }), h("text", { class: "value", x: at(time), y: 36, "text-anchor": "middle" }, time.toFixed(2))]));
}

export const tiles = (pairs) => h("dl", { class: "tiles" }, pairs.map(([name, value, note]) => h("div", {}, h("dt", {}, name), h("dd", {}, value), note ? h("dd", { class: "quiet" }, note) : null)));
