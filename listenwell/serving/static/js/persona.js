/** The persona editor. */

import { at } from "./dom.js";

/**
 * @param {string} text - a sentence a line
 * @returns {string[]}
 */
export function personaLines(text) {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

/**
 * What is wrong with a persona, in words; empty for nothing.
 * @param {string[]} lines
 * @param {Object<string, number>} limits
 */
export function personaProblem(lines, limits) {
  const most = limits.persona_lines;
  if (lines.length > most) return `These are ${lines.length} lines; at most ${most} can be used.`;
  const long = lines.findIndex((line) => [...line].length > limits.persona_line);
  return long < 0 ? "" : `Line ${long + 1} is longer than ${limits.persona_line} characters. Make it shorter.`;
}

/**
 * Connects the editor.
 * @param {import("./conversation.js").Conversation} conversation
 * @param {Object<string, number>} limits
 */
export function connectPersona(conversation, limits) {
  const [dialog, box, problem] = [at("persona"), at("persona-lines"), at("persona-problem")];
  at("persona-open").addEventListener("click", () => {
    box.value = conversation.persona.join("\n");
    problem.textContent = "";
    dialog.showModal();
  });
  at("persona-cancel").addEventListener("click", () => dialog.close());
  dialog.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const lines = personaLines(box.value);
    problem.textContent = personaProblem(lines, limits);
    if (problem.textContent) return;
    try {
      await conversation.change({ persona: lines });
      dialog.close();
    } catch (failure) {
      problem.textContent = `It was not saved. ${failure.message}`;
    }
  });
}
