/** The model chooser, and what the service says of its models. */

import { at, h } from "./dom.js";
import { modelWords } from "./words.js";

/** Milliseconds between looks at a model that is being loaded. */
const SOON = 2000;

export class Models extends EventTarget {
  /**
   * Tells by the event `state` what to say of the model in use (detail: words, empty for nothing).
   * @param {import("./api.js").Api} api
   * @param {import("./conversation.js").Conversation} conversation
   * @param {(work: () => Promise<void>) => void} attempt
   */
  constructor(api, conversation, attempt) {
    super();
    Object.assign(this, { api, conversation });
    this.select = at("model");
    /** @type {{name: string, state: string}[]} */
    this.models = [];
    this.select.addEventListener("change", () => attempt(() => this.#choose(this.select.value)));
    conversation.addEventListener("settings", () => this.#show());
    conversation.addEventListener("replied", () => this.#isReady() || this.look());
  }

  /** Asks how the models are, and again while the one in use is being loaded. */
  async look() {
    try {
      const { models } = await this.api.json("GET", "/api/health");
      this.models = models;
      this.#show();
    } catch {
      // The conversation itself tells that the server cannot be reached.
    }
    clearTimeout(this.timer);
    if (!this.models.length || this.#used()?.state === "loading") this.timer = setTimeout(() => this.look(), SOON);
  }

  async #choose(name) {
    try {
      await this.conversation.change({ model: name });
      await this.look();
    } finally {
      this.#show();
    }
  }

  #used() {
    return this.models.find(({ name }) => name === this.conversation.model) ?? this.models[0];
  }

  #isReady() {
    return this.#used()?.state === "ready";
  }

  #show() {
    const used = this.#used();
    if (!used) return;
    const names = this.models.map(({ name }) => name);
    if (names.join("\n") !== Array.from(this.select.options, (option) => option.value).join("\n")) {
      this.select.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
    }
    this.select.value = used.name;
    at("model-words").textContent = modelWords(used.name, used.state);
    const words = {
      loading: `The model ${used.name} is loading. You can write already.`,
      failed: `The model ${used.name} could not be loaded. Whoever runs this service finds the reason in its log.`,
    };
    this.dispatchEvent(new CustomEvent("state", { detail: words[used.state] ?? "" }));
  }
}
