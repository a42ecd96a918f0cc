// An experiment: its arms and the verdict that may be looked at as often as one likes.

import { count, h, percent, titled } from "./dom.js";

const interval = (one) => (one ? `${percent(one.low)} to ${percent(one.high)}` : "–");

export function experimentCard(experiment) {
  const row = (arm) => h("tr", {},
    h("th", { scope: "row" }, arm.name, h("span", { class: "quiet block" }, `version ${arm.version}${arm.shadow ? ", in the shadow" : `, ${percent(arm.share, 0)} of the people`}`)),
    h("td", { class: "right" }, count(arm.people)),
    h("td", { class: "right" }, arm.hit_rate === null ? "–" : percent(arm.hit_rate), h("span", { class: "quiet block" }, interval(arm.hit_interval))),
    h("td", { class: "right" }, arm.conversion === null ? "–" : percent(arm.conversion), h("span", { class: "quiet block" }, interval(arm.conversion_interval))));
  return titled("experiment-title", "Experiment",
    h("p", { class: "quiet" }, "Everybody always sees the same arm. The intervals hold at every moment, so looking often does no harm. Conversions count once a person's day is over."),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Arms" }, h("table", {},
      h("thead", {}, h("tr", {}, ["arm", "people", "hit rate@20", "conversion"].map((name, n) => h("th", { scope: "col", class: n ? "right" : null }, name)))),
      h("tbody", {}, experiment.arms.map(row)))),
    h("ul", { class: "plain" }, experiment.verdicts.map((one) => h("li", {}, h("span", {}, one.sentence), h("span", { class: `badge ${one.decided ? "current" : ""}` }, one.decided ? "decided" : "still open")))));
}
