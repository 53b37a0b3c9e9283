import { get } from "./api.js";
import { Health, Table, Time, Trouble, ago, hour, html, isDown, lasting, link, oneCluster, percent, plural, quoted, signs, titleOf, useGet, usePoll, where } from "./look.js";
import { Clear, Override } from "./override.js";
import { Strip, kept } from "./strip.js";

const periods = [["1 h", hour], ["24 h", 24 * hour], ["7 d", 7 * 24 * hour], ["30 d", 30 * 24 * hour]];

/** Endpoint explains the health of one endpoint: who says so, since when, and what was before. */
export function Endpoint({ cluster, address }) {
  const { answer, error } = useGet("/v1/endpoints", { cluster, address }, 2000, oneCluster(cluster));
  return html`<p><a href="#/">All clusters</a> / <a href=${link("clusters", cluster)}>${titleOf(cluster, answer ? (answer.endpoints.find((e) => e.cluster === cluster)?.version ?? "") : undefined)}</a></p>
    <h1>${address}</h1><${Trouble} error=${error} />
    ${answer?.endpoints.length === 0 && html`<p>No source has this endpoint now.</p>`}
    ${answer?.endpoints.map((e) => html`<${Explained} of=${e} />`)}
    ${answer?.endpoints.length > 0 && html`<${Override} cluster=${cluster} version=${answer.endpoints.find((e) => e.cluster === cluster)?.version} address=${address} />`}
    <${Availability} cluster=${cluster} address=${address} /><${History} cluster=${cluster} address=${address} />`;
}

const Explained = ({ of: e }) => html`<section aria-label="Why">
  ${e.version && html`<p>Version ${e.version} of the cluster</p>`}
  ${e.hostname && html`<p>Hostname ${e.hostname}</p>`}
  <p class="verdict"><${Health} is=${e.health} held=${e.held} /> in ${where(e.locality)}${e.since && html`, <${Time} at=${e.since} />`}</p>
  <p>${e.reason}</p>
  ${e.held && html`<p>No believed vote stands behind this since <${Time} at=${e.heldSince} />: it is what it was last.</p>`}
  ${e.published && html`<p>Data planes get <${Health} is=${e.published} />: ${e.publishedReason}</p>`}
  ${e.override && html`<p>An override sets this health: ${e.override.reason} (${e.override.author}). <${Clear} of=${e.override} />${e.voted && html` By the votes it would be <${Health} is=${e.voted} />: ${e.votedReason}`}</p>`}
  <${Table} caption="Votes" head=${["Checker", "Vote", "Code", "Last reported", "Believed"]} rows=${e.observations.map((o) => html`<tr>
    <th scope="row"><a href=${link("checkers")}>${o.checker}</a></th><td><${Health} is=${o.status} /></td><td>${o.httpStatusCode ?? ""}</td><td><${Time} at=${o.time} /></td><td>${o.disbelieved || "yes"}</td></tr>`)} />
  ${e.zones?.length > 1 && html`<${Table} small caption="By zone of the checkers" head=${["Zone", "Sees", "Up", "Down"]} rows=${e.zones.map((z) => html`<tr>
    <th scope="row">${where(z)}</th><td><${Health} is=${z.health} /></td><td>${z.up}</td><td>${z.down}</td></tr>`)} />`}
</section>`;

function Availability({ cluster, address }) {
  const { answer, error } = usePoll((signal) => Promise.all(periods.map(([, s]) => get("/v1/availability", { cluster, address, startTime: ago(s) }, signal))), 60000, [cluster, address]);
  return html`<section aria-label="Availability"><h2>Availability</h2><${Trouble} error=${error} />
    ${answer && html`<${Table} small caption="Availability by period" head=${["Last", "Available", "Down", "Changes"]} rows=${periods.map(([name], i) => {
      const a = answer[i].availability[0];
      return html`<tr><th scope="row">${name}</th><td>${percent(a?.healthyRatio)}</td><td>${a ? lasting(a.unhealthySeconds) : "–"}</td><td>${a?.transitions ?? "–"}</td></tr>`;
    })} />`}</section>`;
}

const told = 100; // changes in the table

