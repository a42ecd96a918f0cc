// The page of the service. Everything that is served goes through text nodes, never through markup.

const main = document.getElementById("main");
const status = document.getElementById("status");
const LIST = 10;
let visit = 0; // counts the views shown, so that a late answer does not paint over a newer view
let about = null; // GET /model, once

// ---- building blocks ----

function h(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "circle", "text", "g"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const show = (...nodes) => main.replaceChildren(...nodes.filter(Boolean));

class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

async function call(path, options = {}) {
  const headers = { ...(options.body && { "content-type": "application/json" }) };
  const token = sessionStorage.getItem("token");
  if (token) headers.authorization = `Bearer ${token}`;
  const reply = await fetch(path, { ...options, headers });
  if (reply.status === 204) return null;
  const body = await reply.json();
  if (!reply.ok) throw new Refused(reply.status, body.detail);
  return body;
}

const send = (path, body) => call(path, { method: "POST", body: JSON.stringify(body) });
const encoded = encodeURIComponent;
const say = (text) => { status.textContent = text; };
const count = (n) => Number(n).toLocaleString("en");
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const small = (number) => (Math.abs(number) >= 100 ? number.toFixed(0) : Number(number.toPrecision(3)).toString());

function details(item) {
  const words = Object.values(item.about).filter((value) => ["string", "number"].includes(typeof value));
  return words.slice(0, 3).join(" · ");
}

const itemLink = (item) => h("a", { href: `#/items/${encoded(item.item)}`, class: "name" }, item.name);
const personLink = (user) => h("a", { href: `#/people/${encoded(user)}`, class: "name" }, String(user));

function bar(share, { negative = false } = {}) {
  const fill = h("span", { class: negative ? "fill negative" : "fill" });
  fill.style.width = `${Math.max(1.5, 100 * Math.min(1, share))}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, fill);
}

function failure(error) {
  if (error.status === 401) return tokenForm();
  return h("p", { class: "notice", role: "alert" }, error.message || "The service does not answer.");
}

function tokenForm() {
  const field = h("input", { id: "token", type: "password", autocomplete: "off" });
  const submit = (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", field.value);
    about = null;
    route();
  };
  return h("form", { class: "card narrow", onsubmit: submit },
    sessionStorage.getItem("token") ? h("p", { class: "notice", role: "alert" }, "That was not the token.") : null,
    h("label", { for: "token" }, "This service asks for its token"),
    h("div", { class: "row" }, field, h("button", { class: "primary" }, "Continue")));
}

// A field to search with and what it finds. ArrowDown and ArrowUp walk through the results.
function searchBox({ label, hint, find, entry }) {
  const id = `search-${label.replace(/\W+/g, "-").toLowerCase()}`;
  const results = h("ul", { class: "results", "aria-label": "Found" });
  const field = h("input", { id, type: "search", placeholder: hint, autocomplete: "off", spellcheck: "false" });
  let asked = 0;
  let timer = 0;
  const search = async () => {
    const mine = ++asked;
    try {
      const found = await find(field.value.trim());
      if (mine !== asked) return;
      results.replaceChildren(...(found.length ? found.map((one) => h("li", {}, entry(one))) : [h("li", { class: "quiet" }, "Nothing found.")]));
    } catch (error) {
      if (mine === asked) results.replaceChildren(h("li", {}, failure(error)));
    }
  };
  const walk = (event) => {
    const stops = [field, ...results.querySelectorAll("button, a")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const place = stops.indexOf(document.activeElement);
    if (!step || place < 0) return;
    event.preventDefault();
    stops[Math.max(0, Math.min(stops.length - 1, place + step))].focus();
  };
  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 120); });
  search();
  return h("div", { class: "search", onkeydown: walk }, h("label", { for: id }, label), field, results);
}

// ---- lists with their reasons ----

function reasonRows(reasons) {
  const parts = reasons.because.map((part) => ({ label: part.name, value: part.contribution }));
  if (Math.abs(reasons.others) > 1e-9) parts.push({ label: "the rest of the history", value: reasons.others, quiet: true });
  if (Math.abs(reasons.own) > 1e-9) parts.push({ label: "their own part", value: reasons.own, quiet: true });
  const most = Math.max(...parts.map((part) => Math.abs(part.value)), 1e-12);
  return h("dl", { class: "reasons" }, parts.map((part) => h("div", { class: part.quiet ? "reason soft" : "reason" },
    h("dt", {}, part.label),
    h("dd", {}, bar(Math.abs(part.value) / most, { negative: part.value < 0 }), h("span", { class: "number" }, (part.value < 0 ? "−" : "+") + Math.abs(part.value).toPrecision(3))))));
}

function recommended(list, { action, verb }) {
  return h("ol", { class: "list" }, list.items.map((item) => h("li", { class: "entry" },
    h("div", { class: "head" },
      h("span", { class: "rank", "aria-hidden": "true" }, String(item.rank)),
      h("div", { class: "what" }, itemLink(item), h("span", { class: "quiet" }, details(item))),
      h("button", { class: "add", onclick: () => action(item), "aria-label": `${verb} ${item.name}`, title: verb }, "+")),
    item.reasons ? reasonRows(item.reasons) : null)));
}

// ---- try it ----

let picks = [];

async function tryIt(shown) {
  const list = h("section", { class: "card", "aria-labelledby": "list-title" });
  const chosen = h("div", { class: "chips" });
  const changed = async () => {
    chosen.replaceChildren(...(picks.length
      ? picks.map((item) => h("button", { class: "chip", onclick: () => drop(item), "aria-label": `Remove ${item.name}` }, item.name, h("span", { "aria-hidden": "true" }, "×")))
      : [h("p", { class: "quiet" }, "Nothing yet. Pick a few things you like.")]));
    const mine = picks;
    try {
      const body = { history: picks.map((item) => item.item), k: Math.min(LIST, about.data.items), reasons: about.explains && picks.length > 0 };
      const answer = await send("/recommendations", body);
      if (shown !== visit || mine !== picks) return;
      const found = answer.lists[0];
      list.replaceChildren(
        h("h2", { id: "list-title" }, found.source === "model" ? "For you" : "Popular now"),
        h("p", { class: "quiet" }, found.source === "model" ? (about.explains ? "Each bar is the exact share that one of your picks has in the score." : "From your picks.") : "Of you nothing is known yet."),
        recommended(found, { action: pick, verb: "Pick" }));
      say(found.source === "model" ? `${found.items.length} items for ${picks.length} picks, ${found.items[0]?.name ?? "none"} first` : "");
    } catch (error) {
      if (shown === visit) list.replaceChildren(failure(error));
    }
  };
  const pick = (item) => { picks = [...picks.filter((one) => one.item !== item.item), item]; changed(); };
  const drop = (item) => { picks = picks.filter((one) => one.item !== item.item); changed(); };
  show(
    h("h1", {}, "What would you like?"),
    h("p", { class: "lead" }, "Pick a few things. The list follows each click, from a model that has never met you."),
    h("div", { class: "columns" },
      h("div", {},
        h("section", { class: "card", "aria-labelledby": "picks-title" }, h("h2", { id: "picks-title" }, "Your picks"), chosen),
        h("section", { class: "card", "aria-label": "Search" }, searchBox({
          label: "Find something", hint: "a name",
          find: async (text) => (await call(`/items?k=6&query=${encoded(text)}`)).items,
          entry: (item) => h("button", { class: "result", onclick: () => pick(item) }, h("span", { class: "name" }, item.name), h("span", { class: "quiet" }, details(item))),
        }))),
      list));
  await changed();
}

// ---- a person ----

const personSearch = () => h("section", { class: "card", "aria-label": "Search" }, searchBox({
  label: "Find a person", hint: "how their id begins",
  find: async (text) => (await call(`/users?k=6&query=${encoded(text)}`)).users,
  entry: personLink,
}));

async function people() {
  show(h("h1", {}, "People"), h("p", { class: "lead" }, "What somebody has, what they get, and why."), h("div", { class: "narrow" }, personSearch()));
}

async function person(shown, user) {
  const list = h("section", { class: "card", "aria-labelledby": "list-title" });
  const had = h("section", { class: "card", "aria-labelledby": "history-title" });
  const alike = h("section", { class: "card", "aria-labelledby": "alike-title" });
  show(h("h1", {}, user), h("p", { class: "lead" }, "What they have, what they get, and why."), h("div", { class: "columns list-first" }, h("div", {}, had, alike, personSearch()), list));
  let known = false;
  const record = async (item) => {
    try {
      await send("/events", { user, item: item.item, key: crypto.randomUUID?.() });
      say(`Recorded: ${user} and ${item.name}`);
      await paint();
    } catch (error) {
      list.prepend(failure(error));
    }
  };
  const paintList = async () => {
    const found = await call(`/users/${encoded(user)}/recommendations?k=${Math.min(LIST, about.data.items)}&reasons=${about.explains}`);
    if (shown !== visit) return;
    list.replaceChildren(
      h("h2", { id: "list-title" }, found.source === "model" ? "For them" : "Popular now"),
      h("p", { class: "quiet" }, found.source === "model" ? "With + an item becomes an event, and the next list knows it." : "Of them nothing is known yet."),
      recommended(found, { action: record, verb: "Record an event of" }));
  };
  const paintHistory = async () => {
    const found = await call(`/users/${encoded(user)}/history`).catch((error) => {
      if (error.status === 404) return { items: [], known: false };
      throw error;
    });
    if (shown !== visit) return;
    known = found.known;
    const most = 12;
    const entry = (item) => h("li", {}, itemLink(item), h("span", { class: "quiet" }, item.time ? item.time.slice(0, 10) : details(item)));
    const rest = found.items.slice(most);
    had.replaceChildren(
      h("h2", { id: "history-title" }, "History"),
      h("p", { class: "quiet" }, `${count(found.items.length)} items, the latest first${found.known ? "" : "; they came after training"}`),
      h("ul", { class: "plain" }, found.items.slice(0, most).map(entry)),
      rest.length ? h("details", {}, h("summary", {}, `${count(rest.length)} more`), h("ul", { class: "plain" }, rest.slice(0, 500).map(entry))) : null);
  };
  const paintAlike = async () => {
    alike.hidden = !known; // nobody is like them who came after training
    if (!known) return;
    const found = await call(`/users/${encoded(user)}/similar?k=${Math.min(6, about.data.users)}`);
    if (shown !== visit) return;
    alike.replaceChildren(h("h2", { id: "alike-title" }, "Similar people"), scored(found.users.map((one) => ({ link: personLink(one.user), score: one.score }))));
  };
  const paint = () => Promise.all([paintList(), paintHistory()]);
  await paint();
  await paintAlike();
}

function scored(rows) {
  const most = Math.max(...rows.map((row) => Math.abs(row.score)), 1e-12);
  return h("ul", { class: "plain scored" }, rows.map((row) => h("li", {}, h("span", {}, row.link, row.quiet ? h("span", { class: "quiet" }, row.quiet) : null), bar(Math.abs(row.score) / most), h("span", { class: "number" }, row.score.toPrecision(3)))));
}

// ---- an item ----

const itemSearch = () => h("section", { class: "card", "aria-label": "Search" }, searchBox({
  label: "Find an item", hint: "a name",
  find: async (text) => (await call(`/items?k=6&query=${encoded(text)}`)).items,
  entry: (item) => h("a", { class: "result", href: `#/items/${encoded(item.item)}` }, h("span", { class: "name" }, item.name), h("span", { class: "quiet" }, details(item))),
}));

