// Items: the boards of the shop, search, and what is like what.

import { about, call } from "./api.js";
import { categoryChips } from "./categories.js";
import { count, details, encoded, facts, fill, h, itemLink, nameOf, scored, show, skeleton, small, thumbnail } from "./dom.js";
import { findItems, found, searchBox } from "./search.js";
import { like } from "./try.js";

const BOARDS = [["popular", "Popular"], ["trending", "Trending"], ["new", "New"]];

const itemSearch = (where = () => "") => {
  const box = searchBox({
    label: "Find an item", hint: "words of a name", find: findItems(where),
    entry: (one) => h("a", { class: "result", href: `#/items/${encoded(one.item)}` }, found(one)),
  });
  return { box, card: h("section", { class: "card", "aria-label": "Search" }, box) };
};

const MEASURE = { popular: (one) => (one.score === undefined ? "" : `${count(one.score)} people`), trending: (one) => `${small(one.score)} times the usual`, new: () => "" };

export async function items({ current }) {
  let where = null;
  let board = "popular";
  const search = itemSearch(() => where?.query ?? "");
  const chips = h("div", { class: "categories" });
  const tabs = h("div", { class: "chips filter", role: "group", "aria-label": "Board" });
  const place = h("div", {}, skeleton(6));
  let asked = 0;
  const { boards = [] } = await about();
  const shown = BOARDS.filter(([name]) => boards.includes(name));
  const paint = async () => {
    const mine = ++asked;
    fill(tabs, shown.map(([name, label]) => h("button", { class: "chip", "data-key": name, "data-group": "board", "aria-pressed": String(name === board), onclick: () => { board = name; paint(); } }, label)));
    const answer = await call(`/${boards.includes(board) ? board : "items"}?k=10${where?.query ?? ""}`).catch((error) => ({ error }));
    if (mine !== asked || !current()) return;
    if (answer.error) { fill(place, h("p", { class: "notice" }, answer.error.message)); return; }
    fill(place, answer.items.length
      ? h("ol", { class: "list" }, answer.items.map((one, n) => h("li", { class: "entry" }, h("div", { class: "head" }, h("span", { class: "rank", "aria-hidden": "true" }, String(n + 1)), thumbnail(one), h("div", { class: "what" }, itemLink(one), h("span", { class: "quiet" }, details(one))), h("span", { class: "number" }, MEASURE[board](one))))))
      : h("p", { class: "quiet" }, board === "trending" ? "Nothing rises clearly more than by chance." : "Nothing to show."));
  };
  show(h("h1", {}, "Items"), h("p", { class: "lead" }, "What people take now, and what is like what."),
    h("div", { class: "columns" }, h("div", {}, search.card), h("section", { class: "card", "aria-label": "Board" }, tabs, chips, place)));
  categoryChips(chips, (chosen) => { where = chosen; search.box.search(); paint(); });
  await paint();
}

export async function item({ current, id }) {
  const model = await about();
  const answer = await call(`/items/${encoded(id)}/similar?k=${Math.min(12, model.data.items)}`).catch((error) => {
    if (error.status === 404) return null;
    throw error;
  });
  if (!current()) return;
  if (!answer) {
    show(h("h1", {}, id), h("p", { class: "lead" }, "No item has this id. It may have been removed, or come with a later update."), h("div", { class: "narrow" }, itemSearch().card));
    return;
  }
  const one = answer.item;
  const take = () => { like(one); location.hash = "#/try"; };
  const picture = thumbnail(one, "large");
  show(
    h("div", { class: "item-head" }, picture, h("div", {},
      h("h1", {}, nameOf(one)),
      h("dl", { class: "facts" }, facts(one).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, String(value))))),
      h("p", {}, h("button", { class: "primary", onclick: take }, "I like it")))),
    h("div", { class: "columns" },
      h("div", {}, itemSearch().card),
      h("section", { class: "card", "aria-labelledby": "similar-title" }, h("h2", { id: "similar-title" }, "Similar items"), scored(answer.items.map((other) => ({ link: itemLink(other), quiet: details(other), score: other.score }))))));
}
