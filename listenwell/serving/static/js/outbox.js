/** Messages that have no reply yet, kept in the browser so that neither a reload nor a lost connection loses one. */

import { newKey } from "./saved.js";

const NAME = "outbox";
const DRAFT = "new-";

/**
 * @typedef {Object} Entry
 * @property {string} key - the message's own name: sent again under it, it is kept once
 * @property {string} conversation - the conversation, or the name of one that the server does not know yet
 * @property {string} text
 * @property {{persona: string[], model: string|null}} begins - what a new conversation begins with
 * @property {boolean} [accepted] - whether the server said that it has it
 * @property {string} [failed] - why it will not be sent again by itself
 */

/** A name for a conversation that the server does not know yet. */
export function newDraft() {
  return DRAFT + newKey();
}

/** @param {string} conversation */
export function isDraft(conversation) {
  return conversation.startsWith(DRAFT);
}

export class Outbox {
  /** @param {import("./saved.js").Saved} saved */
  constructor(saved) {
    this.saved = saved;
  }

  /** @returns {Entry[]} the oldest first, of one conversation or of all */
  entries(conversation) {
    // Earlier versions wrote `talk`.
    const all = this.saved.get(NAME, []).map(({ talk, ...entry }) => ({ conversation: talk, ...entry }));
    return conversation ? all.filter((entry) => entry.conversation === conversation) : all;
  }

  /** @returns {Entry|undefined} */
  get(key) {
    return this.entries().find((entry) => entry.key === key);
  }

  /** The next one to send. */
  next() {
    return this.entries().find((entry) => !entry.failed);
  }

  /** @returns {Entry} */
  add(conversation, text, begins) {
    const entry = { key: newKey(), conversation, text, begins };
    this.saved.set(NAME, [...this.entries(), entry]);
    return entry;
  }

  remove(key) {
    this.saved.set(NAME, this.entries().filter((entry) => entry.key !== key));
  }

  /** Forgets what waits for one conversation, or everything. */
  clear(conversation) {
    this.saved.set(NAME, conversation ? this.entries().filter((entry) => entry.conversation !== conversation) : []);
  }

  /** @param {Partial<Entry>} change */
  update(key, change) {
    this.saved.set(NAME, this.entries().map((entry) => (entry.key === key ? { ...entry, ...change } : entry)));
  }

  /** Gives all messages of one conversation to another, to be sent there. */
  move(from, to) {
    const moved = ({ failed, ...entry }) => ({ ...entry, conversation: to, accepted: false });
    this.saved.set(NAME, this.entries().map((entry) => (entry.conversation === from ? moved(entry) : entry)));
  }
}
