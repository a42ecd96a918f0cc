// A list with its reasons: the list at once, the reasons when they come.

import { details, digits, fill, h, itemLink, nameOf, skeleton, thumbnail } from "./dom.js";

const LEAST = 1e-9;

// Whole percentages that add up to 100.
export function shares(values) {
  const sum = values.reduce((all, value) => all + Math.abs(value), 0) || 1;
  const exact = values.map((value) => (100 * Math.abs(value)) / sum);
  const whole = exact.map(Math.floor);
  const order = exact.map((value, n) => [value - whole[n], n]).sort((a, b) => b[0] - a[0]);
  for (const [, n] of order.slice(0, 100 - whole.reduce((all, value) => all + value, 0))) whole[n] += 1;
  return { exact, whole };
}

// One bar: each part as long as its share of all that moved the score up or down.
export function reasonBar(reasons) {
  const parts = reasons.because.map((part, n) => ({ label: nameOf(part), value: part.contribution, kind: `part-${n % 3}` }));
  if (Math.abs(reasons.others) > LEAST) parts.push({ label: "the rest of the history", value: reasons.others, kind: "part-rest" });
  if (Math.abs(reasons.popularity ?? 0) > LEAST) parts.push({ label: "popular with everybody", value: reasons.popularity, kind: "part-rest" });
  if (Math.abs(reasons.own) > LEAST) parts.push({ label: "their own part", value: reasons.own, kind: "part-own" });
  for (const [name, value] of Object.entries(reasons.added ?? {})) parts.push({ label: name, value, kind: "part-own" });
  const { exact, whole } = shares(parts.map((part) => part.value));
  const sign = (part) => (part.value < 0 ? "−" : "");
  const stack = h("span", { class: "stack", "aria-hidden": "true" }, parts.map((part, n) => {
    const piece = h("span", { class: `part ${part.kind}${part.value < 0 ? " against" : ""}`, title: `${part.label}: ${sign(part)}${whole[n]} %` });
    piece.style.width = `${exact[n]}%`;
    return piece;
  }));
  return [
    h("div", { class: "measure" }, stack, h("span", { class: "total", title: "the score, which is the sum of the parts" }, `score ${digits(reasons.score)}`)),
    h("ul", { class: "shares" }, parts.map((part, n) => h("li", {}, h("span", { class: `key ${part.kind}${part.value < 0 ? " against" : ""}`, "aria-hidden": "true" }), h("span", { class: "because" }, part.label), h("span", { class: "share" }, `${sign(part)}${whole[n]} %`)))),
    reasons.sentence ? h("p", { class: "quiet" }, reasons.sentence) : null,
  ];
}

// How far an item moved since the list before.
function movement(item, before) {
  if (!before?.length) return null;
  const was = before.indexOf(String(item.item)) + 1;
  if (was === item.rank) return null;
  if (!was) return h("span", { class: "moved new" }, "new");
  const up = was > item.rank;
  return h("span", { class: `moved ${up ? "up" : "down"}` }, h("span", { "aria-hidden": "true" }, up ? "▲" : "▼"), h("span", { class: "hidden" }, up ? "up " : "down "), String(Math.abs(was - item.rank)));
}

const mark = (item) => (item.cold ? h("span", { class: "badge" }, "new here") : item.boosted ? h("span", { class: "badge" }, "boosted") : null);

export function listOf(list, { pick, verb, refuse, before, waiting }) {
  return h("ol", { class: "list" }, list.items.map((item) => h("li", { class: "entry", "data-item": item.item },
    h("div", { class: "head" },
      h("span", { class: "rank", "aria-hidden": "true" }, String(item.rank)),
      thumbnail(item),
      h("div", { class: "what" }, h("span", { class: "title" }, itemLink(item), mark(item), movement(item, before)), h("span", { class: "quiet" }, details(item))),
      refuse ? h("button", { class: "round refuse", onclick: () => refuse(item), "data-key": item.item, "data-group": "refuse", "aria-label": `Not for me: ${nameOf(item)}`, title: "Not for me" }, "×") : null,
      pick ? h("button", { class: "round add", onclick: () => pick(item), "data-key": item.item, "data-group": "add", "aria-label": `${verb} ${nameOf(item)}`, title: verb }, "+") : null),
    h("div", { class: "reasons" }, item.reasons ? reasonBar(item.reasons) : waiting ? skeleton(1, "reason") : null))));
}

export const waitingList = (lines) => h("div", { class: "list", "aria-hidden": "true" }, Array.from({ length: lines }, () => h("div", { class: "entry" }, h("div", { class: "head" }, skeleton(1, "dot"), h("div", { class: "what" }, skeleton(1), skeleton(1, "short"))), skeleton(1, "reason"))));

// Put the reasons into a list that is shown; false if it is another list by now.
export function addReasons(place, list) {
  const entries = [...place.querySelectorAll(".entry[data-item]")];
  const same = entries.length === list.items.length && list.items.every((item, n) => entries[n].dataset.item === String(item.item));
  if (same) list.items.forEach((item, n) => fill(entries[n].querySelector(".reasons"), item.reasons ? reasonBar(item.reasons) : null));
  return same;
}

export function withoutReasons(place, text) {
  for (const skeleton of place.querySelectorAll(".reasons .skeleton")) skeleton.remove();
  const note = place.querySelector("[data-note]");
  if (note) note.textContent = text;
}
