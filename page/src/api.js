// What the page asks of hdsd. Nothing is asked of anybody else.

const tokenKey = "hdsd-token";

/** token is the bearer token of this tab, if hdsd wants one. */
export const token = {
  get: () => sessionStorage.getItem(tokenKey) ?? "",
  set: (text) => sessionStorage.setItem(tokenKey, text),
};

const headers = () => (token.get() ? { Authorization: `Bearer ${token.get()}` } : {});

/** Refusal is an answer that is an error. */
export class Refusal extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function refusal(response) {
  let text = `${response.status} ${response.statusText}`;
  try {
    text = (await response.json()).message || text;
  } catch {
    // no JSON: the status has to do
  }
  return new Refusal(response.status, text);
}

/** url writes a path with those parameters that have a value. */
export function url(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

/** get asks once. */
export async function get(path, parameters, signal) {
  const response = await fetch(url(path, parameters), { headers: headers(), signal });
  if (!response.ok) throw await refusal(response);
  return response.json();
}

/** changed is the event after this page made a change or was given a token, or is seen again: all that is shown is asked for again. */
export const changed = "hdsd-changed";

/** flipped is the event after endpoints changed. Its detail has their clusters as they are now, and whether there are more. */
export const flipped = "hdsd-flipped";

/** post changes something, or asks what a change would do. */
export const post = (path, body) => change(path, { method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body: JSON.stringify(body) });

/** remove ends something. */
export const remove = (path, parameters) => change(url(path, parameters), { method: "DELETE", headers: headers() });

const longest = 30000; // ms for a change. A disk that is slow may take some of it

async function change(path, options) {
  const response = await fetch(path, { ...options, signal: AbortSignal.timeout(longest) });
  if (!response.ok) throw await refusal(response);
  return response.json();
}

/** all asks for all pages of a list. */
export async function all(path, list, parameters, signal) {
  const rows = [];
  for (let pageToken = ""; ; ) {
    const page = await get(path, { ...parameters, pageSize: 10000, pageToken }, signal);
    rows.push(...page[list]);
    pageToken = page.nextPageToken;
    if (!pageToken) return rows;
  }
}

/** parse splits server-sent events off a text. It returns them and the rest. */
export function parse(text) {
  const blocks = text.split("\n\n");
  const rest = blocks.pop();
  const events = [];
  for (const block of blocks) {
    const event = {};
    for (const line of block.split("\n")) {
      const at = line.indexOf(": ");
      if (at > 0) event[line.slice(0, at)] = line.slice(at + 2);
    }
    if (event.event) events.push({ name: event.event, id: event.id, data: JSON.parse(event.data) });
  }
  return { events, rest };
}

const pause = (ms, signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });

/** look waits until this page is seen, or for the signal. What it returns ends when the page is not seen any more, or by the signal. */
async function look(signal) {
  const end = new AbortController();
  const options = { signal: end.signal };
  signal.addEventListener("abort", () => end.abort(), options);
  if (document.hidden && !signal.aborted) {
    await new Promise((done) => {
      document.addEventListener("visibilitychange", done, { once: true, ...options });
      end.signal.addEventListener("abort", done);
    });
  }
  document.addEventListener("visibilitychange", () => document.hidden && end.abort(), options);
  return end;
}

/**
 * watch follows what a question is about until the signal. It calls on.begin before the present
 * state, on.events with some events, on.lost with an error while hdsd cannot be reached. A page
 * that nobody sees has no watch: over HTTP/1.1 a browser has six connections for all pages of a
 * server. It goes on where it was.
 */
export async function watch(parameters, signal, on) {
  let last = "";
  for (let wait = 250; !signal.aborted; ) {
    const here = await look(signal);
    try {
      const resumed = last;
      const given = { ...headers(), Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) };
      const response = await fetch(url("/v1/watch", parameters), { headers: given, signal: here.signal });
      if (!response.ok) throw await refusal(response);
      if (!resumed) on.begin();
      on.lost(null);
      wait = 250;
      let text = "";
      const decoder = new TextDecoder();
      for await (const bytes of chunks(response.body.getReader())) {
        const { events, rest } = parse(text + decoder.decode(bytes, { stream: true }));
        text = rest;
        if (events.length) on.events(events);
        last = events.findLast((one) => one.id)?.id ?? last;
      }
      throw new Error("hdsd has ended the watch");
    } catch (error) {
      if (here.signal.aborted) continue;
      if (error instanceof Refusal) last = ""; // it may not know the token any more
      on.lost(error);
      await pause(wait, signal);
      wait = Math.min(2 * wait, 5000);
    } finally {
      here.abort();
    }
  }
}

async function* chunks(reader) {
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
