/** Conversations that the service keeps. */

const ALL = "/api/conversations";

export class Kept {
  /** @param {import("./api.js").Api} api */
  constructor(api) {
    this.api = api;
  }

  /** Those in which something was said; one that nothing was said in is of no use to anybody. */
  async list() {
    const { conversations } = await this.api.json("GET", ALL);
    return conversations.filter((conversation) => conversation.exchanges > 0);
  }

  /**
   * One after the other in all tabs, so that a new visitor becomes one visitor and not two.
   * @param {{persona: string[], model: string|null}} begins
   * @param {string} key - its own name: begun again under it, it is the same conversation
   */
  begin(begins, key) {
    const work = () => this.api.json("POST", ALL, { ...begins, key });
    return navigator.locks ? navigator.locks.request("listenwell-begin", work) : work();
  }

  get(id) {
    return this.api.json("GET", `${ALL}/${encodeURIComponent(id)}`);
  }

  change(id, change) {
    return this.api.json("PATCH", `${ALL}/${encodeURIComponent(id)}`, change);
  }

  async remove(id) {
    await this.api.call("DELETE", `${ALL}/${encodeURIComponent(id)}`);
  }

  async removeAll() {
    await this.api.call("DELETE", ALL);
  }

  /** @returns {Promise<string>} lines of JSON */
  async exported(id) {
    const path = id ? `${ALL}/${encodeURIComponent(id)}/export` : `${ALL}/export`;
    return (await this.api.call("GET", path)).text();
  }

  choose(id, number, version) {
    return this.api.json("PUT", `${ALL}/${encodeURIComponent(id)}/exchanges/${number}/current`, { version });
  }

  /** @param {import("./outbox.js").Entry} entry */
  say(entry, hooks) {
    const path = `${ALL}/${encodeURIComponent(entry.conversation)}/messages`;
    return this.api.stream(path, { text: entry.text, key: entry.key }, hooks);
  }

  /** @param {string} key - the reply's own name: asked for again under it, it is the same reply */
  again(id, target, key, hooks) {
    return this.api.stream(`${ALL}/${encodeURIComponent(id)}/again`, target ? { target, key } : { key }, hooks);
  }
}
