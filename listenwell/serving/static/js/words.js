/** How things are called on the page. */

const MODELS = {
  planned: "Decides what to do first, then speaks. It can be steered.",
  comae: "Plans as the paper CoMAE does. It can be steered.",
  prompted: "A small language model with a short prompt; nothing trained, no plans.",
  retrieval: "Finds the best of replies that people wrote; no plans.",
  vanilla: "Trained to reply, without plans.",
};
const STATES = {
  asleep: "It wakes when it is first spoken to.",
  loading: "It is being loaded.",
  failed: "It could not be loaded.",
};
/** Who judges replies, in the order in which they are told. */
const JUDGES = {
  choice: "in all",
  ranker: "how well it answers",
  likelihood: "how likely the words are",
  prior: "how common they are anywhere",
  plan: "how fitting the plan is",
  realized: "whether it does what was planned",
};
/** What is taken off for; told where there is any. */
const FAULTS = {
  stock: "stock phrases",
  repeated: "said before",
  copied: "copied from the persona",
  invented: "a life it does not have",
  unfinished: "broken off",
  bare: "a bare question",
  brief: "too few words",
};

/** A label as people write it. */
export function plain(label) {
  return label.replaceAll("_", " ");
}

/** What a model is, and how it is. */
export function modelWords(name, state) {
  return [MODELS[name], STATES[state]].filter(Boolean).join(" ");
}

/** Whether a choice of the persona is made, in a few words. */
export function personaWords(lines) {
  if (!lines.length) return "Nobody in particular.";
  return lines.length === 1 ? lines[0] : `${lines[0]} And ${lines.length - 1} more.`;
}

/** Names of a plan's parts, in the order in which they are decided. */
export const PARTS = { emotion: "hears", mechanisms: "uses", act: "does", tone: "expresses" };

/**
 * A plan's parts as [part, value in words]; what was not decided is left out.
 * @returns {[string, string][]}
 */
export function planParts(plan) {
  return Object.keys(PARTS)
    .filter((part) => plan?.[part] !== undefined && plan[part] !== null)
    .map((part) => {
      const value = plan[part];
      return [part, Array.isArray(value) ? value.map(plain).join(", ") || "none of the three" : plain(value)];
    });
}

/** A plan in one line. */
export function planLine(plan) {
  return planParts(plan)
    .map(([part, value]) => `${PARTS[part]} ${value}`)
    .join(" · ");
}

/** What was asked for, in a few words. */
export function askedLine(wish) {
  return planParts(wish)
    .map(([part, value]) => (part === "emotion" ? `hearing ${value}` : value))
    .join(", ");
}

/** What judges said of a candidate, in one line. */
export function scoreLine(scores) {
  const told = Object.entries(scores ?? {}).filter(([name, value]) => value !== null && !(name in FAULTS && !value));
  const order = Object.keys({ ...JUDGES, ...FAULTS });
  const place = ([name]) => (order.includes(name) ? order.indexOf(name) : order.length);
  return told
    .sort((one, other) => place(one) - place(other))
    .map(([name, value]) => `${JUDGES[name] ?? FAULTS[name] ?? plain(name)} ${value.toFixed(2).replace("-", "−")}`)
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
 * What is happening with a message or a reply.
 * @param {import("./talk.js").Pending} pending
 * @param {number|null} usual - seconds that a reply took before
 * @param {number} [now] - milliseconds
 */
export function pendingWords(pending, usual, now = Date.now()) {
  const passed = Math.max(0, Math.round((now - pending.since) / 1000));
  const left = Math.max(0, Math.ceil((pending.until - now) / 1000));
  switch (pending.phase) {
    case "queued":
      return "Kept here; it is sent after the message before it.";
    case "sending":
      return passed > 2 ? `Sending. ${passed} s.` : "Sending.";
    case "waiting": {
      if (pending.ahead) return `${ahead(pending.ahead)} Waiting for ${passed} s.`;
      const slow = usual && usual > 4 ? ` A reply takes about ${Math.round(usual)} s here.` : "";
      const patience = passed > 20 ? " This machine is slow; the reply will come." : "";
      return `The listener is thinking. ${passed} s.${slow || patience}`;
    }
    case "trouble":
      return left ? `${pending.words} Next try in ${left} s.` : `${pending.words} Trying again.`;
    default:
      return pending.words;
  }
}

/** How many are before one in the line. */
export function ahead(count) {
  return count === 1 ? "One request is ahead of yours." : `${count} requests are ahead of yours.`;
}
