// The model: for a shopkeeper first, for a researcher below.

import { asAdministrator, call, failure, forgetAbout, send } from "./api.js";
import { chart, columns, tiles, timeline } from "./charts.js";
import { ago, count, fill, h, milliseconds, percent, scored, show, titled, toast } from "./dom.js";
import { experimentCard } from "./experiment.js";

const ROUTES = 6; // shown at first
const rate = (line) => line.hits / line.events;

function verdict(update) {
  if (!update) return ["last update", "none yet", "the model is as it was trained"];
  const gain = update.events ? `hit rate@20 ${percent(update.old_hit_rate)} → ${percent(update.new_hit_rate)} on ${count(update.events)} events` : "nothing to check it on";
  const what = { used: "in use", refused: "refused: it was worse", candidate: "kept as a candidate", failed: "failed" }[update.outcome] ?? update.outcome;
  return ["last update", what, `${ago(update.time)}; ${gain}`];
}

function overTime(hours) {
  const last = hours.at(-1)?.hour;
  const all = [...new Set(hours.map((line) => line.hour))];
  const of = (hour) => hours.filter((line) => line.hour === hour);
  const sum = (lines, name) => lines.reduce((total, line) => total + line[name], 0);
  return { x: all.map((hour) => hour - last), y: all.map((hour) => sum(of(hour), "hits") / sum(of(hour), "events")) };
}

// Every hour up to the latest, a day at least, those without events too.
function eachHour(events) {
  const latest = events.at(-1).hour;
  const by = new Map(events.map((one) => [one.hour - latest, one.events]));
  const first = Math.min(events[0].hour - latest, -23);
  const x = Array.from({ length: 1 - first }, (_, n) => first + n);
  return { x, y: x.map((hour) => by.get(hour) ?? 0) };
}

function versionsCard(operations, again) {
  const place = h("div", {});
  const change = async (what, path) => {
    try {
      await asAdministrator(place, (key) => send(path, {}, { key }));
      const undo = () => change("Back to the version before", "/versions/rollback");
      toast(`${what}. The service follows within seconds.`, undo);
      forgetAbout();
      setTimeout(again, 1500);
    } catch (error) {
      fill(place, failure(error));
    }
  };
  const role = (one) => (one.role ? h("span", { class: `badge ${one.role}` }, { current: "in use", previous: "before it", candidate: "candidate" }[one.role]) : null);
  const button = (one) => {
    if (one.role === "previous") return h("button", { class: "plain-button", onclick: () => change(`Rolled back to version ${one.version}`, "/versions/rollback") }, "Roll back");
    if (one.role === "candidate") return h("button", { class: "plain-button", onclick: () => change(`Promoted version ${one.version}`, "/versions/promote") }, "Promote");
    return null;
  };
  return titled("versions-title", "Versions",
    h("ul", { class: "plain versions" }, operations.versions.map((one) => h("li", {},
      h("span", {}, h("span", { class: "name" }, `version ${one.version}`), role(one), h("span", { class: "quiet block" }, `made ${ago(one.made)}${one.live_events ? `; live hit rate@20 ${percent(one.live_hits / one.live_events)} on ${count(one.live_events)} events` : ""}`)),
      button(one)))),
    place);
}

const COLUMNS = ["route", "answered", "failed", "p50", "p99"];
// A long path may go on in the next line after a slash.
const inParts = (route) => route.split(/(?<=.\/)/).flatMap((part) => [part, h("wbr", {})]);
const routeRow = (one) => h("tr", {}, h("th", { scope: "row" }, inParts(one.route)), h("td", { class: "right" }, count(one.answered)), h("td", { class: "right" }, count(one.failed)), h("td", { class: "right" }, milliseconds(one.p50_milliseconds)), h("td", { class: "right" }, milliseconds(one.p99_milliseconds)));
const routeTable = (label, routes) => h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, h("table", {},
  h("thead", {}, h("tr", {}, COLUMNS.map((name, n) => h("th", { scope: "col", class: n ? "right" : null }, name)))),
  h("tbody", {}, routes.map(routeRow))));
const OWN = new Set(["/", "/static"]); // the page's own files say little about the service
const routesCard = ({ routes: all }) => routesTable([...all.filter((one) => !OWN.has(one.route)), ...all.filter((one) => OWN.has(one.route))]);
const routesTable = (routes) => titled("routes-title", "Answers, by route", routeTable("The most asked", routes.slice(0, ROUTES)),
  routes.length > ROUTES ? h("details", {}, h("summary", {}, `${routes.length - ROUTES} more`), routeTable("The others", routes.slice(ROUTES))) : null);

