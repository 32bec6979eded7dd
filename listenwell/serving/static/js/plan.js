/** What the listener meant to do, and the factors to steer it by. */

import { button, h } from "./dom.js";
import { plain, planParts, seconds } from "./words.js";

const NAMES = { emotion: "Hears", mechanisms: "Uses", act: "Does", tone: "Expresses" };
const MECHANISMS =
  "Emotional reaction: it feels with you. Interpretation: it says what it understood. Exploration: it asks for more.";
const GROUPS = [
  ["mechanisms", "What it uses", MECHANISMS],
  ["act", "What it does", ""],
  ["tone", "What it expresses", ""],
];

/**
 * @param {any} reply
 * @param {{labels: Object<string, string[]>, pins: Object, isBusy: boolean, steer: (change: Object|null) => void}|null}
 *   steering - null where it cannot be steered
 * @returns {Node[]}
 */
export function planPanel(reply, steering) {
  if (!reply.plan) {
    const words = reply.safety?.answer && reply.safety.answer !== "candidate"
      ? "This reply was not planned: it is one of the fixed, safe ones."
      : "This model makes no plans, so it cannot be steered. Another can be chosen in the menu.";
    return [h("p", { class: "hint" }, words), origin(reply)];
  }
  // Where it can be steered, the pressed buttons say the rest.
  const told = planParts(reply.plan).filter(([part]) => !steering || part === "emotion");
  const rows = told.flatMap(([part, value]) => [h("dt", {}, NAMES[part]), h("dd", {}, value)]);
  const nodes = rows.length ? [h("dl", { class: "plan" }, ...rows)] : [];
  if (!steering) return [...nodes, origin(reply)];
  nodes.push(h("p", { class: "hint" }, "Choose another, and the reply is spoken again; what you leave is decided anew."));
  for (const [part, title, hint] of GROUPS) nodes.push(group(part, title, hint, reply.plan, steering));
  if (Object.keys(steering.pins).length) {
    const free = () => steering.isBusy || steering.steer(null);
    const state = { "aria-disabled": steering.isBusy || null, data: { focus: "free" } };
    nodes.push(button("Let it decide all again", free, state));
  }
  return [...nodes, origin(reply)];
}

function group(part, title, hint, plan, { labels, pins, isBusy, steer }) {
  const isAsked = part in pins;
  const chips = labels[part].map((label) => {
    const isOn = part === "mechanisms" ? Boolean(plan[part]?.includes(label)) : plan[part] === label;
    const act = () => isBusy || steer({ [part]: part === "mechanisms" ? toggled(plan[part] ?? [], label) : label });
    const state = { "aria-pressed": String(isOn), "aria-disabled": isBusy || null, data: { focus: `${part}:${label}` } };
    return button(plain(label), act, { ...state, class: "" });
  });
  const legend = h("legend", {}, isAsked ? `${title} (asked for by you)` : title);
  const words = hint && h("p", { class: "hint" }, hint);
  return h("fieldset", { class: "factors" }, legend, words, h("div", { class: "chips" }, ...chips));
}

function toggled(used, label) {
  return used.includes(label) ? used.filter((one) => one !== label) : [...used, label];
}

function origin({ model, seed, timings }) {
  const time = timings?.total ? `, in ${seconds(timings.total)}` : "";
  return h("p", { class: "hint" }, `Said by the model ${model}${time} (seed ${seed}).`);
}
