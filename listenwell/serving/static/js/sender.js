/** Sends what is in the outbox, one message after the other, until each has its reply. */

import { isDraft } from "./outbox.js";
import { persist } from "./patience.js";

const LOST = "The connection is lost. Your message is saved here and will be sent when the server responds.";

export class Sender extends EventTarget {
  /**
   * Tells by events whose detail has the `entry`: begun (`from`: the draft's name), pending, accepted, answered
   * (`answer`), failed (`failure`), elsewhere (another tab was quicker).
   * @param {import("./kept.js").Kept} store
   * @param {import("./outbox.js").Outbox} outbox
   */
  constructor(store, outbox) {
    super();
    this.store = store;
    this.outbox = outbox;
    /** @type {Map<string, import("./conversation.js").Pending>} what is happening, by message */
    this.states = new Map();
    /** @type {{key: string, controller: AbortController}|null} */
    this.active = null;
  }

  /** What is happening with a message. */
  state(entry) {
    if (entry.failed) return { phase: "failed", words: entry.failed, since: Date.now() };
    return this.states.get(entry.key) ?? { phase: "queued", since: Date.now() };
  }

  /** Begins to send, if that has not begun. */
  async wake() {
    if (this.active) return;
    for (let entry = this.outbox.next(); entry; entry = this.outbox.next()) {
      this.active = { key: entry.key, controller: new AbortController() };
      await this.#deliver(entry.key, this.active.controller.signal);
      this.states.delete(entry.key);
      this.active = null;
    }
  }

  /** Stops sending a message; it is no longer in the outbox. */
  drop(key) {
    this.outbox.remove(key);
    if (this.active?.key === key) this.active.controller.abort();
  }

  async #deliver(key, signal) {
    try {
      const answer = await persist(
        () => this.#attempt(key, signal),
        (failure, seconds) => this.#set(key, { phase: "trouble", ...trouble(failure, seconds) }),
        signal,
      );
      const entry = this.outbox.get(key);
      this.outbox.remove(key);
      if (entry) this.#tell("answered", { entry, answer });
      else this.#tell("elsewhere", { entry: { key } });
    } catch (failure) {
      if (signal.aborted) return;
      const entry = this.outbox.get(key);
      this.outbox.update(key, { failed: failure.message });
      if (entry) this.#tell("failed", { entry: { ...entry, failed: failure.message }, failure });
      else this.#tell("elsewhere", { entry: { key } });
    }
  }

  async #attempt(key, signal) {
    this.#set(key, { phase: "sending" });
    await this.#begun(key);
    signal.throwIfAborted();
    return this.store.say(this.outbox.get(key), {
      signal,
      accepted: () => {
        this.outbox.update(key, { accepted: true });
        this.#tell("accepted", { entry: this.outbox.get(key) });
      },
      event: (name, data) => {
        const { text = "" } = this.states.get(key);
        if (name === "waiting") this.#set(key, { phase: "waiting", ahead: data.ahead });
        if (name === "text") this.#set(key, { phase: "replying", text: text + data.text });
      },
    });
  }

  /** A conversation of which the server does not know yet is begun with its first message. */
  async #begun(key) {
    const from = this.outbox.get(key)?.conversation;
    if (!from || !isDraft(from)) return;
    const made = await this.store.begin(this.outbox.get(key).begins, from);
    this.outbox.move(from, made.id);
    this.#tell("begun", { entry: this.outbox.get(key), from });
  }

  #set(key, change) {
    const before = this.states.get(key);
    const text = change.phase === "replying" ? change.text : "";
    this.states.set(key, Object.assign(before ?? { since: Date.now() }, change, { text }));
    const entry = this.outbox.get(key);
    if (entry) this.#tell("pending", { entry, pending: this.states.get(key), change });
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** What to say of a failure that passes. */
export function trouble(failure, seconds) {
  return { words: failure.isLost ? LOST : failure.message, until: Date.now() + seconds * 1000 };
}
