// A field to search with and what it finds: arrows walk through the results, Enter takes the first.

import { call, failure } from "./api.js";
import { details, encoded, fill, h, nameOf, thumbnail } from "./dom.js";

export function searchBox({ label, hint, find, entry }) {
  const id = `search-${label.replace(/\W+/g, "-").toLowerCase()}`;
  const results = h("ul", { class: "results", "aria-label": "Found" });
  const field = h("input", { id, type: "search", placeholder: hint, autocomplete: "off", spellcheck: "false", enterkeyhint: "search" });
  let asked = 0;
  let timer = 0;
  let found = [];
  let settled = Promise.resolve();
  const paint = () => fill(results, found.length ? found.map((one) => h("li", {}, entry(one))) : h("li", { class: "quiet" }, "Nothing found."));
  const search = () => {
    clearTimeout(timer);
    const mine = ++asked;
    settled = find(field.value.trim()).then(
      (some) => { if (mine === asked) { found = some; paint(); } },
      (error) => { if (mine === asked) fill(results, h("li", {}, failure(error))); },
    );
    return settled;
  };
  const takeFirst = async (event) => {
    event.preventDefault();
    await search(); // what was typed a moment ago counts too
    results.querySelector("button, a")?.click();
    field.select();
  };
  const walk = (event) => {
    if (event.key === "Enter" && document.activeElement === field) { takeFirst(event); return; }
    if (event.key === "Escape") { // the browser would clear the field too, and that would open the results again
      event.preventDefault();
      field.value = "";
      field.focus();
      search();
      box.classList.remove("open");
      return;
    }
    const stops = [field, ...results.querySelectorAll("button, a")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const place = stops.indexOf(document.activeElement);
    if (!step || place < 0) return;
    event.preventDefault();
    stops[Math.max(0, Math.min(stops.length - 1, place + step))].focus();
  };
  // On a small screen what was found covers the page, and only while one searches.
  const open = () => box.classList.add("open");
  const close = (event) => { if (!box.contains(event.target)) box.classList.remove("open"); };
  const box = h("div", { class: "search", onkeydown: walk, onfocusin: open }, h("label", { for: id }, label), field, results);
  document.addEventListener("pointerdown", function outside(event) {
    if (!box.isConnected) document.removeEventListener("pointerdown", outside);
    else close(event);
  });
  field.addEventListener("input", () => { open(); clearTimeout(timer); timer = setTimeout(search, 120); });
  search();
  box.repaint = paint; // what is marked may have changed
  box.search = search;
  box.leave = () => box.classList.remove("open");
  return box;
}

export const findItems = (filter = () => "") => async (text) => (await call(`/items?k=6&query=${encoded(text)}${filter()}`)).items;

export const found = (item, mark = null) => [thumbnail(item), h("span", { class: "words" }, h("span", { class: "name" }, nameOf(item)), h("span", { class: "quiet" }, details(item))), mark];