function History({ cluster, address }) {
  const { answer, error } = useGet("/v1/transitions", { cluster, address, newestFirst: true, pageSize: kept }, 5000, oneCluster(cluster));
  const all = answer?.transitions ?? [];
  const cut = Boolean(answer?.nextPageToken);
  return html`<section aria-label="History"><h2>History</h2><${Trouble} error=${error} />
    ${answer && html`${[["Last hour", hour], ["Last 24 hours", 24 * hour], ["Last 30 days", 30 * 24 * hour]].map(([label, seconds]) => html`<${Strip} of=${all} cut=${cut} label=${label} seconds=${seconds} />`)}
    <${Lanes} of=${all} /><${Operators} cluster=${cluster} address=${address} locality=${all[0]?.locality} />`}
    <${Table} caption="Changes, newest first" head=${["When", "From", "To", "Why", "Votes"]} rows=${all.slice(0, told).map((t) => html`<tr key=${t.time}>
      <td><${Time} at=${t.time} /></td><td><${Health} is=${t.from} /></td><td><${Health} is=${t.to} /></td><td>${t.reason}</td><td>${t.observations.map(vote).join(", ")}</td></tr>`)} />
    ${all.length > told && html`<p>The latest ${told} changes. <code>hdsd history ${quoted(cluster)} ${quoted(address)}</code> shows all.</p>`}</section>`;
}

const vote = (o) => [o.checker, o.status, o.httpStatusCode, o.disbelieved && `(${o.disbelieved})`].filter(Boolean).join(" ");

const fates = { OVERRIDE_SET: "set", OVERRIDE_CLEARED: "cleared", OVERRIDE_EXPIRED: "expired" };

// concerns reports whether an override applied to an endpoint: an empty part matches all.
const concerns = (event, cluster, address, l) => (!event.cluster || event.cluster === cluster) && (!event.address || event.address === address) &&
  ["region", "zone", "subZone"].every((part) => !event.locality?.[part] || event.locality[part] === l?.[part]);

// Operators shows when overrides that applied to the endpoint began and ended.
function Operators({ cluster, address, locality }) {
  const { answer, error } = usePoll((signal) => get("/v1/events", { kind: "OVERRIDE", startTime: ago(hour), newestFirst: true, pageSize: 10000 }, signal), 5000, []);
  const found = answer?.events.filter((e) => concerns(e, cluster, address, locality)) ?? [];
  if (error) return html`<${Trouble} error=${error} />`;
  return found.length > 0 && html`<h3>Overrides of the last hour</h3>
    <${Lane} name="operators" words=${plural(found.length, "change")} marks=${found.map((e) => ({ at: Date.parse(e.time), sign: e.kind === "OVERRIDE_SET" ? "▲" : "▽", is: "draining", title: `${e.time} ${fates[e.kind]}: ${e.text}` }))} />
    <ul>${found.map((e) => html`<li><${Time} at=${e.time} /> ${fates[e.kind]}: ${e.text}${e.author && ` (${e.author})`}</li>`)}</ul>`;
}

// Lane draws marks over the last hour.
function Lane({ name, words, marks }) {
  const end = Date.now();
  return html`<div class="strip lane"><span>${name}</span><div role="img" aria-label=${`${name}: ${words}`}>
    ${marks.map((m) => html`<span class=${m.is} style=${{ left: `${100 * (1 - (end - m.at) / (1000 * hour))}%` }} title=${m.title}>${m.sign}</span>`)}</div></div>`;
}

// Lanes shows how each checker voted when the health changed. In between, hdsd records no
// votes, so nothing is drawn there.
function Lanes({ of: all }) {
  const start = Date.now() - 1000 * hour;
  const lately = all.filter((t) => Date.parse(t.time) >= start);
  const lanes = Map.groupBy(lately.flatMap((t) => t.observations.map((o) => ({ ...o, at: Date.parse(t.time) }))), (o) => o.checker);
  return lanes.size > 0 && html`<h3>Votes at the changes of the last hour</h3>
    ${[...lanes].sort(([a], [b]) => a.localeCompare(b)).map(([checker, votes]) => html`<${Lane} key=${checker} name=${checker} words=${`${votes.filter((o) => isDown(o.status)).length} of ${votes.length} votes down`}
      marks=${votes.map((o) => ({ at: o.at, sign: signs[o.status] ?? "?", is: o.status.toLowerCase(), title: `${new Date(o.at).toISOString()} ${vote(o)}` }))} />`)}`;
}
