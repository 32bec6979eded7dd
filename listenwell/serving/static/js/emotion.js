/** The predicted emotions, the most probable first, and a way to correct them. */

import { button, h } from "./dom.js";
import { percent, plain } from "./words.js";

const MOST = 6;

/**
 * @param {any} reply
 * @param {{labels: string[], isBusy: boolean, choose: (emotion: string) => void}|null} steering - null where it cannot
 *   be steered
 * @param {string} prefix - names this panel on the page
 * @returns {Node[]}
 */
export function emotionPanel(reply, steering, prefix) {
  const remembered = stateLines(reply.state);
  if (!reply.emotion?.length) return [h("p", { class: "hint" }, "This model does not predict emotions."), ...remembered];
  const bars = reply.emotion.slice(0, MOST).map(({ label, probability }) => bar(label, probability ?? 0));
  const nodes = [h("ul", { class: "bars" }, ...bars)];
  const planned = reply.plan?.emotion;
  if (planned && planned !== reply.emotion[0].label && !reply.target?.emotion) {
    const words = `The reply was planned for the emotion ${plain(planned)}: the generator's own prediction counts, too.`;
    nodes.push(h("p", { class: "hint" }, words));
  }
  return [...nodes, ...remembered, ...(steering ? [correction(reply, steering, prefix)] : [])];
}

/** What the reply took from the messages before the last one. */
function stateLines(state) {
  if (!state) return [];
  const lines = [
    state.event && `Earlier you said: “${state.event}”${state.feeling ? ` (${plain(state.feeling)})` : ""}`,
    state.names?.length && `Names: ${state.names.join(", ")}`,
    state.asked?.length && `Already asked: ${state.asked.join(" ")}`,
  ];
  return lines.filter(Boolean).map((line) => h("p", { class: "hint" }, line));
}

function bar(label, share) {
  const fill = h("span", { class: "fill" });
  fill.style.width = `${Math.max(1, Math.min(100, share * 100))}%`;
  const track = h("span", { class: "track", "aria-hidden": "true" }, fill);
  return h("li", {}, h("span", {}, plain(label)), track, h("span", { class: "share" }, percent(share)));
}

/** A list and a button: a list that acted on each arrow key could not be used by keyboard. */
function correction(reply, { labels, isBusy, choose }, prefix) {
  const id = `${prefix}-feel`;
  const detected = reply.plan?.emotion ?? reply.emotion[0].label;
  const options = labels.map((label) => h("option", { value: label, selected: label === detected }, plain(label)));
  const select = h("select", { id, data: { focus: "feel" } }, ...options);
  const act = () => isBusy || choose(/** @type {HTMLSelectElement} */ (select).value);
  const go = button("Reply again", act, { "aria-disabled": isBusy || null, data: { focus: "feel-go" } });
  const label = h("label", { for: id }, "Not how you feel? Select your emotion:");
  return h("div", { class: "choose" }, label, h("div", { class: "row" }, select, go));
}
