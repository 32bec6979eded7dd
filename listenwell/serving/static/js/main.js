/** Puts the page together. */

import { announce, connectAnnouncer } from "./announcer.js";
import { Api } from "./api.js";
import { Composer } from "./composer.js";
import { ConversationView } from "./conversation_view.js";
import { askForKey } from "./dialogs.js";
import { at } from "./dom.js";
import { HelpBanner } from "./help_banner.js";
import { Kept } from "./kept.js";
import { Models } from "./models.js";
import { Outbox } from "./outbox.js";
import { persist } from "./patience.js";
import { connectPersona } from "./persona.js";
import { Saved } from "./saved.js";
import { Sender } from "./sender.js";
import { Side } from "./side.js";
import { Conversation } from "./conversation.js";
import { connectTheme } from "./theme.js";
import { Unkept } from "./unkept.js";

/** What is the matter, by part of the page. */
const matters = new Map();

/**
 * Says above the box what is the matter with a part of the page; empty for nothing.
 * @param {"page"|"conversation"|"model"} part
 * @param {string} words
 */
function tell(part, words) {
  matters.set(part, words);
  const all = [...matters.values()].filter(Boolean).join(" ");
  if (at("state").textContent !== all) at("state").textContent = all;
}

/** Does what somebody asked for, and says in words what failed. */
async function attempt(work) {
  tell("page", "");
  try {
    await work();
  } catch (failure) {
    tell("page", `That did not work. ${failure.message}`);
  }
}

async function start() {
  connectTheme(at("theme"));
  const api = new Api(askForKey);
  const about = await persist(
    () => api.json("GET", "/api/about"),
    (failure) => tell("page", `${failure.message} Trying again.`),
  );
  tell("page", "");
  at("notice").textContent = about.notice;
  at("stored").textContent = about.stored;
  at("stored-side").textContent = about.is_stored
    ? "Only this browser can open these conversations."
    : "Conversations are stored in this tab only.";

  const saved = Saved.open(about.is_stored);
  const store = about.is_stored ? new Kept(api) : new Unkept(api, saved, about.limits.history);
  const outbox = new Outbox(saved);
  const sender = new Sender(store, outbox);
  const conversation = new Conversation({ store, outbox, sender, saved, tab: Saved.open(false) });

  const composer = new Composer(saved, about.limits.text, (text) => {
    tell("page", "");
    tell("conversation", "");
    conversation.say(text);
  });
  const takeBack = (exchange) => composer.put(conversation.takeBack(exchange));
  // Of a model that says it only when it is loaded, the replies show whether there is a plan to change.
  const canPlan = (name) => (about.models.find((one) => one.name === name) ?? about.models[0]).plans !== false;
  new ConversationView(conversation, { labels: about.labels, canPlan, open: new Set(), attempt, takeBack });
  new HelpBanner(conversation);
  connectAnnouncer(conversation);
  connectPersona(conversation, about.limits);
  const models = new Models(api, conversation, attempt);
  const side = new Side(conversation, attempt, announce);
  models.addEventListener("state", ({ detail }) => tell("model", detail));
  conversation.addEventListener("said", ({ detail }) => tell("conversation", detail));

  models.look();
  side.update();
  await attempt(() => conversation.resume());
  document.documentElement.dataset.ready = "true"; // for tests
}

start();
