import { get } from "./api.js";
import { Health, Table, Time, Trouble, html, isDown, lasting, link, percent, useGet, usePoll, where } from "./look.js";

const hour = 3600;
const periods = [["1 h", hour], ["24 h", 24 * hour], ["7 d", 7 * 24 * hour], ["30 d", 30 * 24 * hour]];
const ago = (seconds) => new Date(Date.now() - 1000 * seconds).toISOString();

/** Endpoint explains the health of one endpoint: who says so, since when, and what was before. */
export function Endpoint({ cluster, address }) {
  const { answer, error } = useGet("/v1/endpoints", { cluster, address }, 2000);
  return html`<p><a href="#/">All clusters</a> / <a href=${link("clusters", cluster)}>${cluster}</a></p>
    <h1>${address}</h1><${Trouble} error=${error} />
    ${answer?.endpoints.length === 0 && html`<p>No source has this endpoint now.</p>`}
    ${answer?.endpoints.map((e) => html`<${Explained} of=${e} />`)}
    <${Availability} cluster=${cluster} address=${address} /><${History} cluster=${cluster} address=${address} />`;
}

const Explained = ({ of: e }) => html`<section aria-label="Why">
  <p class="verdict"><${Health} is=${e.health} held=${e.held} /> in ${where(e.locality)}${e.since && html`, <${Time} at=${e.since} />`}</p>
  <p>${e.reason}</p>
  ${e.held && html`<p>No believed vote stands behind this since <${Time} at=${e.heldSince} />: it is what it was last.</p>`}
  ${e.published && html`<p>Data planes get <${Health} is=${e.published} />: ${e.publishedReason}</p>`}
  ${e.override && html`<p>An override sets this health: ${e.override.reason} (${e.override.author})${e.voted && html`. By the votes it would be <${Health} is=${e.voted} />: ${e.votedReason}`}</p>`}
  <${Table} caption="Votes" head=${["Checker", "Vote", "Code", "Last reported", "Believed"]} rows=${e.observations.map((o) => html`<tr>
    <th scope="row"><a href=${link("checkers")}>${o.checker}</a></th><td><${Health} is=${o.status} /></td><td>${o.httpStatusCode ?? ""}</td><td><${Time} at=${o.time} /></td><td>${o.disbelieved || "yes"}</td></tr>`)} />
  ${e.zones?.length > 1 && html`<${Table} caption="By zone of the checkers" head=${["Zone", "Sees", "Up", "Down"]} rows=${e.zones.map((z) => html`<tr>
    <th scope="row">${where(z)}</th><td><${Health} is=${z.health} /></td><td>${z.up}</td><td>${z.down}</td></tr>`)} />`}
</section>`;

function Availability({ cluster, address }) {
  const { answer, error } = usePoll((signal) => Promise.all(periods.map(([, s]) => get("/v1/availability", { cluster, address, startTime: ago(s) }, signal))), 60000, [cluster, address]);
  return html`<section aria-label="Availability"><h2>Availability</h2><${Trouble} error=${error} />
    ${answer && html`<${Table} caption="Availability by period" head=${["Last", "Available", "Down", "Changes"]} rows=${periods.map(([name], i) => {
      const a = answer[i].availability[0];
      return html`<tr><th scope="row">${name}</th><td>${percent(a?.healthyRatio)}</td><td>${a ? lasting(a.unhealthySeconds) : "–"}</td><td>${a?.transitions ?? "–"}</td></tr>`;
    })} />`}</section>`;
}

function History({ cluster, address }) {
  const { answer, error } = useGet("/v1/transitions", { cluster, address, newestFirst: true, pageSize: 100 }, 5000);
  const all = answer?.transitions ?? [];
  return html`<section aria-label="History"><h2>History</h2><${Trouble} error=${error} />
    <${Strip} of=${all} label="Last 24 hours" seconds=${24 * hour} /><${Strip} of=${all} label="Last hour" seconds=${hour} />
    <${Table} caption="Changes, newest first" head=${["When", "From", "To", "Why"]} rows=${all.map((t) => html`<tr key=${t.time}>
      <td><${Time} at=${t.time} /></td><td><${Health} is=${t.from} /></td><td><${Health} is=${t.to} /></td><td>${t.reason}</td></tr>`)} /></section>`;
}

// Strip draws the health over a period. The table below it says the same in words.
function Strip({ of: all, label, seconds }) {
  const end = Date.now();
  const start = end - 1000 * seconds;
  const parts = [];
  let until = end;
  for (const t of all) {
    const from = Math.max(Date.parse(t.time), start);
    if (until > from) parts.unshift({ is: t.to, share: (until - from) / (end - start) });
    until = Math.min(until, from);
  }
  if (until > start) parts.unshift({ is: all.at(-1)?.from ?? "UNKNOWN", share: (until - start) / (end - start) });
  const down = parts.filter((p) => isDown(p.is)).reduce((sum, p) => sum + p.share, 0);
  return html`<div class="strip"><span>${label}</span><div role="img" aria-label=${`${label}: down ${percent(down)} of the time`}>
    ${parts.map((p) => html`<span class=${p.is.toLowerCase()} style=${{ width: `${100 * p.share}%` }} title=${p.is}></span>`)}</div></div>`;
}
