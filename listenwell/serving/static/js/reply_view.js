/** One reply, with what unfolds beneath it. */

import { candidatesPanel } from "./candidates.js";
import { button, h } from "./dom.js";
import { folds } from "./folds.js";
import { heardPanel } from "./heard.js";
import { planPanel } from "./plan.js";
import { askedLine } from "./words.js";

export const FOLDS = ["heard", "meant", "else"];

/**
 * @param {any} reply
 * @param {Object} where
 * @param {import("./talk.js").Exchange} where.exchange
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
    heard: () => {
      const steering = canSteer && { labels: labels.emotion, isBusy, choose: (emotion) => steer({ emotion }) };
      return heardPanel(reply, steering || null, prefix);
    },
    meant: () => planPanel(reply, canSteer ? { labels, pins: exchange.pins, isBusy, steer } : null),
    else: () => candidatesPanel(reply, canSteer ? { isBusy, steer } : null),
  };
  const words = { heard: "What it heard", meant: "What it meant to do", else: "What else it could have said" };
  return folds(prefix, FOLDS.map((name) => ({ name, words: words[name], make: makers[name] })), open);
}

/** What names the folds of a reply on the page. */
export function foldPrefix(exchange, version) {
  return `${exchange.view}-v${version}`;
}

function label({ replies }, version) {
  return replies.length > 1 ? `Reply ${version} of ${replies.length} by the listener` : "The listener";
}

function head({ want }, version, isCurrent) {
  const wish = askedLine(want);
  return h(
    "p",
    { class: "head" },
    h("strong", {}, `Reply ${version}`),
    isCurrent && h("span", {}, "The talk goes on from this one."),
    wish && h("span", {}, `You asked for: ${wish}.`),
  );
}

function goOn(version, choose) {
  return button("Go on from this one", () => choose(version), { class: "quiet go-on", data: { focus: `go-on:${version}` } });
}
