/** Making elements. Text is only ever text: nothing here reads markup. */

/**
 * An element.
 * @param {string} tag
 * @param {Object<string, any>} [properties] - `class`, `on` with listeners by event, `data` for data-…; others are
 *   attributes, where true sets an empty one and false, null or undefined leave it out
 * @param {...(Node|string|null|undefined|false)} children - strings become text
 * @returns {HTMLElement}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child || child === ""));
  return element;
}

/**
 * A plain button.
 * @param {string} words
 * @param {() => void} act
 * @param {Object<string, any>} [properties]
 */
export function button(words, act, properties = {}) {
  return h("button", { type: "button", class: "quiet", ...properties, on: { click: act } }, words);
}

/**
 * The element of an id in the page.
 * @param {string} id
 * @returns {any}
 */
export function at(id) {
  return document.getElementById(id);
}

/**
 * Puts new content into an element's place; whoever had the focus in it keeps it, by `data-focus`.
 * @param {HTMLElement} old
 * @param {HTMLElement} made
 */
export function swap(old, made) {
  const held = old.contains(document.activeElement) ? document.activeElement : null;
  old.replaceWith(made);
  if (!held) return;
  const name = held instanceof HTMLElement ? held.dataset.focus : undefined;
  const next = name && made.querySelector(`[data-focus="${CSS.escape(name)}"]`);
  if (next instanceof HTMLElement) next.focus({ preventScroll: true });
}
