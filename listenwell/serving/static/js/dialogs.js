/** Questions that are asked in a window of their own. */

import { at } from "./dom.js";

/**
 * Asks before something is deleted.
 * @param {string} title
 * @param {string} words
 * @returns {Promise<boolean>}
 */
export function isSure(title, words) {
  at("sure-title").textContent = title;
  at("sure-words").textContent = words;
  return shown(at("sure")).then((value) => value === "yes");
}

/**
 * Asks for the service's key until one is given.
 * @param {boolean} wasWrong
 * @returns {Promise<string>}
 */
export async function askForKey(wasWrong) {
  const box = at("key-value");
  if (wasWrong) at("key-words").textContent = "That key was not the right one. Try again.";
  for (;;) {
    box.value = "";
    if ((await shown(at("key"))) === "yes" && box.value.trim()) return box.value.trim();
  }
}

/** The value of the button that closed it; empty for Escape. */
function shown(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true });
  });
}

/**
 * Gives somebody a file.
 * @param {string} text
 * @param {string} name
 */
export function download(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
