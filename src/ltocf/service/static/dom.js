// Building blocks. Everything that is served goes through text nodes, never through markup.

const SVG = new Set(["svg", "path", "line", "circle", "rect", "text", "g"]);

export function h(tag, attributes = {}, ...children) {
  const node = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...present(children));
  return node;
}

// replaceChildren() writes "null" for null, so everything goes through here.
const present = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);

// New children in place of the old ones. Who had the focus keeps it: the element with the same
// data-key, else the one that now stands where it stood.
export function fill(node, ...children) {
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  const stops = () => [...node.querySelectorAll("button, a[href], input, summary")];
  const place = focused ? stops().indexOf(focused) : -1;
  const { key, group } = focused?.dataset ?? {};
  const inGroup = () => stops().filter((stop) => stop.dataset.group === group);
  const nth = focused && group ? inGroup().indexOf(focused) : -1;
  node.replaceChildren(...present(children));
  if (!focused) return;
  const after = stops();
  const same = after.find((stop) => key !== undefined && stop.dataset.key === key && stop.dataset.group === group);
  const peers = group ? inGroup() : [];
  const next = same ?? peers[Math.min(nth, peers.length - 1)] ?? after[Math.min(place, after.length - 1)];
  next?.focus({ preventScroll: true });
}

export const main = document.getElementById("main");
export const show = (...nodes) => fill(main, ...nodes);
export const say = (text) => { document.getElementById("status").textContent = text; };

let fading = 0;

export function dismiss() {
  clearTimeout(fading);
  document.getElementById("toast").replaceChildren();
}

// A line at the bottom that everybody sees, with a way back.
export function toast(text, undo) {
  const place = document.getElementById("toast");
  const back = async () => { dismiss(); await undo(); };
  clearTimeout(fading);
  fill(place, h("div", { class: "toast" },
    h("span", {}, text),
    undo ? h("button", { onclick: back }, "Undo") : null,
    h("button", { class: "close", onclick: dismiss, "aria-label": "Dismiss" }, "×")));
  const fade = () => { fading = setTimeout(() => (place.matches(":hover, :focus-within") ? fade() : dismiss()), 8000); };
  fade();
}

export const count = (n) => Number(n).toLocaleString("en");
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}\u00a0%`; // never parted at the end of a line
export const small = (number) => (Math.abs(number) >= 100 ? number.toFixed(0) : Number(number.toPrecision(3)).toString());
export const digits = (number) => (Math.abs(number) >= 100 ? number.toFixed(0) : number.toPrecision(3)); // as many in each line
export const milliseconds = (number) => (number === null || number === undefined ? "–" : number >= 1000 ? `${small(number / 1000)} s` : `${small(number)} ms`);
export const encoded = encodeURIComponent;

export function ago(moment) {
  const seconds = Math.max(0, (Date.now() - new Date(moment)) / 1000);
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    const n = Math.floor(seconds / size);
    if (n >= 1) return `${n} ${unit}${n > 1 ? "s" : ""} ago`;
  }
  return "just now";
}

export const skeleton = (lines, kind = "line") => Array.from({ length: lines }, () => h("div", { class: `skeleton ${kind}`, "aria-hidden": "true" }));

// Items are shown by name, picture and up to three of their other texts and numbers.
const PICTURE = /^(https:\/\/|\/|data:image\/)/i;
const HIDDEN = new Set(["picture", "image", "image_url", "available", "url"]);
export const pictureOf = (item) => [item.picture, item.about?.picture, item.about?.image, item.about?.image_url].find((url) => typeof url === "string" && PICTURE.test(url));

function written(value) {
  if (Array.isArray(value)) return value.filter((one) => one !== null).slice(0, 3).join(", ");
  return ["string", "number"].includes(typeof value) ? String(value) : "";
}

export const details = (item) => Object.entries(item.about ?? {}).filter(([name]) => !HIDDEN.has(name)).map(([, value]) => written(value)).filter(Boolean).slice(0, 3).join(" · ");
export const facts = (item) => Object.entries({ id: item.item, ...item.about }).filter(([name]) => !["picture", "image", "image_url"].includes(name)).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value]).filter(([, value]) => value !== null && value !== undefined && value !== "");
export const nameOf = (item) => item.name ?? String(item.item);
export const itemLink = (item) => h("a", { href: `#/items/${encoded(item.item)}`, class: "name", "data-key": item.item, "data-group": "links" }, nameOf(item));
export const personLink = (user) => h("a", { href: `#/people/${encoded(user)}`, class: "name" }, String(user));

export function thumbnail(item, size = "small") {
  const url = pictureOf(item);
  if (!url) return null;
  const picture = h("img", { class: `picture ${size}`, src: url, alt: "", loading: "lazy", referrerpolicy: "no-referrer" });
  picture.addEventListener("error", () => picture.remove());
  return picture;
}

export function bar(share) {
  const part = h("span", { class: "fill" });
  part.style.width = `${Math.max(1.5, 100 * Math.min(1, share))}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, part);
}

export function scored(rows, written = (score) => score.toPrecision(3)) {
  const most = Math.max(...rows.map((row) => Math.abs(row.score)), 1e-12);
  return h("ul", { class: "plain scored" }, rows.map((row) => h("li", {}, h("span", {}, row.link, row.quiet ? h("span", { class: "quiet" }, row.quiet) : null), bar(Math.abs(row.score) / most), h("span", { class: "number" }, written(row.score)))));
}

export const titled = (id, title, ...rest) => h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, title), rest);
