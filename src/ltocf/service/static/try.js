// Try it: pick a few things, and the list follows each click.

import { about, failure, send } from "./api.js";
import { categoryChips } from "./categories.js";
import { fill, h, nameOf, say, show, titled, toast } from "./dom.js";
import { addReasons, listOf, waitingList, withoutReasons } from "./lists.js";
import { findItems, found, searchBox } from "./search.js";

const LIST = 10;

// What was picked and refused survives a reload.
const kept = (name) => {
  try {
    const found = JSON.parse(localStorage.getItem(name) ?? "[]");
    return Array.isArray(found) ? found.filter((item) => item && item.item !== undefined) : [];
  } catch { return []; }
};
const keep = () => {
  try {
    localStorage.setItem("picks", JSON.stringify(picks));
    localStorage.setItem("refused", JSON.stringify(refused));
  } catch { /* without storage they live until the next reload */ }
};
const slim = ({ item, name, about: more }) => ({ item: String(item), name, about: more });
const has = (some, item) => some.some((one) => String(one.item) === String(item.item));
const without = (some, item) => some.filter((one) => String(one.item) !== String(item.item));

let picks = kept("picks");
let refused = kept("refused");

export function like(item) {
  picks = [...without(picks, item), slim(item)];
  keep();
}

export async function tryIt({ current, again }) {
  const chosen = h("div", { class: "chips" });
  const place = h("div", { class: "listed" }, waitingList(5));
  const title = h("h2", { id: "list-title" }, "For you");
  const note = h("p", { class: "quiet", "data-note": true });
  let before = [];
  let asked = 0;
  let where = null;
  let shownPicks = 0;

  const pick = (item) => {
    const back = picks;
    picks = [...without(picks, item), slim(item)];
    toast(`Picked ${nameOf(item)}.`, () => { picks = back; return changed(); });
    changed();
  };
  const drop = (item) => {
    const back = picks;
    picks = without(picks, item);
    toast(`Removed ${nameOf(item)}.`, () => { picks = back; return changed(); });
    changed();
  };
  const refuse = (item) => {
    const back = refused;
    refused = [...without(refused, item), slim(item)];
    toast(`${nameOf(item)} will not be shown again.`, () => { refused = back; return changed(); });
    changed();
  };
  const bringBack = () => { refused = []; changed(); };

  const search = searchBox({
    label: "Find something", hint: "words of a name", find: findItems(() => where?.query ?? ""),
    entry: (item) => h("button", { class: "result", "data-key": item.item, "data-group": "results", "aria-pressed": String(has(picks, item)), onclick: () => { if (has(picks, item)) drop(item); else pick(item); } },
      found(item, has(picks, item) ? h("span", { class: "picked" }, h("span", { "aria-hidden": "true" }, "✓ "), "picked") : null)),
  });

  const body = (model, reasons) => ({
    history: picks.map((item) => item.item), k: Math.min(LIST, model.data.items), reasons,
    ...(refused.length && { exclude: refused.map((item) => item.item) }),
    ...(where && { where: where.rules }),
  });

  const changed = async () => {
    const mine = ++asked;
    const stale = () => mine !== asked || !current();
    keep();
    fill(chosen,
      picks.map((item) => h("button", { class: "chip", "data-key": item.item, "data-group": "chips", onclick: () => drop(item), "aria-label": `Remove ${nameOf(item)}` }, h("span", { class: "chip-name" }, nameOf(item)), h("span", { "aria-hidden": "true" }, "×"))),
      picks.length ? null : h("p", { class: "quiet" }, "Nothing yet. Pick a few things you like."),
      refused.length ? h("button", { class: "link", onclick: bringBack }, `Show again what was not for you (${refused.length})`) : null);
    if (picks.length > shownPicks) chosen.scrollLeft = chosen.scrollWidth; // on a small screen they are one line
    shownPicks = picks.length;
    search.repaint();
    place.setAttribute("aria-busy", "true");
    try {
      const model = await about();
      const [list] = (await send("/recommendations", body(model, false))).lists;
      if (stale()) return;
      const personal = list.source === "model";
      const explained = personal && model.explains && picks.length > 0;
      title.textContent = personal ? "For you" : "Popular now";
      note.textContent = !personal ? "You have no history yet: this is what is popular." : explained ? "Each bar is the whole score: how much of it comes from each of your picks." : "From your picks.";
      fill(place, list.items.length ? listOf(list, { pick, verb: "Pick", refuse, before, waiting: explained }) : h("p", { class: "quiet" }, "Nothing is left to show."));
      before = list.items.map((item) => String(item.item));
      place.removeAttribute("aria-busy");
      say(personal ? `${list.items.length} items for ${picks.length} picks, ${list.items[0]?.name ?? "none"} first` : "");
      if (!explained) return;
      const [why] = (await send("/recommendations", body(model, true)).catch((error) => {
        if (!stale()) withoutReasons(place.parentNode, `The reasons did not come: ${error.message}`);
        return { lists: [null] };
      })).lists;
      if (why && !stale() && !addReasons(place, why)) fill(place, listOf(why, { pick, verb: "Pick", refuse }));
    } catch (error) {
      if (stale()) return;
      place.removeAttribute("aria-busy");
      if (error.status === 404 && (picks.length || refused.length)) { // of another catalogue
        [picks, refused] = [[], []];
        toast("What you picked earlier is not in this catalogue.");
        changed();
      } else fill(place, failure(error, again));
    }
  };

  const chips = h("div", { class: "categories" });
  show(
    h("h1", {}, "What would you like?"),
    h("p", { class: "lead" }, "Pick a few things. The list follows each click, from a model that has never met you."),
    h("div", { class: "columns try" },
      h("div", { class: "side" },
        titled("picks-title", "Your picks", chosen),
        h("section", { class: "card", "aria-label": "Search" }, search)),
      h("section", { class: "card", "aria-labelledby": "list-title" }, title, note, chips, place)));
  categoryChips(chips, (chosenOne) => { where = chosenOne; search.search(); changed(); });
  await changed();
}
