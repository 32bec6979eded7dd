/** The conversation as it is read, kept in step with the conversation. */

import { at } from "./dom.js";
import { ExchangeView } from "./exchange_view.js";

/** Pixels from the end within which somebody is taken to be reading the end. */
const NEAR = 240;

export class ConversationView {
  /**
   * @param {import("./conversation.js").Conversation} conversation
   * @param {ConstructorParameters<typeof ExchangeView>[2]} page
   */
  constructor(conversation, page) {
    Object.assign(this, { conversation, page });
    this.list = at("conversation");
    this.welcome = at("welcome");
    /** @type {Map<string, ExchangeView>} */
    this.views = new Map();
    conversation.addEventListener("conversation", () => this.#all());
    conversation.addEventListener("exchange", ({ detail }) => {
      this.#one(detail, (view) => view.update());
      if (detail.replies.length) this.#showNewest(detail);
    });
    conversation.addEventListener("settings", () => conversation.last && this.#one(conversation.last, (view) => view.update()));
    conversation.addEventListener("pending", ({ detail }) => this.#one(detail, (view) => view.updatePending()));
    setInterval(() => this.views.forEach((view) => view.tick()), 1000);
  }

  /** Draws everything; those that stay keep the focus and what is open. */
  #all() {
    const { exchanges } = this.conversation;
    const before = this.views;
    const isNew = !exchanges.some((exchange) => before.has(exchange.view));
    this.views = new Map();
    exchanges.forEach((exchange, place) => {
      const view = before.get(exchange.view);
      const found = view?.exchange === exchange ? view : new ExchangeView(exchange, this.conversation, this.page);
      if (found === view) found.update();
      this.views.set(exchange.view, found);
      const there = this.list.children[place] ?? null;
      if (there !== found.element) this.list.insertBefore(found.element, there);
    });
    while (this.list.children.length > exchanges.length) this.list.lastChild.remove();
    this.welcome.hidden = exchanges.length > 0;
    this.list.hidden = !exchanges.length;
    if (isNew || exchanges.length > before.size) this.#toEnd();
  }

  #one(exchange, change) {
    const view = this.views.get(exchange.view);
    if (view?.exchange !== exchange) return;
    const isAtEnd = exchange === this.conversation.last && this.#isNearEnd();
    change(view);
    if (isAtEnd) this.#toEnd();
  }

  /** Of replies that are compared, the newest is brought into sight; what is beneath it may be long. */
  #showNewest(exchange) {
    const grid = this.views.get(exchange.view)?.element.querySelector(".versions.several");
    grid?.lastElementChild.scrollIntoView({ block: "nearest" });
  }

  #isNearEnd() {
    const page = document.documentElement;
    return page.scrollHeight - page.scrollTop - page.clientHeight < NEAR;
  }

  #toEnd() {
    window.scrollTo({ top: document.documentElement.scrollHeight });
  }
}