function shop(found, operations, again) {
  const now = found.online.find((line) => line.model === found.model);
  const figures = [];
  const hits = overTime(found.hours);
  if (hits.x.length > 1) figures.push(chart({ title: "Hits over time", note: "Share of events whose item was among the first 20 just before, by hour.", x: hits.x, curves: [{ name: "hit rate@20", y: hits.y }], label: "hours before the latest", written: (value) => percent(value, 0) }));
  const events = operations?.events_by_hour ?? [];
  if (events.length) figures.push(columns({ title: "Events per hour", ...eachHour(events), label: "hours before the latest" }));
  const lists = operations?.lists ?? {};
  const versions = operations ? versionsCard(operations, again) : null;
  const beside = figures.length === 1 && versions; // one figure alone would leave half of a line empty
  if (beside) figures.push(versions);
  return [
    tiles([
      verdict(operations?.updates?.[0]),
      ["live hit rate@20", now ? percent(rate(now)) : "–", now ? `${count(now.events)} events judged` : "no event judged yet"],
      ["slowest lists (p99)", milliseconds(lists.p99_milliseconds), lists.answered ? `half of them within ${milliseconds(lists.p50_milliseconds)}` : "no list answered yet"],
      ["events in the last hour", count(operations?.events_last_hour ?? 0), `${count(found.events.all)} in all, ${count(found.events.since_training)} since training`],
      ["requests", count(found.requests.answered), `${count(found.requests.failed)} failed`],
    ]),
    figures.length ? h("div", { class: "figures" }, figures) : null,
    operations?.experiment ? experimentCard(operations.experiment) : null,
    operations ? (beside ? routesCard(operations) : h("div", { class: "columns even" }, versions, routesCard(operations))) : null,
  ];
}

function research(found) {
  const { epochs, metrics } = found;
  const judged = epochs.filter((epoch) => "recall@20" in epoch.metrics);
  const figures = [];
  if (found.response) {
    const { x, ...curves } = found.response;
    figures.push(chart({ title: "Response", note: "What the model makes of each eigenvalue of the graph, from the most rapid change to the smoothest.", x, curves: Object.entries(curves).map(([name, y]) => ({ name, y })), label: "eigenvalue x" }));
  }
  if (found.times.length) figures.push(h("figure", { class: "card" }, h("figcaption", {}, h("h3", {}, "Learned times"), h("p", { class: "quiet" }, "When the states of the ODE are read, beside its start and its end.")), timeline(found.times)));
  if (epochs.length > 1) figures.push(chart({ title: "Training loss", x: epochs.map((epoch) => epoch.epoch), curves: [{ name: "loss", y: epochs.map((epoch) => epoch.loss) }], label: "epoch" }));
  if (judged.length > 1) figures.push(chart({ title: "Recall@20 while training", x: judged.map((epoch) => epoch.epoch), curves: [{ name: "recall@20", y: judged.map((epoch) => epoch.metrics["recall@20"]) }], label: "epoch" }));
  const now = found.online.find((line) => line.model === found.model);
  const metric = (name, label) => (name in metrics ? [[label, metrics[name].toFixed(4), "on the test set"]] : []);
  return [
    h("h2", { class: "chapter", id: "research-title" }, "For researchers"),
    tiles([
      ["people", count(found.data.users)], ["items", count(found.data.items)], ["pairs in training", count(found.data.train)],
      ...metric("recall@20", "Recall@20"), ...metric("ndcg@20", "NDCG@20"),
      ["live MRR", now ? (now.reciprocal / now.events).toFixed(3) : "–", now ? "mean of 1 / rank" : null],
    ]),
    found.online.length > 1 ? titled("by-version", "Live hit rate, by version", scored(found.online.map((line) => ({ link: h("span", { class: "name" }, `version ${line.model}`), quiet: `${count(line.events)} events`, score: rate(line) })), percent)) : null,
    figures.length ? h("div", { class: "figures" }, figures) : null,
  ];
}

export async function model({ current, again }) {
  forgetAbout();
  const [found, operations] = await Promise.all([call("/model"), call("/operations").catch(() => null)]);
  if (!current()) return;
  show(
    h("h1", {}, "The model"),
    h("p", { class: "lead" }, `${found.name}, version ${found.model}, on ${found.data.name}`),
    shop(found, operations, again),
    research(found));
}
