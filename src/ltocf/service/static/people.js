// A person: what they have, what they get and why, and what it would be without one click.

import { about, asWriter, call, failure, remove, send } from "./api.js";
import { count, details, encoded, fill, h, itemLink, nameOf, personLink, say, scored, show, skeleton, titled, toast } from "./dom.js";
import { addReasons, listOf, waitingList, withoutReasons } from "./lists.js";
import { searchBox } from "./search.js";

const LIST = 10;
const SHOWN = 12; // items of a history before one asks for more

const personSearch = () => h("section", { class: "card", "aria-label": "Search" }, searchBox({
  label: "Find a person", hint: "how their id begins",
  find: async (text) => (await call(`/users?k=6&query=${encoded(text)}`)).users,
  entry: (user) => { const link = personLink(user); link.classList.add("result"); return link; },
}));

export async function people() {
  show(h("h1", {}, "People"), h("p", { class: "lead" }, "What somebody has, what they get, and why."), h("div", { class: "narrow" }, personSearch()));
}

export async function person({ current, again, id: user }) {
  const title = h("h2", { id: "list-title" }, "For them");
  const note = h("p", { class: "quiet", "data-note": true });
  const switched = h("div", {});
  const keyPlace = h("div", {});
  const place = h("div", { class: "listed" }, waitingList(5));
  const had = h("section", { class: "card", "aria-labelledby": "history-title" }, h("h2", { id: "history-title" }, "History"), skeleton(4));
  const alike = h("section", { class: "card", "aria-labelledby": "alike-title", hidden: true });
  let without = null; // the item of the history that is left out for a moment
  let before = [];
  let asked = 0;

  show(h("h1", {}, user), h("p", { class: "lead" }, "What they have, what they get, and why."),
    h("div", { class: "columns list-first" },
      h("div", {}, had, alike, personSearch()),
      h("section", { class: "card", "aria-labelledby": "list-title" }, title, note, keyPlace, switched, place)));

  const undo = async (key, item) => {
    await remove(`/events/${encoded(key)}`).then(() => say(`Taken back: ${nameOf(item)}`), (error) => toast(error.message));
    await paint();
  };
  const record = async (item, kind) => {
    const key = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`; // not there outside https
    try {
      const event = { user, item: item.item, key, ...(kind && { kind }) };
      await asWriter(keyPlace, () => send("/events", event));
      toast(kind ? `${nameOf(item)} is not for ${user}.` : `Recorded: ${user} and ${nameOf(item)}.`, () => undo(key, item));
      await paint();
    } catch (error) {
      toast(error.message);
    }
  };
  const leaveOut = (item) => {
    without = without && without.item === item?.item ? null : item;
    return Promise.all([paintList(), paintHistory()]);
  };

  const paintList = async () => {
    const mine = ++asked;
    const stale = () => mine !== asked || !current();
    const model = await about();
    const path = `/users/${encoded(user)}/recommendations?k=${Math.min(LIST, model.data.items)}${without ? `&without=${encoded(without.item)}` : ""}`;
    place.setAttribute("aria-busy", "true");
    const list = await call(path);
    if (stale()) return;
    place.removeAttribute("aria-busy");
    const personal = list.source === "model";
    const explained = personal && model.explains;
    title.textContent = personal ? "For them" : "Popular now";
    note.textContent = !personal ? "They have no history yet: this is what is popular." : list.stale ? "The store of events does not answer: this is the list from training." : without ? "The marks show how each item moved." : "+ records an event for an item; the next list takes it into account.";
    fill(switched, without ? h("p", { class: "what-if" }, h("span", {}, "Without ", h("strong", {}, nameOf(without)), " the list becomes:"), h("button", { class: "plain-button", onclick: () => leaveOut(without) }, "Put it back")) : null);
    const actions = without ? {} : { pick: (item) => record(item), verb: "Record an event of", ...(model.dislike && { refuse: (item) => record(item, model.dislike) }) };
    fill(place, listOf(list, { ...actions, before, waiting: explained }));
    if (!without) before = list.items.map((item) => String(item.item));
    if (!explained) return;
    const why = await call(`${path}&reasons=true`).catch((error) => {
      if (!stale()) withoutReasons(place.parentNode, `The reasons did not come: ${error.message}`);
    });
    if (why && !stale() && !addReasons(place, why)) fill(place, listOf(why, actions));
  };

  const entry = (item) => {
    const out = without?.item === item.item;
    return h("li", { class: out ? "left-out" : null }, itemLink(item),
      h("span", { class: "quiet" }, item.time ? item.time.slice(0, 10) : details(item)),
      h("button", { class: "round what-if-button", "data-key": item.item, "data-group": "without", "aria-pressed": String(out), title: out ? "Put it back" : "What if not?", "aria-label": `${out ? "Put back" : "What if not"}: ${nameOf(item)}`, onclick: () => leaveOut(item) }, out ? "+" : "−"));
  };
  const paintHistory = async () => {
    const found = await call(`/users/${encoded(user)}/history`).catch((error) => {
      if (error.status === 404) return { items: [], known: false };
      throw error;
    });
    if (!current()) return found;
    const rest = found.items.slice(SHOWN);
    const opened = had.querySelector("details")?.open;
    const much = found.items.length ? `${count(found.items.length)} items, the latest first${found.known ? "" : "; they came after training"}` : "Nothing yet.";
    fill(had,
      h("h2", { id: "history-title" }, "History"),
      h("p", { class: "quiet" }, much),
      h("ul", { class: "plain history" }, found.items.slice(0, SHOWN).map(entry)),
      rest.length ? h("details", { open: opened }, h("summary", {}, `${count(rest.length)} more`), h("ul", { class: "plain history" }, rest.slice(0, 500).map(entry))) : null);
    return found;
  };
  const paintAlike = async (known) => {
    if (!known || !alike.hidden) return; // nobody is like those who came after training
    const model = await about();
    const found = await call(`/users/${encoded(user)}/similar?k=${Math.min(6, model.data.users)}`);
    if (!current()) return;
    fill(alike, h("h2", { id: "alike-title" }, "Similar people"), scored(found.users.map((one) => ({ link: personLink(one.user), score: one.score }))));
    alike.hidden = false;
  };
  const failed = (spot) => (error) => { if (current()) fill(spot, failure(error, again)); };
  const paint = () => Promise.all([
    paintList().catch(failed(place)),
    paintHistory().then((found) => paintAlike(found.known)).catch(failed(had)),
  ]);
  await paint();
}
