/** The side: conversations to go back to, and what can be done with them. */

import { download, isSure } from "./dialogs.js";
import { at, h, swap } from "./dom.js";
import { personaWords, when } from "./words.js";

export class Side {
  /**
   * @param {import("./conversation.js").Conversation} conversation
   * @param {(work: () => Promise<void>) => void} attempt - does something and says what failed
   * @param {(words: string) => void} announce
   */
  constructor(conversation, attempt, announce) {
    Object.assign(this, { conversation, attempt, announce });
    this.conversations = [];
    this.#connectMenu();
    this.#connectButtons();
    conversation.addEventListener("conversation", () => this.#show());
    conversation.addEventListener("exchange", () => this.#showButtons());
    conversation.addEventListener("settings", () => {
      at("persona-words").textContent = personaWords(conversation.persona);
    });
    conversation.addEventListener("list", () => this.update());
  }

  /** Asks for the list again. */
  async update() {
    try {
      this.conversations = await this.conversation.store.list();
    } catch {
      return; // the old list is better than none
    }
    this.#show();
  }

  #show() {
    const items = this.conversations.map(({ id, begins, changed }) => {
      const open = () => {
        this.#close();
        this.attempt(() => this.conversation.open(id));
      };
      const properties = { type: "button", title: when(changed), data: { focus: id }, on: { click: open } };
      return h("li", {}, h("button", { ...properties, "aria-current": id === this.conversation.id ? "true" : null }, begins));
    });
    swap(at("conversation-list"), h("ul", { id: "conversation-list", class: "conversations" }, ...items));
    at("no-conversations").hidden = items.length > 0;
    this.#showButtons();
  }

  #showButtons() {
    const { conversation } = this;
    at("export").disabled = conversation.isNew;
    at("delete").disabled = !conversation.exchanges.length;
    at("export-all").disabled = at("delete-all").disabled = !this.conversations.length;
  }

  #connectMenu() {
    const [menu, side] = [at("menu"), at("side")];
    menu.addEventListener("click", () => {
      const isOpen = side.classList.toggle("open");
      menu.setAttribute("aria-expanded", String(isOpen));
      if (isOpen) window.scrollTo({ top: 0 });
    });
    side.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !side.classList.contains("open")) return;
      this.#close();
      menu.focus();
    });
  }

  #close() {
    at("side").classList.remove("open");
    at("menu").setAttribute("aria-expanded", "false");
  }

  #connectButtons() {
    const { conversation, attempt } = this;
    at("new").addEventListener("click", () => {
      this.#close();
      conversation.begin();
      this.announce("A new conversation.");
      at("message").focus();
    });
    at("export").addEventListener("click", () => attempt(async () => this.#export(conversation.id)));
    at("export-all").addEventListener("click", () => attempt(async () => this.#export(null)));
    at("delete").addEventListener("click", () => attempt(() => this.#delete()));
    at("delete-all").addEventListener("click", () => attempt(() => this.#deleteAll()));
  }

  async #export(id) {
    download(await this.conversation.store.exported(id), id ? "conversation.jsonl" : "conversations.jsonl");
  }

  async #delete() {
    if (!(await isSure("Delete this conversation?", "It cannot be brought back."))) return;
    await this.conversation.remove();
    this.#deleted("The conversation is deleted.");
  }

  async #deleteAll() {
    const words = `All ${this.conversations.length} of your conversations are deleted, and cannot be brought back.`;
    if (!(await isSure("Delete all conversations?", words))) return;
    await this.conversation.removeAll();
    this.#deleted("All conversations are deleted.");
  }

  #deleted(words) {
    this.#close();
    this.announce(words);
    at("message").focus();
  }
}
