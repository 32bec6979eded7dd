/** The conversation on the page: its exchanges, their state, and the actions. */

import { Failure } from "./api.js";
import { isDraft, newDraft } from "./outbox.js";
import { persist } from "./patience.js";
import { newKey } from "./saved.js";
import { trouble } from "./sender.js";

/**
 * @typedef {Object} Pending - what is happening with a message or a reply
 * @property {"queued"|"sending"|"waiting"|"replying"|"trouble"|"failed"} phase
 * @property {number} since - milliseconds
 * @property {number} [ahead] - requests before it in the queue
 * @property {string} [text] - of the reply so far
 * @property {string} [words] - what is wrong
 * @property {number} [until] - when it is tried again
 * @property {() => void} [retry]
 * @property {boolean} [isGone] - whether the server does not know the conversation any more
 *
 * @typedef {Object} Exchange
 * @property {string} view - its name on the page
 * @property {number|null} number - null until the server has it
 * @property {string} [key] - of the message in the outbox
 * @property {string} said
 * @property {number|null} current - the version that counts, from 1
 * @property {any[]} replies - each with its requested factors, `target`
 * @property {Pending|null} pending
 * @property {Object} pins - the requested factors
 */

const GONE = "That conversation is no longer on the server.";
const MOVED = `${GONE} What had no reply yet is sent in this new one.`;

/** Tells by events: conversation, exchange and pending (detail: the exchange), settings, list, said (detail: words). */
export class Conversation extends EventTarget {
  /**
   * @param {{store: any, outbox: import("./outbox.js").Outbox, sender: import("./sender.js").Sender,
   *   saved: import("./saved.js").Saved, tab: import("./saved.js").Saved}} parts
   */
  constructor({ store, outbox, sender, saved, tab }) {
    super();
    Object.assign(this, { store, outbox, sender, saved, tab });
    this.id = newDraft();
    /** @type {string[]} */
    this.persona = [];
    /** @type {string|null} */
    this.model = null;
    /** @type {Exchange[]} */
    this.exchanges = [];
    this.#listen();
  }

  get isNew() {
    return isDraft(this.id);
  }

  get last() {
    return this.exchanges.at(-1);
  }

  /** Seconds that the latest reply took; null before the first. */
  get usual() {
    const reply = this.exchanges.findLast((exchange) => exchange.replies.length)?.replies.at(-1);
    return reply?.timings?.total ?? null;
  }

  /** Resumes where the visitor left off; unsent messages come first. */
  async resume() {
    const known = this.tab.get("current", null) ?? this.saved.get("current", null);
    const waiting = this.outbox.entries()[0];
    const current = known ?? (waiting && { id: waiting.conversation, ...waiting.begins });
    if (current) Object.assign(this, { persona: current.persona ?? [], model: current.model ?? null });
    if (current) await this.open(current.id);
    else this.begin();
    this.sender.wake();
  }

  /** A new conversation, with the same listener. */
  begin() {
    this.#become(newDraft());
  }

  /** @param {string} id */
  async open(id) {
    this.#become(id);
    if (isDraft(id)) return;
    try {
      const found = await persist(
        () => this.store.get(id),
        (failure) => this.#tell("said", failure.isLost ? `${failure.message} Trying again.` : failure.message),
      );
      if (this.id !== id) return;
      this.#tell("said", "");
      this.#adopt(found);
      if (this.last && !this.last.replies.length && !this.last.pending) this.#replyAgain(this.last);
    } catch (failure) {
      if (this.id !== id) return;
      if (failure.status !== 404) throw failure;
      const had = this.outbox.entries(id).length;
      this.moveOn();
      this.#tell("said", had ? MOVED : GONE);
    }
  }

