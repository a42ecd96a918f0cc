// Which view an address shows.

import { failure } from "./api.js";
import { dismiss, h, main, say, show, skeleton } from "./dom.js";
import { item, items } from "./items.js";
import { live } from "./live.js";
import { model } from "./model.js";
import { people, person } from "./people.js";
import { tryIt } from "./try.js";

const VIEWS = new Map([
  ["try", { title: "Try it", view: tryIt }],
  ["people", { title: "People", view: people, one: person }],
  ["items", { title: "Items", view: items, one: item }],
  ["live", { title: "Live", view: live }],
  ["model", { title: "Model", view: model }],
]);
const START = new Set(["", "main"]); // the skip link is no view
let visit = 0; // counts the views shown, so that a late answer does not paint over a newer view

// An address that somebody typed may hold a % that encodes nothing.
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

const NOTHING = {
  title: "Nothing is here",
  view: () => show(
    h("h1", {}, NOTHING.title),
    h("p", { class: "lead" }, "This page has no view at ", h("code", {}, decoded(location.hash)), ". It has these:"),
    h("ul", { class: "card plain narrow" }, [...VIEWS].map(([name, { title }]) => h("li", {}, h("a", { href: `#/${name}`, class: "name" }, title))))),
};

async function route() {
  const shown = ++visit;
  const current = () => shown === visit;
  const address = location.hash.replace(/^#\/*/, "");
  const [name, ...rest] = START.has(address) ? ["try"] : address.split("/");
  const known = VIEWS.has(name) ? name : null;
  const { title, view, one } = VIEWS.get(known) ?? NOTHING;
  const id = one && rest.length && rest[0] !== "" ? decoded(rest.join("/")) : undefined;
  document.title = `${id ?? title} – ltocf`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === known) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  say("");
  dismiss();
  show(h("h1", {}, id ?? title), h("div", { class: "card" }, skeleton(4)));
  try {
    await (id === undefined ? view : one)({ current, again: route, id });
  } catch (error) {
    if (current()) show(h("h1", {}, id ?? title), failure(error, route));
  }
}

addEventListener("hashchange", () => {
  if (location.hash === "#main") { main.focus(); return; } // the skip link is no view
  route();
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || /^(input|textarea)$/i.test(document.activeElement.tagName)) return;
  const field = main.querySelector("input[type=search]");
  if (field) { event.preventDefault(); field.focus(); }
});
route();
