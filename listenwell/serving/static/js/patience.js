/** Trying again: as long as it takes, ever more seldom, and at once when the network is back. */

import { Failure } from "./api.js";

const LONGEST = 15;
const bell = new EventTarget();
window.addEventListener("online", () => nudge());
document.addEventListener("visibilitychange", () => document.hidden || nudge());

/** Ends every pause: try now. */
export function nudge() {
  bell.dispatchEvent(new Event("ring"));
}

/**
 * @param {number} seconds
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>} when they are over, or somebody nudged
 */
export function pause(seconds, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      bell.removeEventListener("ring", done);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, seconds * 1000);
    bell.addEventListener("ring", done);
    signal?.addEventListener("abort", done);
  });
}

/**
 * Does something until it succeeds, or fails for a reason that does not pass.
 * @template T
 * @param {(tries: number) => Promise<T>} attempt
 * @param {(failure: Failure, seconds: number) => void} onTrouble - told before each pause
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export async function persist(attempt, onTrouble, signal) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await attempt(tries);
    } catch (failure) {
      signal?.throwIfAborted();
      if (!(failure instanceof Failure) || !failure.isPassing) throw failure;
      const seconds = failure.retryAfter ?? Math.min(LONGEST, 2 ** tries);
      onTrouble(failure, seconds);
      await pause(seconds, signal);
      signal?.throwIfAborted();
    }
  }
}