  /** Sends a message; it is saved in the browser first. */
  say(text) {
    const entry = this.outbox.add(this.id, text, { persona: this.persona, model: this.model });
    this.exchanges.push(this.#unsent(entry));
    this.#keep();
    this.#tell("conversation");
    this.sender.wake();
  }

  /** Tries a failed message again; where its conversation is gone, in a new one. */
  retry(exchange) {
    const entry = this.outbox.get(exchange.key);
    if (!entry) return exchange.pending?.retry?.();
    this.outbox.update(entry.key, { failed: undefined });
    exchange.pending = this.sender.state(this.outbox.get(entry.key));
    this.#tell("exchange", exchange);
    return this.sender.wake();
  }

  /** Sends what a conversation that is gone still had, in a new one. */
  moveOn() {
    const to = newDraft();
    this.outbox.move(this.id, to);
    this.#become(to);
    this.sender.wake();
  }

  /** Takes a message back that was not sent; returns its words. */
  takeBack(exchange) {
    this.sender.drop(exchange.key);
    this.exchanges = this.exchanges.filter((one) => one !== exchange);
    this.#tell("conversation");
    return exchange.said;
  }

  /** Replies to the last message again with changed factors; null clears them. */
  steer(exchange, change) {
    const isBusy = exchange.pending && exchange.pending.phase !== "failed";
    if (isBusy || exchange !== this.last) return;
    const before = exchange.pins;
    exchange.pins = change ? { ...before, ...change } : {};
    this.#replyAgain(exchange, before);
  }

  /** Continues from another version of a reply. */
  async choose(exchange, version) {
    this.#adopt(await this.store.choose(this.id, exchange.number, version));
  }

  /** @param {{persona?: string[], model?: string}} change */
  async change(change) {
    if (!this.isNew) await this.store.change(this.id, change);
    Object.assign(this, change);
    this.#keep();
    this.#tell("settings");
  }

  /** Deletes this conversation. */
  async remove() {
    if (!this.isNew) await this.store.remove(this.id);
    for (const entry of this.outbox.entries(this.id)) this.sender.drop(entry.key);
    this.begin();
    this.#tell("list");
  }

  /** Deletes every conversation of this visitor. */
  async removeAll() {
    await this.store.removeAll();
    for (const entry of this.outbox.entries()) this.sender.drop(entry.key);
    Object.assign(this, { persona: [], model: null });
    this.begin();
    this.#tell("list");
  }

  #become(id) {
    this.id = id;
    this.exchanges = this.outbox.entries(id).map((entry) => this.#unsent(entry));
    this.#keep();
    this.#tell("conversation");
    this.#tell("settings");
  }

  #keep() {
    const current = { id: this.id, persona: this.persona, model: this.model };
    this.tab.set("current", current);
    this.saved.set("current", current);
  }

