// Requests to the service, the key they carry, and what to show when one is refused.

import { fill, h } from "./dom.js";

export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export async function call(path, options = {}) {
  const headers = { ...(options.body && { "content-type": "application/json" }) };
  const key = options.key ?? sessionStorage.getItem("token");
  if (key) headers.authorization = `Bearer ${key}`;
  let reply;
  try {
    reply = await fetch(path, { ...options, headers });
  } catch {
    throw new Refused(0, "The service does not answer. Is it running?");
  }
  if (reply.status === 204) return null;
  const body = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new Refused(reply.status, body.detail ?? `The service answered ${reply.status}.`);
  return body;
}

export const send = (path, body, options = {}) => call(path, { method: "POST", body: JSON.stringify(body), ...options });
export const remove = (path, options = {}) => call(path, { method: "DELETE", ...options });

let described = null; // GET /model, once
export const about = () => (described ??= call("/model").catch((error) => { described = null; throw error; }));
export const forgetAbout = () => { described = null; };

// `again` paints the view anew once there is a key.
export function failure(error, again) {
  if (error.status === 401 && again) return keyForm(again);
  return h("p", { class: "notice", role: "alert" }, error.message || "The service does not answer.");
}

export function keyForm(again, { name = "token", label = "This service asks for its token" } = {}) {
  const field = h("input", { id: "token", type: "password", autocomplete: "off" });
  const submit = (event) => {
    event.preventDefault();
    sessionStorage.setItem(name, field.value);
    forgetAbout();
    again();
  };
  return h("form", { class: "card narrow", onsubmit: submit },
    sessionStorage.getItem(name) ? h("p", { class: "notice", role: "alert" }, "That was not the token.") : null,
    h("label", { for: "token" }, label),
    h("div", { class: "row" }, field, h("button", { class: "primary" }, "Continue")));
}

// What needs a key: the kept one, else a question in `place`, and then the work is done after all.
async function withKey(place, work, { kept, label }) {
  const attempt = () => work(sessionStorage.getItem(kept) ?? undefined);
  const lacking = (error) => error.status === 401 || error.status === 403;
  try {
    return await attempt();
  } catch (error) {
    if (!lacking(error)) throw error;
    return new Promise((resolve, reject) => {
      const ask = (notice) => {
        const id = `${kept}-key`;
        const field = h("input", { id, type: "password", autocomplete: "off" });
        const submit = async (event) => {
          event.preventDefault();
          sessionStorage.setItem(kept, field.value);
          try {
            const found = await attempt();
            fill(place);
            resolve(found);
          } catch (again) {
            if (lacking(again)) ask("That key may not do this.");
            else { fill(place); reject(again); }
          }
        };
        fill(place, h("form", { class: "admin", onsubmit: submit },
          notice ? h("p", { class: "notice", role: "alert" }, notice) : null,
          h("label", { for: id }, label),
          h("div", { class: "row" }, field, h("button", { class: "primary" }, "Continue"))));
        place.scrollIntoView({ block: "nearest" });
        field.focus();
      };
      ask();
    });
  }
}

export const asAdministrator = (place, work) => withKey(place, work, { kept: "admin", label: "This needs an administrator's key" });
export const asWriter = (place, work) => withKey(place, work, { kept: "token", label: "To record events, this service asks for a key" });
