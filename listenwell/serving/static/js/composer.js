/** The box one writes in; what stands in it survives a reload. */

import { at } from "./dom.js";

const DRAFT = "writing";

export class Composer {
  /**
   * @param {import("./saved.js").Saved} saved
   * @param {number} most - characters of a message
   * @param {(text: string) => void} send
   */
  constructor(saved, most, send) {
    Object.assign(this, { saved, most, send });
    this.box = at("message");
    this.hint = at("message-hint");
    this.box.value ||= saved.get(DRAFT, "");
    this.box.addEventListener("input", () => this.#changed());
    this.box.addEventListener("keydown", (event) => this.#keyed(event));
    at("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.#changed();
  }

  /** Puts words back that were taken back, before what stands there. */
  put(text) {
    this.box.value = [text, this.box.value].filter(Boolean).join("\n");
    this.#changed();
    this.box.focus();
  }

  /** Enter sends, except where it is the only way to a new line, or ends a word of Japanese, say. */
  #keyed(event) {
    const isTouch = matchMedia("(pointer: coarse)").matches;
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || isTouch) return;
    event.preventDefault();
    this.#send();
  }

  #send() {
    const text = this.box.value.trim();
    if (!text || this.#excess() > 0) {
      this.#changed();
      this.box.focus();
      return;
    }
    this.box.value = "";
    this.#changed();
    this.send(text);
    this.box.focus();
  }

  #changed() {
    this.saved.set(DRAFT, this.box.value || undefined);
    const excess = this.#excess();
    const words = excess > 0 ? `This is too long by ${excess.toLocaleString()} characters. Send it in parts.` : "";
    if (this.hint.textContent !== words) this.hint.textContent = words;
  }

  /** Characters too many, counted as the server does. */
  #excess() {
    const text = this.box.value.trim();
    return text.length > this.most ? [...text].length - this.most : 0;
  }
}
