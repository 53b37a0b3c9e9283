// Parts that all views are made of.
import { cloneElement, h, toChildArray } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import htm from "htm";
import { Virtualizer, elementScroll, measureElement, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";
import { changed, flipped, get, Refusal } from "./api.js";

/** acts are characters that nobody sees, and that change the text around them: controls, and what turns its direction. */
const acts = /(?![\n\t\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** printable writes such characters of a text as escapes. Whatever else is to be shown stays as it is. */
function printable(shown) {
  if (Array.isArray(shown)) return shown.map(printable);
  if (typeof shown !== "string") return shown;
  return shown.replace(acts, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** element makes a part of the page. What others have named is in its text and in its title. */
function element(type, properties, ...children) {
  const title = properties?.title && typeof type === "string" ? { ...properties, title: printable(properties.title) } : properties;
  return h(type, title, ...children.map(printable));
}

export const html = htm.bind(element);

/** link writes the address of a view. Each part is escaped. */
export const link = (...parts) => "#/" + parts.map(encodeURIComponent).join("/");

/** versionOf is which version of a cluster hdsd's own name is for, as rows of the past have it. */
const versionOf = (own) => /#([0-9a-f]{16})$/.exec(own)?.[1] ?? "";

/** clusterOf is the name that users know of a cluster with hdsd's own name. Rows of the present say which version it is, if it is not the first. */
export const clusterOf = (own, version = versionOf(own)) => (version ? own.slice(0, -version.length - 1) : own);

/** titleOf is what is shown of a cluster with hdsd's own name. */
export const titleOf = (own, version = versionOf(own)) => (version ? `${clusterOf(own, version)} (version ${version})` : own);

/** plural writes a number of things. */
export const plural = (n, thing) => `${n.toLocaleString("en")} ${thing}${n === 1 ? "" : "s"}`;

/** signs tell healths without colours. */
export const signs = { HEALTHY: "●", DEGRADED: "◐", DRAINING: "◌", UNKNOWN: "?", UNHEALTHY: "✕", TIMEOUT: "✕" };

/** Health shows a health as a word with a sign, so that it does not take colours to tell. */
export const Health = ({ is, held }) => html`<span class="health ${is.toLowerCase()}">
  <span aria-hidden="true">${signs[is] ?? ""}</span> ${is}</span>${held && html` <span class="held" title="no believed vote stands behind this">HELD</span>`}`;

export const isDown = (is) => is === "UNHEALTHY" || is === "TIMEOUT";

/** where writes a locality. */
export const where = (l, none = "no locality") => [l?.region, l?.zone, l?.subZone].filter(Boolean).join("/") || none;

/** lasting writes a number of seconds. Little is not nothing. */
export function lasting(seconds) {
  if (seconds > 0 && seconds < 1) return "<1s";
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${String(s % 60).padStart(2, "0")}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h${String(Math.floor((s % 3600) / 60)).padStart(2, "0")}m`;
  return `${Math.floor(s / 86400)}d${String(Math.floor((s % 86400) / 3600)).padStart(2, "0")}h`;
}

export const hour = 3600; // seconds

/** ago is the time so many seconds before another, which is now by default. */
export const ago = (seconds, then = Date.now()) => new Date(then - 1000 * seconds).toISOString();

/** quoted writes a word for a shell. */
export const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/** Time shows a time, and how long ago it was. */
export const Time = ({ at }) =>
  at ? html`<time datetime=${at} title=${at}>${lasting((Date.now() - Date.parse(at)) / 1000)} ago</time>` : html`<span>–</span>`;

/** Moment shows a time of day, to the second. */
export const Moment = ({ time }) => html`<time datetime=${time} title=${time}>${time.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC")}</time>`;

/** Address shows an address, which is broken before its port rather than within. */
export const Address = ({ of: text }) => {
  const port = text.lastIndexOf(":");
  return html`<span class="address">${port < 0 ? text : html`${text.slice(0, port)}<wbr />${text.slice(port)}`}</span>`;
};

export const percent = (ratio) => (ratio === undefined ? "–" : `${(Math.floor(ratio * 100000) / 1000).toFixed(3)} %`);

/** Trouble shows an error where it happened. */
export const Trouble = ({ error }) =>
  error && html`<p class="trouble" role="alert">${error instanceof Refusal ? error.message : `hdsd cannot be reached: ${error.message}. Trying again.`}</p>`;

/** useFlips calls a function with the clusters whose endpoints have changed, and with whether there are more. */
export function useFlips(told, about = []) {
  useEffect(() => {
    const heard = (e) => told(e.detail);
    addEventListener(flipped, heard);
    return () => removeEventListener(flipped, heard);
  }, about);
}

/** anyCluster, oneCluster and noCluster say of which clusters the health is that an answer depends on. */
export const anyCluster = () => true;
export const oneCluster = (cluster) => ({ clusters, more }) => more || clusters.some((k) => k.name === cluster || clusterOf(k.name, k.version ?? "") === cluster);
const noCluster = () => false;

/** calm is how long an answer is not asked for again because something has changed: so many ms, and so many times as long as it took. */
const calm = { least: 250, times: 1 };

/**
 * usePoll asks again and again, and keeps the last answer while hdsd cannot be reached. every is
 * in milliseconds, or a function of the last answer. Where the answer depends on what has changed,
 * it asks at once. The state has the time of the question, too.
 */
export function usePoll(ask, every, about, depends = noCluster) {
  const [state, set] = useState({ answer: null, error: null, asked: 0 });
  useEffect(() => {
    const end = new AbortController();
    let timer;
    let latest = null;
    let asked = 0;
    let free = 0; // when it may ask again because something has changed
    let old = false; // the answer that is under way may be older than a change
    set({ answer: null, error: null, asked });
    const plan = (wait) => (clearTimeout(timer), (timer = setTimeout(once, wait)));
    const once = async () => {
      timer = undefined;
      old = false;
      asked = Date.now();
      try {
        latest = await ask(end.signal);
        set({ answer: latest, error: null, asked });
      } catch (error) {
        if (end.signal.aborted) return;
        set((last) => ({ ...last, error }));
      }
      if (end.signal.aborted) return;
      free = Date.now() + Math.max(calm.least, calm.times * (Date.now() - asked));
      const wait = typeof every === "function" ? every(latest) : every;
      plan(old ? free - Date.now() : document.hidden ? 10 * wait : wait);
    };
    once();
    const again = (soon) => (timer ? plan(soon) : (old = true));
    const all = () => again(0);
    const some = (e) => depends(e.detail) && again(Math.max(0, free - Date.now()));
    addEventListener(changed, all);
    addEventListener(flipped, some);
    return () => (end.abort(), clearTimeout(timer), removeEventListener(changed, all), removeEventListener(flipped, some));
  }, about);
  return state;
}

/** useGet polls a path. */
export const useGet = (path, parameters, every, depends) => usePoll((signal) => get(path, parameters, signal), every, [path, JSON.stringify(parameters)], depends);

/**
 * Table is a table with a heading of each column. A row is a tr of one th and some td. On a phone
 * each row is a card, in which each cell repeats its heading, unless the table is small: so the roles
 * are written out, which browsers else take from how a table is laid out.
 */
export const Table = ({ caption, head, rows, small }) => html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}>
  <table role="table" class=${small ? "small" : "cards"}><caption class="hidden">${caption}</caption>
    <thead role="rowgroup"><tr role="row">${head.map((text) => html`<th scope="col" role="columnheader">${text}</th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map((row) => cloneElement(row, { role: "row" }, toChildArray(row.props.children).map((cell, i) => cloneElement(cell, { role: cell.type === "th" ? "rowheader" : "cell", "data-head": head[i] }))))}</tbody></table></div>`;

/** narrow is a phone, as style.css has it. */
const narrow = matchMedia("(max-width: 700px)");

/** Long is a list of any length, of which only what is seen is in the document. A row is as high as what it shows. */
export function Long({ items, label, render }) {
  const box = useRef();
  const [, redraw] = useReducer((n) => n + 1, 0);
  const virtual = useRef();
  const options = {
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: () => (narrow.matches ? 80 : 32), // until it is drawn
    overscan: 10,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    measureElement,
    onChange: redraw,
  };
  virtual.current ??= new Virtualizer(options);
  virtual.current.setOptions(options);
  useLayoutEffect(() => virtual.current._didMount(), []);
  useLayoutEffect(() => virtual.current._willUpdate());
  const shown = virtual.current.getVirtualItems();
  return html`<div class="long" ref=${box} style=${{ height: `min(65vh, ${virtual.current.getTotalSize() + 2}px)` }} tabindex="0" role="list" aria-label=${label}>
    <div style=${{ height: `${virtual.current.getTotalSize()}px` }}>
      ${shown.map((row) => html`<div class="row" role="listitem" aria-setsize=${items.length} aria-posinset=${row.index + 1} key=${row.key} data-index=${row.index}
        ref=${virtual.current.measureElement} style=${{ transform: `translateY(${row.start}px)` }}>${render(items[row.index])}</div>`)}
    </div></div>`;
}
