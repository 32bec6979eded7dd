/** What this browser remembers, as JSON under one prefix; a browser that keeps nothing has it until a reload. */

const PREFIX = "listenwell.";

export class Saved {
  /** @param {Storage|null} area - localStorage, sessionStorage, or null for neither */
  constructor(area) {
    this.area = area;
    /** @type {Map<string, string>} */
    this.instead = new Map();
  }

  /**
   * Where things are kept: in the browser, or, where the service keeps nothing, no longer than the tab is open.
   * @param {boolean} isStored
   */
  static open(isStored) {
    try {
      return new Saved(isStored ? localStorage : sessionStorage);
    } catch {
      return new Saved(null);
    }
  }

  /**
   * @param {string} name
   * @param {any} otherwise
   * @returns {any}
   */
  get(name, otherwise) {
    const text = this.instead.get(name) ?? this.area?.getItem(PREFIX + name);
    if (text === null || text === undefined) return otherwise;
    try {
      return JSON.parse(text);
    } catch {
      return otherwise;
    }
  }

  /**
   * @param {string} name
   * @param {any} value - undefined forgets it
   */
  set(name, value) {
    this.instead.delete(name);
    try {
      if (value === undefined) this.area?.removeItem(PREFIX + name);
      else if (this.area) this.area.setItem(PREFIX + name, JSON.stringify(value));
      else this.instead.set(name, JSON.stringify(value));
    } catch {
      this.instead.set(name, JSON.stringify(value)); // full: better here than nowhere
    }
  }
}

/**
 * A name that nobody else has.
 * @returns {string}
 */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
