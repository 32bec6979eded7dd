/** Things that stay folded until they are asked for. */

import { h } from "./dom.js";

/**
 * A row of buttons, each with a panel that is made when it is first opened.
 * @param {string} prefix - names this row on the page
 * @param {{name: string, words: string, make: () => Node[]}[]} parts
 * @param {Set<string>} open - names of the open ones, kept up to date
 * @returns {HTMLElement[]} the row and the panels
 */
export function folds(prefix, parts, open) {
  const row = h("div", { class: "folds" });
  const panels = parts.map(({ name, words, make }) => {
    const key = `${prefix}-${name}`;
    const panel = h("div", { class: "panel", id: key, role: "group", "aria-label": words });
    const toggle = h("button", { type: "button", "aria-controls": key, data: { focus: `fold:${key}` } }, words);
    const show = () => {
      const isOpen = open.has(key);
      toggle.setAttribute("aria-expanded", String(isOpen));
      panel.hidden = !isOpen;
      if (isOpen && !panel.hasChildNodes()) panel.append(...make());
    };
    toggle.addEventListener("click", () => {
      if (!open.delete(key)) open.add(key);
      show();
    });
    show();
    row.append(toggle);
    return panel;
  });
  return [row, ...panels];
}