async function items() {
  show(h("h1", {}, "Items"), h("p", { class: "lead" }, "What is like what, to the model."), h("div", { class: "narrow" }, itemSearch()));
}

async function item(shown, id) {
  const found = await call(`/items/${encoded(id)}/similar?k=${Math.min(12, about.data.items)}`);
  if (shown !== visit) return;
  const like = () => { picks = [...picks.filter((one) => one.item !== found.item.item), found.item]; location.hash = "#/try"; };
  show(
    h("h1", {}, found.item.name),
    h("dl", { class: "facts" }, Object.entries({ id: found.item.item, ...found.item.about }).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, String(value))))),
    h("p", {}, h("button", { class: "primary", onclick: like }, "I like it")),
    h("div", { class: "columns" },
      h("div", {}, itemSearch()),
      h("section", { class: "card", "aria-labelledby": "similar-title" }, h("h2", { id: "similar-title" }, "Similar items"), scored(found.items.map((one) => ({ link: itemLink(one), quiet: details(one), score: one.score }))))));
}

// ---- the model ----

function chart({ title, note, x, curves, label, marks = [] }) {
  const [width, height, left, right, top, bottom] = [420, 220, 62, 12, 14, 32];
  const all = curves.flatMap((curve) => curve.y).filter(Number.isFinite);
  let [low, high] = [Math.min(...all), Math.max(...all)];
  if (high - low < 1e-12) [low, high] = [low - 0.5, high + 0.5];
  const [first, last] = [Math.min(...x), Math.max(...x)];
  const px = (value) => left + ((value - first) / (last - first || 1)) * (width - left - right);
  const py = (value) => height - bottom - ((value - low) / (high - low)) * (height - top - bottom);
  const path = (y) => y.map((value, n) => (Number.isFinite(value) ? `${n && Number.isFinite(y[n - 1]) ? "L" : "M"}${px(x[n]).toFixed(1)} ${py(value).toFixed(1)}` : "")).join("");
  const axis = h("g", { class: "axis" },
    [low, (low + high) / 2, high].map((value) => [h("line", { x1: left, x2: width - right, y1: py(value), y2: py(value) }), h("text", { x: left - 6, y: py(value) + 4, "text-anchor": "end" }, small(value))]),
    [first, last].map((value, n) => h("text", { x: px(value), y: height - 10, "text-anchor": n ? "end" : "start" }, small(value))),
    h("text", { x: (left + width - right) / 2, y: height - 10, "text-anchor": "middle" }, label));
  const lines = curves.map((curve, n) => h("path", { class: `curve curve-${n}`, d: path(curve.y) }));
  const dots = marks.map((mark) => h("line", { class: "mark", x1: px(mark), x2: px(mark), y1: top, y2: height - bottom }));
  const legend = curves.length > 1 ? h("p", { class: "legend quiet" }, curves.map((curve, n) => h("span", {}, h("span", { class: `key key-${n}`, "aria-hidden": "true" }), curve.name))) : null;
  return h("figure", { class: "card" },
    h("figcaption", {}, h("h2", {}, title), note ? h("p", { class: "quiet" }, note) : null),
    h("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: from ${small(curves[0].y[0])} to ${small(curves[0].y.at(-1))}` }, axis, dots, lines),
    legend);
}

function tiles(pairs) {
  return h("dl", { class: "tiles" }, pairs.map(([name, value, note]) => h("div", {}, h("dt", {}, name), h("dd", {}, value), note ? h("dd", { class: "quiet" }, note) : null)));
}

async function model(shown) {
  const found = await call("/model");
  if (shown !== visit) return;
  about = found;
  const now = found.online.find((line) => line.model === found.model);
  const epochs = found.epochs;
  const judged = epochs.filter((epoch) => "recall@20" in epoch.metrics);
  const figures = [];
  if (found.hours.length > 1) {
    const hours = [...new Set(found.hours.map((line) => line.hour))];
    const rate = hours.map((hour) => {
      const lines = found.hours.filter((line) => line.hour === hour);
      return lines.reduce((sum, line) => sum + line.hits, 0) / lines.reduce((sum, line) => sum + line.events, 0);
    });
    if (hours.length > 1) figures.push(chart({ title: "Live hit rate", note: "Share of events whose item was among the first 20 just before, by hour.", x: hours.map((hour) => hour - hours.at(-1)), curves: [{ name: "hit rate@20", y: rate }], label: "hours before the latest" }));
  }
  if (epochs.length > 1) figures.push(chart({ title: "Training loss", x: epochs.map((epoch) => epoch.epoch), curves: [{ name: "loss", y: epochs.map((epoch) => epoch.loss) }], label: "epoch" }));
  if (judged.length > 1) figures.push(chart({ title: "Recall@20 while training", x: judged.map((epoch) => epoch.epoch), curves: [{ name: "recall@20", y: judged.map((epoch) => epoch.metrics["recall@20"]) }], label: "epoch" }));
  if (found.response) {
    const { x, ...curves } = found.response;
    figures.push(chart({ title: "Response", note: "What the model makes of each eigenvalue of the graph, from the most rapid change to the smoothest.", x, curves: Object.entries(curves).map(([name, y]) => ({ name, y })), label: "eigenvalue x" }));
  }
  if (found.times.length) figures.push(h("figure", { class: "card" }, h("figcaption", {}, h("h2", {}, "Learned times"), h("p", { class: "quiet" }, "When the states of the ODE are read, beside its start and its end.")), timeline(found.times)));
  const metric = (name, label) => (name in found.metrics ? [[label, found.metrics[name].toFixed(4), "on the test set"]] : []);
  show(
    h("h1", {}, "The model"),
    h("p", { class: "lead" }, `${found.name}, version ${found.model}, on ${found.data.name}`),
    tiles([
      ["people", count(found.data.users)], ["items", count(found.data.items)], ["pairs in training", count(found.data.train)],
      ...metric("recall@20", "Recall@20"), ...metric("ndcg@20", "NDCG@20"),
      ["live hit rate@20", now ? percent(now.hits / now.events) : "—", now ? `${count(now.events)} events judged` : "no event judged yet"],
      ["live MRR", now ? (now.reciprocal / now.events).toFixed(3) : "—", now ? "mean of 1 / rank" : null],
      ["events", count(found.events.all), `${count(found.events.since_training)} since training`],
      ["requests", count(found.requests.answered), `${found.requests.mean_milliseconds.toFixed(1)} ms in the mean, ${count(found.requests.failed)} failed`],
    ]),
    found.online.length > 1 ? h("section", { class: "card" }, h("h2", {}, "Live, by version"), scored(found.online.map((line) => ({ link: h("span", { class: "name" }, `version ${line.model}`), quiet: `${count(line.events)} events`, score: line.hits / line.events })))) : null,
    figures.length ? h("div", { class: "figures" }, figures) : null);
}

function timeline(times) {
  const end = Math.floor(Math.max(...times)) + 1;
  const at = (time) => 16 + (time / end) * 388;
  const whole = [...Array(end + 1).keys()];
  return h("svg", { viewBox: "0 0 420 110", role: "img", "aria-label": `Read at ${times.map(small).join(", ")}` },
    h("g", { class: "axis" },
      h("line", { class: "track", x1: at(0), x2: at(end), y1: 55, y2: 55 }),
      whole.map((time) => [h("line", { x1: at(time), x2: at(time), y1: 50, y2: 60 }), h("text", { x: at(time), y: 82, "text-anchor": "middle" }, String(time))])),
    times.map((time) => [h("circle", { class: "dot", cx: at(time), cy: 55, r: 7 }), h("text", { class: "value", x: at(time), y: 36, "text-anchor": "middle" }, time.toFixed(2))]));
}

// ---- which view ----

const VIEWS = { try: tryIt, people: (shown, id) => (id === undefined ? people() : person(shown, id)), items: (shown, id) => (id === undefined ? items() : item(shown, id)), model };
const TITLES = { try: "Try it", people: "People", items: "Items", model: "Model" };

async function route() {
  const shown = ++visit;
  const [, name = "try", ...rest] = location.hash.split("/");
  const view = name in VIEWS ? name : "try";
  const id = rest.length ? decodeURIComponent(rest.join("/")) : undefined;
  document.title = `${id ?? TITLES[view]} – ltocf`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  say("");
  try {
    about ??= await call("/model");
    await VIEWS[view](shown, id);
  } catch (error) {
    if (shown === visit) show(h("h1", {}, id ?? TITLES[view]), failure(error));
  }
}

addEventListener("hashchange", () => { route(); scrollTo(0, 0); main.focus({ preventScroll: true }); });
addEventListener("keydown", (event) => {
  if (event.key !== "/" || /^(input|textarea)$/i.test(document.activeElement.tagName)) return;
  const field = main.querySelector("input[type=search]");
  if (field) { event.preventDefault(); field.focus(); }
});
route();
