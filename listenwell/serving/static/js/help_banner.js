/** Where to find help, in sight for as long as the conversation has spoken of a crisis. */

import { at, button, h } from "./dom.js";

const DIRECTORY = "findahelpline.com";

/**
 * Whether a reply was made because of a crisis, or with concern; null for neither.
 * @param {any} reply
 * @returns {"crisis"|"concern"|null}
 */
export function levelOf(reply) {
  const safety = reply?.safety;
  if (!safety) return null;
  if (safety.level === "crisis" || safety.crisis) return "crisis";
  return safety.level === "concern" ? "concern" : null;
}

/**
 * Words with their numbers as links: on a phone, a touch dials.
 * @param {string} words
 * @param {RegExp} numbers - finds all of them
 * @returns {(string|HTMLElement)[]}
 */
function dialled(words, numbers) {
  const parts = [];
  let end = 0;
  for (const { 0: number, index } of words.matchAll(numbers)) {
    parts.push(words.slice(end, index), h("a", { href: `tel:${number.replaceAll(" ", "")}` }, number));
    end = index + number.length;
  }
  return [...parts, words.slice(end)];
}

export class HelpBanner {
  /** @param {import("./conversation.js").Conversation} conversation */
  constructor(conversation) {
    this.conversation = conversation;
    this.element = at("help");
    /** The exchanges for which it was put away. */
    this.hidden = new Set();
    this.shown = "";
    for (const event of ["conversation", "exchange"]) conversation.addEventListener(event, () => this.#update());
  }

  #update() {
    const found = this.conversation.exchanges
      .map((exchange) => ({ exchange, reply: exchange.replies[(exchange.current ?? 0) - 1] }))
      .filter(({ exchange, reply }) => levelOf(reply) && !this.hidden.has(`${this.conversation.id} ${exchange.number}`));
    const grave = found.findLast(({ reply }) => levelOf(reply) === "crisis") ?? found.at(-1);
    const state = grave ? `${this.conversation.id} ${grave.exchange.number}` : "";
    if (state === this.shown) return;
    this.shown = state;
    this.element.hidden = !grave;
    this.element.replaceChildren();
    if (grave) this.#fill(grave, state);
  }

  #fill({ exchange, reply }, state) {
    const { safety } = reply;
    const isCrisis = levelOf(reply) === "crisis";
    this.element.classList.toggle("soft", !isCrisis);
    const directory = safety.directory ?? DIRECTORY;
    const link = h("a", { href: `https://${directory}`, target: "_blank", rel: "noopener noreferrer" }, directory);
    const lines = safety.help ? [...dialled(safety.help, /(?<=: )\d[\d ]*\d/g), ", and more at "] : [];
    const words = isCrisis ? "You do not have to be alone with this" : "If it becomes too much";
    const number = dialled(safety.emergency ?? "your local emergency number", /\d{3,}/g);
    const emergency = ["In danger now: call ", ...number, ". "];
    const see = h("a", { href: `#exchange-${exchange.view}` }, "See the reply");
    const listeners = ["People who listen, by phone or chat: ", ...lines];
    const told = isCrisis ? [...emergency, ...listeners] : listeners;
    this.element.append(
      h("h2", {}, words),
      h("p", { role: isCrisis ? "alert" : null }, ...told, link, "."),
      h("p", { class: "buttons" }, isCrisis && see, button("Hide this", () => this.#hide(state))),
    );
  }

  #hide(state) {
    this.hidden.add(state);
    this.#update();
    at("message").focus();
  }
}
