/** What is told to those who do not see the page: what happens, and each reply once, when it is whole. */

import { at } from "./dom.js";
import { levelOf } from "./help_banner.js";
import { ahead } from "./words.js";

/** @param {string} words */
export function announce(words) {
  const element = at("announcer");
  element.textContent = element.textContent === words ? `${words}\u00a0` : words; // said twice, heard twice
}

/** @param {import("./talk.js").Talk} talk */
export function connectAnnouncer(talk) {
  let told = "";
  talk.addEventListener("pending", ({ detail: { view, pending } }) => {
    if (!pending || pending.phase === "speaking") return;
    const words = {
      waiting: pending.ahead ? ahead(pending.ahead) : "The listener is thinking.",
      trouble: pending.words,
    }[pending.phase];
    if (!words || told === view + words) return;
    told = view + words;
    announce(words);
  });
  talk.addEventListener("exchange", ({ detail: { pending } }) => {
    if (pending?.phase === "failed") announce(pending.words);
  });
  talk.addEventListener("replied", ({ detail: exchange }) => {
    told = "";
    if (!talk.exchanges.includes(exchange)) return;
    const reply = exchange.replies.at(-1);
    const before = levelOf(reply) === "crisis" ? "Help is named at the top of the conversation. " : "";
    announce(`${before}The listener says: ${reply.reply}`);
  });
}
