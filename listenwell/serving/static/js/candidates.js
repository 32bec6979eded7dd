/** What else the listener could have said. */

import { button, h } from "./dom.js";
import { planLine, scoreLine } from "./words.js";

/**
 * @param {any} reply
 * @param {{isBusy: boolean, steer: (plan: Object) => void}|null} steering - null where it cannot be steered
 * @returns {Node[]}
 */
export function candidatesPanel(reply, steering) {
  const others = reply.candidates.filter((one) => one.text !== reply.reply);
  if (!others.length) return [h("p", { class: "hint" }, "It thought of nothing else.")];
  return [h("ol", { class: "candidates" }, ...reply.candidates.map((one, place) => item(one, place, reply, steering)))];
}

function item(candidate, place, reply, steering) {
  const isChosen = candidate.text === reply.reply;
  const plan = planLine(candidate.plan);
  const scores = scoreLine(candidate.scores);
  const act = () => steering?.isBusy || steering?.steer(wish(candidate.plan));
  const canSpeak = steering && !isChosen && candidate.plan;
  const state = { "aria-disabled": steering?.isBusy || null, data: { focus: `candidate:${place}` } };
  return h(
    "li",
    { class: isChosen ? "chosen" : "" },
    isChosen && h("span", { class: "hint" }, "This was said:"),
    h("p", { class: "words" }, candidate.text),
    plan && h("p", { class: "hint" }, `Plan: ${plan}.`),
    scores && h("p", { class: "hint" }, `Judged: ${scores}.`),
    canSpeak && button("Speak again by this plan", act, state),
  );
}

/** The parts of a plan that can be asked for. */
function wish({ emotion, mechanisms, act, tone }) {
  return Object.fromEntries(Object.entries({ emotion, mechanisms, act, tone }).filter(([, value]) => value != null));
}
