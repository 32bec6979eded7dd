/** The candidates of a reply. */

import { button, h } from "./dom.js";
import { planLine, scoreLine } from "./words.js";

/**
 * @param {any} reply
 * @param {{isBusy: boolean, steer: (plan: Object) => void}|null} steering - null where it cannot be steered
 * @returns {Node[]}
 */
export function candidatesPanel(reply, steering) {
  const others = reply.candidates.filter((one) => one.text !== reply.reply);
  if (!others.length) return [h("p", { class: "hint" }, "There were no other candidates.")];
  return [h("ol", { class: "candidates" }, ...reply.candidates.map((one, index) => item(one, index, reply, steering)))];
}

function item(candidate, index, reply, steering) {
  const isChosen = candidate.text === reply.reply;
  const plan = planLine(candidate.plan);
  const scores = scoreLine(candidate.scores);
  const act = () => steering?.isBusy || steering?.steer(requested(candidate.plan));
  const canRequest = steering && !isChosen && candidate.plan;
  const state = { "aria-disabled": steering?.isBusy || null, data: { focus: `candidate:${index}` } };
  return h(
    "li",
    { class: isChosen ? "chosen" : "" },
    isChosen && h("span", { class: "hint" }, "Selected reply:"),
    h("p", { class: "words" }, candidate.text),
    plan && h("p", { class: "hint" }, `Plan: ${plan}.`),
    scores && h("p", { class: "hint" }, `Scores: ${scores}.`),
    canRequest && button("Reply with this plan", act, state),
  );
}

/** The factors of a plan that can be requested. */
function requested({ emotion, mechanisms, act, expressed_emotion }) {
  return Object.fromEntries(Object.entries({ emotion, mechanisms, act, expressed_emotion }).filter(([, value]) => value != null));
}
