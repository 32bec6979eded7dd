/** What is told to those who do not see the page: what happens, and each reply once, when it is whole. */

import { at } from "./dom.js";
import { levelOf } from "./help_banner.js";
import { ahead } from "./words.js";

/** @param {string} words */
export function announce(words) {
  const element = at("announcer");
  element.textContent = element.textContent === words ? `${words}\u00a0` : words; // a change, so that it is announced again
}

/** @param {import("./conversation.js").Conversation} conversation */
export function connectAnnouncer(conversation) {
  let told = "";
  conversation.addEventListener("pending", ({ detail: { view, pending } }) => {
    if (!pending || pending.phase === "replying") return;
    const words = {
      waiting: pending.ahead ? ahead(pending.ahead) : "Generating a reply.",
      trouble: pending.words,
    }[pending.phase];
    if (!words || told === view + words) return;
    told = view + words;
    announce(words);
  });
  conversation.addEventListener("exchange", ({ detail: { pending } }) => {
    if (pending?.phase === "failed") announce(pending.words);
  });
  conversation.addEventListener("replied", ({ detail: exchange }) => {
    told = "";
    if (!conversation.exchanges.includes(exchange)) return;
    const reply = exchange.replies.at(-1);
    const before = levelOf(reply) === "crisis" ? "Help is named at the top of the conversation. " : "";
    announce(`${before}The listener says: ${reply.reply}`);
  });
}
