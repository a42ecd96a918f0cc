// Categories of the catalogue as chips to filter by; nothing where there are none.

import { about } from "./api.js";
import { encoded, fill, h } from "./dom.js";

export async function categoryChips(place, chosen) {
  const { categories } = await about();
  if (!categories?.length) return;
  let now = null;
  const paint = () => fill(place, h("div", { class: "chips filter", role: "group", "aria-label": "Filter" }, categories.map((one) => {
    const on = now === one;
    return h("button", { class: "chip", "aria-pressed": String(on), "data-key": one.rule, "data-group": "filter", onclick: () => {
      now = on ? null : one;
      paint();
      chosen(now && { rules: [now.rule], query: `&where=${encoded(now.rule)}` });
    } }, one.name, h("span", { class: "quiet" }, String(one.items)));
  })));
  paint();
}
