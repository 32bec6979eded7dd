/** A message with its replies, and what is happening with it. */

import { button, h, swap } from "./dom.js";
import { nudge } from "./patience.js";
import { FOLDS, foldPrefix, replyFolds, replyView } from "./reply_view.js";
import { pendingWords } from "./words.js";

export class ExchangeView {
  /**
   * @param {import("./conversation.js").Exchange} exchange
   * @param {import("./conversation.js").Conversation} conversation
   * @param {{labels: Object<string, string[]>, canPlan: (model: string|null) => boolean, open: Set<string>,
   *   attempt: (work: () => Promise<void>) => void, takeBack: (exchange: import("./conversation.js").Exchange) => void}} page
   */
  constructor(exchange, conversation, page) {
    Object.assign(this, { exchange, conversation, page });
    this.shown = exchange.replies.length;
    this.element = this.#made();
  }

  /** Draws it again. */
  update() {
    const { exchange } = this;
    if (exchange.replies.length > this.shown && this.shown) this.#carryOpen();
    this.shown = exchange.replies.length;
    const made = this.#made();
    swap(this.element, made);
    this.element = made;
  }

  /** Shows what is happening, without drawing the rest. */
  updatePending() {
    const made = this.#pending();
    if (this.pending) swap(this.pending, made);
    else this.element.append(made);
    this.pending = made;
  }

  /** Lets time pass. */
  tick() {
    const { pending } = this.exchange;
    if (pending && this.status && pending.phase !== "replying") {
      this.status.textContent = pendingWords(pending, this.conversation.usual);
    }
  }

  /** A reply that was spoken again opens where the one before it was open. */
  #carryOpen() {
    const { exchange, page } = this;
    for (const name of FOLDS) {
      const before = `${foldPrefix(exchange, this.current)}-${name}`;
      if (page.open.delete(before)) page.open.add(`${foldPrefix(exchange, exchange.current)}-${name}`);
    }
  }

  #made() {
    const { exchange, conversation } = this;
    this.current = exchange.current;
    this.pending = exchange.pending ? this.#pending() : null;
    const isLast = exchange === conversation.last;
    const isCompared = isLast && exchange.replies.length + (this.pending ? 1 : 0) > 1;
    const words = h("p", { class: "words" }, exchange.said);
    const said = h("div", { class: "said" }, h("span", { class: "unseen" }, "You said: "), words);
    const properties = { class: "exchange", id: `exchange-${exchange.view}`, tabindex: "-1" };
    return h("li", properties, said, ...(isCompared ? this.#compared() : [...this.#replies(isLast), this.pending]));
  }

  /** Side by side, with what is behind the current one, and what it is steered by, beneath. */
  #compared() {
    const { replies, current } = this.exchange;
    const views = replies.map((reply, place) => this.#reply(reply, place + 1, true, place + 1 !== current));
    const grid = h("div", { class: "versions several" }, ...views, this.pending);
    if (!current) return [grid];
    const title = replies.length > 1 && h("p", { class: "head" }, `Details of reply ${current}:`);
    return [grid, h("div", { class: "under" }, title, ...replyFolds(replies[current - 1], this.#where(current, true)))];
  }

  #replies(isLast) {
    const { replies, current } = this.exchange;
    if (!replies.length) return [];
    const views = replies.map((reply, place) => this.#reply(reply, place + 1, isLast));
    if (replies.length === 1) return [h("div", { class: "versions" }, ...views)];
    const [chosen] = views.splice((current ?? 1) - 1, 1);
    const others = views.length === 1 ? "One more reply" : `${views.length} more replies`;
    const grid = h("div", { class: "versions several" }, ...views);
    const older = h("details", { class: "older" }, h("summary", {}, others), grid);
    return [h("div", { class: "versions" }, chosen), older];
  }

  #reply(reply, version, isLast, isWhole = true) {
    return replyView(reply, this.#where(version, isLast), isWhole);
  }

  #where(version, isLast) {
    const { exchange, conversation, page } = this;
    const steer = (change) => conversation.steer(exchange, change);
    const choose = (chosen) => page.attempt(() => conversation.choose(exchange, chosen));
    const canPlan = page.canPlan(conversation.model);
    return { exchange, version, isLast, canPlan, labels: page.labels, open: page.open, steer, choose };
  }

  #pending() {
    const { pending } = this.exchange;
    const { phase } = pending;
    if (phase === "replying") {
      this.status = null;
      return h("div", { class: "pending" }, h("p", { class: "reply words" }, pending.text));
    }
    this.status = h("span", {}, pendingWords(pending, this.conversation.usual));
    const dots = h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i"));
    const buttons = this.#buttons(phase);
    return h(
      "div",
      { class: `pending ${phase}` },
      h("div", { class: "status" }, dots, this.status),
      buttons.length ? h("div", { class: "buttons" }, ...buttons) : null,
    );
  }

  #buttons(phase) {
    const { exchange, conversation, page } = this;
    const entry = exchange.key && conversation.outbox.get(exchange.key);
    const canTakeBack = entry && !entry.accepted && ["queued", "trouble", "failed"].includes(phase);
    const found = [];
    if (phase === "trouble") found.push(button("Try now", nudge, { data: { focus: "try" } }));
    if (phase === "failed" && exchange.pending.isGone) {
      found.push(button("Send it in a new conversation", () => conversation.moveOn(), { data: { focus: "move" } }));
    } else if (phase === "failed") {
      found.push(button("Try again", () => conversation.retry(exchange), { data: { focus: "try" } }));
    }
    if (canTakeBack) found.push(button("Take it back", () => page.takeBack(exchange), { data: { focus: "back" } }));
    return found;
  }
}
