// Live: events as they come and lists as they are answered.

import { call, failure } from "./api.js";
import { ago, fill, h, itemLink, milliseconds, nameOf, personLink, show, skeleton } from "./dom.js";

const EVERY = 2000; // milliseconds
const MOST = 30;

// A list that was asked for again at once, such as by a page that then wants its reasons, is one line.
function merged(lists) {
  const same = (one) => JSON.stringify([one.user, one.arm, one.model, one.items]);
  const lines = [];
  for (const one of lists) {
    const before = lines.at(-1);
    if (before && same(before) === same(one)) before.times += 1;
    else lines.push({ ...one, times: 1 });
  }
  return lines;
}

export async function live({ current, again }) {
  const events = h("ol", { class: "plain feed" }, skeleton(5));
  const lists = h("ol", { class: "plain feed" }, skeleton(5));
  const state = h("span", { class: "pulse" }, "live");
  let paused = false;
  const pause = h("button", { class: "plain-button", "aria-pressed": "false", onclick: () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    state.textContent = paused ? "paused" : "live";
    state.classList.toggle("still", paused);
  } }, "Pause");
  show(h("h1", {}, "Live"), h("p", { class: "lead" }, "Every event is on disk before it is acknowledged, and the very next list knows it."),
    h("p", { class: "row middle" }, state, pause),
    h("div", { class: "columns even" },
      h("section", { class: "card", "aria-labelledby": "events-title" }, h("h2", { id: "events-title" }, "Events"), events),
      h("section", { class: "card", "aria-labelledby": "lists-title" }, h("h2", { id: "lists-title" }, "Lists"), lists)));
  const look = async () => {
    const found = await call(`/feed?k=${MOST}`);
    if (!current() || paused) return;
    fill(events, found.events.length ? found.events.map((one) => h("li", { "data-number": one.number },
      h("span", {}, personLink(one.user), h("span", { class: "quiet" }, ` ${one.kind ?? "took"} `), itemLink(one)),
      h("span", { class: "quiet" }, ago(one.time)))) : h("li", { class: "quiet" }, "No event yet. Record one on a person's page."));
    fill(lists, found.lists.length ? merged(found.lists).map((one) => h("li", {},
      h("span", {}, one.user === null ? h("span", { class: "name" }, "somebody new") : personLink(one.user), h("span", { class: "quiet" }, " got "), one.items.length ? one.items.map((item, n) => [n ? ", " : "", nameOf(item)]) : "nothing", one.arm ? h("span", { class: "badge" }, one.arm) : null),
      h("span", { class: "quiet" }, `${one.times > 1 ? `${one.times} times · ` : ""}${milliseconds(one.milliseconds)} · ${ago(one.time)}`))) : h("li", { class: "quiet" }, "No list yet."));
  };
  try {
    await look();
  } catch (error) {
    if (current()) show(h("h1", {}, "Live"), failure(error, again));
    return;
  }
  const timer = setInterval(async () => {
    if (!current()) { clearInterval(timer); return; }
    if (paused || document.hidden) return;
    try {
      await look();
      state.textContent = paused ? "paused" : "live";
    } catch { state.textContent = "no answer; trying again"; }
  }, EVERY);
}
