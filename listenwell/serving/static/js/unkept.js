/** Conversations with a service that keeps nothing: they live in this tab, with the same methods as `Kept`. */

import { Failure } from "./api.js";
import { newKey } from "./saved.js";

const NAME = "talks"; // the name of earlier versions
/** Characters of a conversation that are sent along at most; the service refuses much more. */
const MOST_CHARACTERS = 80_000;

export class Unkept {
  /**
   * @param {import("./api.js").Api} api
   * @param {import("./saved.js").Saved} saved - of the tab
   * @param {number} most - turns that may be sent along
   */
  constructor(api, saved, most) {
    this.api = api;
    this.saved = saved;
    this.most = most;
  }

  async list() {
    return Object.values(this.#all())
      .filter((conversation) => conversation.exchanges.length)
      .sort((one, other) => other.changed - one.changed)
      .map((conversation) => ({ ...conversation, begins: conversation.exchanges[0].said.slice(0, 80), exchanges: conversation.exchanges.length }));
  }

  async begin({ persona, model }) {
    const now = Date.now() / 1000;
    return this.#write({ id: newKey(), persona, model, created: now, changed: now, exchanges: [] });
  }

  async get(id) {
    const conversation = this.#all()[id];
    if (!conversation) throw new Failure("There is no such conversation.", { status: 404, code: "not_found" });
    return conversation;
  }

  async change(id, change) {
    return this.#write({ ...(await this.get(id)), ...change });
  }

  async remove(id) {
    const { [id]: _, ...others } = this.#all();
    this.saved.set(NAME, others);
  }

  async removeAll() {
    this.saved.set(NAME, undefined);
  }

  async exported(id) {
    const conversations = id ? [await this.get(id)] : Object.values(this.#all());
    const begun = conversations.filter((conversation) => conversation.exchanges.length);
    return begun.map((conversation) => `${JSON.stringify(dialogue(conversation))}\n`).join("");
  }

  async choose(id, number, version) {
    const conversation = await this.get(id);
    conversation.exchanges[number - 1].current = version;
    return this.#write(conversation);
  }

  /** @param {import("./outbox.js").Entry} entry */
  async say(entry, hooks) {
    const conversation = await this.get(entry.conversation);
    let exchange = conversation.exchanges.find((one) => one.key === entry.key);
    if (!exchange) {
      const number = conversation.exchanges.length + 1;
      exchange = { number, said: entry.text, key: entry.key, created: Date.now() / 1000, current: null, replies: [] };
      conversation.exchanges.push(exchange);
      this.#write(conversation);
    }
    const version = exchange.replies.length;
    if (version) return { number: exchange.number, version, reply: exchange.replies[version - 1] };
    return this.#answered(entry.conversation, exchange.number, undefined, hooks);
  }

  async again(id, target, key, hooks) {
    return this.#answered(id, (await this.get(id)).exchanges.length, target, hooks);
  }

  async #answered(id, number, target, hooks) {
    const before = await this.get(id);
    const history = turns({ ...before, exchanges: before.exchanges.slice(0, number - 1) }).slice(-this.most);
    const { said } = before.exchanges[number - 1];
    let size = said.length;
    const begin = history.findLastIndex((turn) => (size += turn.text.length) > MOST_CHARACTERS) + 1;
    const body = { text: said, history: history.slice(begin), persona: before.persona, model: before.model };
    const made = await this.api.stream("/api/reply", target ? { ...body, target } : body, hooks);
    const reply = { ...made, target: target ?? null };
    const conversation = await this.get(id);
    const exchange = conversation.exchanges[number - 1];
    exchange.replies.push(reply);
    exchange.current = exchange.replies.length;
    this.#write(conversation);
    return { number, version: exchange.current, reply };
  }

  #all() {
    return this.saved.get(NAME, {});
  }

  #write(conversation) {
    const written = { ...conversation, changed: Date.now() / 1000 };
    this.saved.set(NAME, { ...this.#all(), [conversation.id]: written });
    return written;
  }
}

/** @param {boolean} [isTold] - with the notes of an export */
function turns(conversation, isTold = false) {
  return conversation.exchanges.flatMap((exchange) => {
    const own = { speaker: "speaker", text: exchange.said };
    const chosen = exchange.current ? exchange.replies[exchange.current - 1] : null;
    if (!chosen?.reply.trim()) return [own];
    return [own, { speaker: "listener", text: chosen.reply, ...(isTold && { notes: notes(chosen) }) }];
  });
}

/** What the service, too, says of a reply beside its words. */
function notes({ model, seed, target }) {
  return { model, seed: String(seed), ...(target && { target: JSON.stringify(target) }) };
}

/** A conversation as the service would export it. */
function dialogue(conversation) {
  const personas = conversation.persona.length ? { personas: [{ speaker: "listener", lines: conversation.persona }] } : {};
  return { turns: turns(conversation, true), id: conversation.id, ...personas };
}