  #unsent(entry) {
    const pending = this.sender.state(entry);
    const begin = { number: null, current: null, replies: [], pins: {} };
    return { ...begin, view: entry.key, key: entry.key, said: entry.text, pending };
  }

  /** Takes over what the server knows, and puts what it may not know behind it. */
  #adopt(found) {
    const before = this.exchanges;
    this.exchanges = found.exchanges.map((one) => {
      const known = before.find((exchange) => exchange.number === one.number);
      const pins = { ...one.replies[(one.current ?? 0) - 1]?.target };
      const begin = { view: `n${one.number}`, pending: null, pins };
      return Object.assign(known ?? begin, one);
    });
    for (const entry of this.outbox.entries(this.id)) this.#place(entry, before);
    Object.assign(this, { persona: found.persona, model: found.model });
    this.#keep();
    this.#tell("conversation");
    this.#tell("settings");
  }

  /** Finds the exchange of an unanswered message: the server has it already, or it comes last. */
  #place(entry, before) {
    let found = this.exchanges.find((exchange) => exchange.key === entry.key);
    if (!found) {
      const isSame = (one) => !one.key && one.said === entry.text;
      found = this.exchanges.findLast((one) => isSame(one) && !one.replies.length);
      if (!found && entry.accepted && this.last && isSame(this.last)) found = this.last;
      if (found) found.key = entry.key;
    }
    if (found) found.pending = this.sender.state(entry);
    else this.exchanges.push(before.find((exchange) => exchange.key === entry.key) ?? this.#unsent(entry));
  }

  /**
   * Answers the last message again, or for the first time where its reply was lost.
   * @param {Exchange} exchange
   * @param {Object} [pinsBefore] - to go back to where it fails
   */
  async #replyAgain(exchange, pinsBefore = {}) {
    const { id } = this;
    const key = newKey(); // asked for again after a broken connection, the reply is made once
    const target = Object.keys(exchange.pins).length ? { ...exchange.pins } : undefined;
    const pending = { phase: "sending", since: Date.now(), text: "" };
    const set = (change) => this.#tell("pending", Object.assign(exchange, { pending: Object.assign(pending, change) }));
    set({});
    this.#tell("exchange", exchange);
    const event = (name, data) => {
      if (name === "waiting") set({ phase: "waiting", ahead: data.ahead });
      if (name === "text") set({ phase: "replying", text: pending.text + data.text });
    };
    try {
      const again = (failure, seconds) =>
        set({ phase: "trouble", text: "", ...trouble(failure, seconds), ...(failure.isLost && { words: failure.message }) });
      const answer = await persist(() => this.store.again(id, target, key, { event }), again);
      exchange.pending = null;
      await this.#add(exchange, answer, id);
    } catch (failure) {
      const { pins } = exchange;
      const retry = () => this.#replyAgain(Object.assign(exchange, { pins }), pinsBefore);
      exchange.pins = pinsBefore;
      exchange.pending = { ...pending, phase: "failed", words: failure.message, retry };
    }
    this.#tell("exchange", exchange);
  }

  #add(exchange, { number, version, reply }, id) {
    if (exchange.number !== number || exchange.replies.length + 1 !== version) return this.#refresh(id);
    exchange.replies.push(reply);
    exchange.current = version;
    return this.#tell("replied", exchange);
  }

  async #refresh(id) {
    if (this.id !== id) return;
    const found = await this.store.get(id);
    if (this.id === id) this.#adopt(found);
  }

  async #refreshUntil(id) {
    try {
      await persist(() => this.#refresh(id), () => {});
    } catch (failure) {
      this.#tell("said", failure.message);
    }
  }

  #listen() {
    const own = (handle) => (event) => {
      const { entry } = event.detail;
      const exchange = this.exchanges.find((one) => one.key === entry.key);
      if (exchange) handle(exchange, event.detail);
    };
    this.sender.addEventListener("begun", ({ detail: { entry, from } }) => {
      if (this.id !== from) return;
      this.id = entry.conversation;
      this.#keep();
    });
    const showPending = (exchange, { pending }) => {
      exchange.pending = pending;
      this.#tell("pending", exchange);
    };
    this.sender.addEventListener("pending", own(showPending));
    this.sender.addEventListener("answered", own((exchange, detail) => this.#answered(exchange, detail)));
    this.sender.addEventListener("answered", () => this.#tell("list"));
    const showFailed = (exchange, { entry, failure }) => {
      const isGone = failure instanceof Failure && failure.status === 404;
      exchange.pending = { ...this.sender.state(entry), isGone };
      this.#tell("exchange", exchange);
    };
    this.sender.addEventListener("failed", own(showFailed));
    const showElsewhere = (exchange) => {
      exchange.pending = null;
      delete exchange.key;
      this.#refreshUntil(this.id);
    };
    this.sender.addEventListener("elsewhere", own(showElsewhere));
  }

  #answered(exchange, { entry, answer }) {
    exchange.pending = null;
    if (exchange.number === null && this.exchanges.indexOf(exchange) + 1 === answer.number) {
      exchange.number = answer.number;
    }
    if (exchange.number !== answer.number || exchange.replies.length + 1 !== answer.version) {
      // Told by another tab, or bound to the wrong one of two equal messages: the server knows.
      this.exchanges = this.exchanges.filter((one) => one !== exchange || one.number !== null);
      delete exchange.key;
      this.#refreshUntil(entry.conversation);
      return;
    }
    this.#add(exchange, answer, entry.conversation);
    this.#tell("exchange", exchange);
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
