/** Calls to the service, and what goes wrong with them, in words. */

import { readEvents } from "./events.js";

const KEY = "listenwell.key";
const LOST = "The server cannot be reached.";
/** Milliseconds without a sign of life after which a stream counts as lost; the server gives one every few seconds. */
const SILENCE = 30_000;

/** A call that was not answered as wished. */
export class Failure extends Error {
  /**
   * @param {string} words - for people
   * @param {{status?: number, code?: string, retryAfter?: number|null, isLost?: boolean}} [more]
   */
  constructor(words, { status = 0, code = "", retryAfter = null, isLost = false } = {}) {
    super(words);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
    /** Whether the server did not respond, so that it may or may not have done its work. */
    this.isLost = isLost;
  }

  /** Whether the same call may succeed a little later. */
  get isPassing() {
    return this.isLost || this.retryAfter !== null;
  }
}

export class Api {
  /** @param {(wasWrong: boolean) => Promise<string>} askForKey - called where the service wants a key */
  constructor(askForKey) {
    this.askForKey = askForKey;
    /** @type {Promise<string>|null} */
    this.asking = null;
    this.key = remembered();
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {any} [body] - sent as JSON
   * @param {AbortSignal} [signal]
   * @returns {Promise<Response>} of a call that succeeded
   */
  async call(method, path, body, signal) {
    const used = this.key;
    const response = await this.#fetched(method, path, body, signal);
    if (response.ok) return response;
    const failure = await failureOf(response);
    if (response.status !== 401) throw failure;
    if (this.key === used) {
      this.asking ??= this.askForKey(Boolean(used));
      this.key = await this.asking;
      this.asking = null;
      remember(this.key);
    }
    return this.call(method, path, body, signal);
  }

  /**
   * A call whose answer is JSON.
   * @param {string} method
   * @param {string} path
   * @param {any} [body]
   * @returns {Promise<any>}
   */
  async json(method, path, body) {
    try {
      return await (await this.call(method, path, body)).json();
    } catch (error) {
      throw error instanceof Failure ? error : new Failure(LOST, { isLost: true });
    }
  }

  /**
   * A call that is answered by events: waiting, text, and at last reply or error.
   * @param {string} path
   * @param {any} body
   * @param {{accepted?: () => void, event: (name: string, data: any) => void, signal?: AbortSignal}} hooks
   * @returns {Promise<any>} the last event's data
   */
  async stream(path, body, { accepted, event, signal }) {
    const silence = new AbortController();
    const either = signal ? AbortSignal.any([signal, silence.signal]) : silence.signal;
    let timer = 0;
    const restart = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE);
    };
    try {
      restart();
      const response = await this.call("POST", path, { ...body, stream: true }, either);
      accepted?.();
      for await (const { name, data } of readEvents(response)) {
        restart();
        if (name === "reply") return data;
        if (name === "error") throw new Failure(data.error.message, { status: 500, code: data.error.code });
        event(name, data);
      }
    } catch (error) {
      if (error instanceof Failure || signal?.aborted) throw error;
    } finally {
      clearTimeout(timer);
    }
    throw new Failure("The connection was lost in the middle.", { isLost: true });
  }

  async #fetched(method, path, body, signal) {
    const headers = { ...(body !== undefined && { "Content-Type": "application/json" }) };
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    try {
      return await fetch(path, { method, headers, body: JSON.stringify(body), signal });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Failure(LOST, { isLost: true });
    }
  }
}

/**
 * What an answer that is no success means. One that is not in the service's own shape comes from something in
 * between, which answers while the service is being started again.
 * @param {Response} response
 */
async function failureOf(response) {
  const { status } = response;
  const found = (await response.json().catch(() => null))?.error;
  if (!found?.message) {
    return new Failure(`The server answered with ${status}.`, { status, isLost: status >= 502 && status <= 504 });
  }
  const seconds = Number.parseFloat(response.headers.get("Retry-After") ?? "");
  return new Failure(found.message, { status, code: found.code, retryAfter: Number.isFinite(seconds) ? seconds : null });
}

function remembered() {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

function remember(key) {
  try {
    localStorage.setItem(KEY, key);
  } catch {
    // It holds until the page is closed.
  }
}
