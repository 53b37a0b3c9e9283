import { html, isDown, percent } from "./look.js";

/** kept is how many changes of an endpoint are asked for. */
export const kept = 500;

/**
 * parts divides a period until now by the health in it. The changes come newest first. If they
 * are cut, what was before the first of them is not known.
 */
function parts(all, cut, seconds, before) {
  const end = Date.now();
  const start = end - 1000 * seconds;
  const found = [];
  let until = end;
  for (const t of all) {
    const from = Math.max(Date.parse(t.time), start);
    if (until > from) found.unshift({ is: t.to, share: (until - from) / (end - start) });
    until = Math.min(until, from);
  }
  const short = cut && until > start;
  if (until > start) found.unshift({ is: short ? "" : (all.at(-1)?.from ?? before), share: (until - start) / (end - start) });
  return { found, short };
}

/** Drawn is the health over a period, before it if nothing changed. A label says the same in words. */
export function Drawn({ of: all, cut, label, seconds, before = "UNKNOWN" }) {
  const { found, short } = parts(all, cut, seconds, before);
  const down = found.filter((p) => isDown(p.is)).reduce((sum, p) => sum + p.share, 0);
  const words = short ? `${label}: only the latest ${all.length} changes are drawn` : `${label}: down ${percent(down)} of the time`;
  return html`<div role="img" aria-label=${words}>
    ${found.map((p) => html`<span class=${p.is.toLowerCase()} style=${{ width: `${100 * p.share}%` }} title=${p.is || "not drawn"}></span>`)}</div>`;
}

/** Strip is that with its label. The table below it says the same in words. */
export const Strip = (of) => html`<div class="strip"><span>${of.label}</span><${Drawn} ...${of} /></div>`;
