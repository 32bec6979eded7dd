/** The wording of the page. */

const MODELS = {
  planned: "Plans the reply first, then generates it. It can be steered.",
  comae: "The CoMAE model: plans the reply factor by factor. It can be steered.",
  prompted: "A small language model with a short prompt. It does not plan.",
  retrieval: "Selects the best of replies that people wrote. It does not plan.",
  vanilla: "Fine-tuned to reply. It does not plan.",
};
const STATES = {
  asleep: "It is loaded when it is first used.",
  loading: "It is loading.",
  failed: "It could not be loaded.",
};
/** Reranking features, in the order in which they are shown. */
const FEATURES = {
  total: "total",
  reward: "predicted rating",
  likelihood: "likelihood",
  plan_adherence: "plan adherence",
  interpretation: "interpretation",
  exploration: "exploration",
};
/** Penalties; shown only if they are not zero. */
const PENALTIES = {
  generic_response: "generic response",
  repetition: "repetition",
  copied_persona: "copied persona",
  unsupported_disclosure: "unsupported self-disclosure",
  unfinished: "unfinished",
  generic_question: "generic question",
  brevity: "brevity",
};
/** Names of features in conversations that earlier versions stored. */
const OLD_NAMES = {
  choice: "total",
  liked: "reward",
  realized: "plan_adherence",
  interprets: "interpretation",
  explores: "exploration",
  stock: "generic_response",
  repeated: "repetition",
  copied: "copied_persona",
  invented: "unsupported_disclosure",
  bare: "generic_question",
  brief: "brevity",
};

/** A label without underscores. */
export function plain(label) {
  return label.replaceAll("_", " ");
}

/** The description and the state of a model. */
export function modelWords(name, state) {
  return [MODELS[name], STATES[state]].filter(Boolean).join(" ");
}

/** The persona in a few words. */
export function personaWords(lines) {
  if (!lines.length) return "No persona.";
  return lines.length === 1 ? lines[0] : `${lines[0]} And ${lines.length - 1} more.`;
}

/** The factors of a plan, in the order in which they are decided. */
export const PARTS = { emotion: "emotion", mechanisms: "mechanisms", act: "act", expressed_emotion: "expressed emotion" };

/**
 * The factors of a plan as [name, value]; undecided ones are left out.
 * @returns {[string, string][]}
 */
export function planParts(plan) {
  return Object.keys(PARTS)
    .filter((part) => plan?.[part] !== undefined && plan[part] !== null)
    .map((part) => {
      const value = plan[part];
      return [part, Array.isArray(value) ? value.map(plain).join(", ") || "none" : plain(value)];
    });
}

/** A plan in one line. */
export function planLine(plan) {
  return planParts(plan)
    .map(([part, value]) => `${PARTS[part]} ${value}`)
    .join(" · ");
}

/** The requested factors, in a few words. */
export function targetLine(target) {
  return planParts(target)
    .map(([part, value]) => (part === "emotion" ? `emotion ${value}` : value))
    .join(", ");
}

/** The scores of a candidate, in one line. */
export function scoreLine(scores) {
  const order = Object.keys({ ...FEATURES, ...PENALTIES });
  const rank = ([name]) => (order.includes(name) ? order.indexOf(name) : order.length);
  return Object.entries(scores ?? {})
    .map(([name, value]) => [OLD_NAMES[name] ?? name, value])
    .filter(([name, value]) => value !== null && !(name in PENALTIES && !value))
    .sort((one, other) => rank(one) - rank(other))
    .map(([name, value]) => `${FEATURES[name] ?? PENALTIES[name] ?? plain(name)} ${value.toFixed(2).replace("-", "−")}`)
    .join(" · ");
}

/** A share as a percentage. */
export function percent(share) {
  const value = share * 100;
  return value > 0 && value < 1 ? "< 1 %" : `${Math.round(value)} %`;
}

/** A time that passed. */
export function seconds(value) {
  return value < 10 ? `${value.toFixed(1)} s` : `${Math.round(value)} s`;
}

/** When something was, in the reader's own way. */
export function when(since1970) {
  return new Date(since1970 * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/**
 * The state of a message or a reply.
 * @param {import("./conversation.js").Pending} pending
 * @param {number|null} usual - seconds that a reply took before
 * @param {number} [now] - milliseconds
 */
export function pendingWords(pending, usual, now = Date.now()) {
  const passed = Math.max(0, Math.round((now - pending.since) / 1000));
  const left = Math.max(0, Math.ceil((pending.until - now) / 1000));
  switch (pending.phase) {
    case "queued":
      return "Saved here; it is sent after the previous message.";
    case "sending":
      return passed > 2 ? `Sending. ${passed} s.` : "Sending.";
    case "waiting": {
      if (pending.ahead) return `${ahead(pending.ahead)} Waiting for ${passed} s.`;
      const slow = usual && usual > 4 ? ` A reply takes about ${Math.round(usual)} s here.` : "";
      const patience = passed > 20 ? " This may take a while on this machine." : "";
      return `Generating a reply. ${passed} s.${slow || patience}`;
    }
    case "trouble":
      return left ? `${pending.words} Next try in ${left} s.` : `${pending.words} Trying again.`;
    default:
      return pending.words;
  }
}

/** How many requests are ahead in the queue. */
export function ahead(count) {
  return count === 1 ? "One request is ahead of yours." : `${count} requests are ahead of yours.`;
}
