/** One reply, with its details. */

import { candidatesPanel } from "./candidates.js";
import { button, h } from "./dom.js";
import { folds } from "./folds.js";
import { emotionPanel } from "./emotion.js";
import { planPanel } from "./plan.js";
import { targetLine } from "./words.js";

export const FOLDS = ["emotion", "plan", "candidates"];

/**
 * @param {any} reply
 * @param {Object} where
 * @param {import("./conversation.js").Exchange} where.exchange
 * @param {number} where.version - from 1
 * @param {boolean} where.isLast - whether it answers the last message, so that it can be spoken again
 * @param {boolean} where.canPlan - whether the model that would speak again makes plans
 * @param {Object<string, string[]>} where.labels - what can be asked for
 * @param {Set<string>} where.open - which folds are open
 * @param {(change: Object|null) => void} where.steer
 * @param {(version: number) => void} where.choose
 * @param {boolean} isWhole - with its folds, which `replyFolds` makes to stand elsewhere
 * @returns {HTMLElement}
 */
export function replyView(reply, where, isWhole) {
  const { exchange, version, isLast, choose } = where;
  const isCurrent = exchange.current === version;
  return h(
    "article",
    { class: isCurrent ? "reply current" : "reply", "aria-label": label(exchange, version) },
    exchange.replies.length > 1 && head(reply, version, isCurrent),
    h("p", { class: "words" }, reply.reply),
    ...(reply.notices ?? []).map((notice) => h("p", { class: "hint" }, notice)),
    isLast && !isCurrent && goOn(version, choose),
    ...(isWhole ? replyFolds(reply, where) : []),
  );
}

/** What unfolds beneath a reply, as in `replyView`. */
export function replyFolds(reply, { exchange, version, isLast, canPlan, labels, open, steer }) {
  const isCurrent = exchange.current === version;
  const isBusy = Boolean(exchange.pending && exchange.pending.phase !== "failed");
  const canSteer = isLast && isCurrent && canPlan && reply.plan !== null && exchange.number !== null;
  const prefix = foldPrefix(exchange, version);
  const makers = {
    emotion: () => {
      const steering = canSteer && { labels: labels.emotion, isBusy, choose: (emotion) => steer({ emotion }) };
      return emotionPanel(reply, steering || null, prefix);
    },
    plan: () => planPanel(reply, canSteer ? { labels, pins: exchange.pins, isBusy, steer } : null),
    candidates: () => candidatesPanel(reply, canSteer ? { isBusy, steer } : null),
  };
  const words = { emotion: "Detected emotion", plan: "Plan of the reply", candidates: "Other candidates" };
  return folds(prefix, FOLDS.map((name) => ({ name, words: words[name], make: makers[name] })), open);
}

/** What names the folds of a reply on the page. */
export function foldPrefix(exchange, version) {
  return `${exchange.view}-v${version}`;
}

function label({ replies }, version) {
  return replies.length > 1 ? `Reply ${version} of ${replies.length} by the listener` : "The listener";
}

function head({ target }, version, isCurrent) {
  const requested = targetLine(target);
  return h(
    "p",
    { class: "head" },
    h("strong", {}, `Reply ${version}`),
    isCurrent && h("span", {}, "The conversation continues from this reply."),
    requested && h("span", {}, `Requested: ${requested}.`),
  );
}

function goOn(version, choose) {
  return button("Continue from this reply", () => choose(version), { class: "quiet go-on", data: { focus: `go-on:${version}` } });
}
