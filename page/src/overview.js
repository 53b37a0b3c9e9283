import { useReducer, useRef } from "preact/hooks";
import { all } from "./api.js";
import { Heat } from "./heat.js";
import { Partial } from "./incident.js";
import { useOpen } from "./incidents.js";
import { Address, Health, Long, Time, Trouble, anyCluster, clusterOf, html, link, plural, titleOf, useFlips, useGet, usePoll } from "./look.js";
import { Leadership } from "./replicas.js";

/** Overview is what needs attention, where it is down, all clusters, and what changed lately. */
export function Overview({ status, find, setFind }) {
  return html`<h1>Overview</h1>
    ${status && html`<${Attention} status=${status} /><${Counts} status=${status} />`}
    <${Heat} />
    <div class="columns"><${Clusters} find=${find} setFind=${setFind} /><${Changes} pending=${status?.history?.pending} /></div>`;
}

/** incidentOf is the incident that goes on of what needs attention; undefined if there is none. */
const incidentOf = (a, open) => open.find((i) => i.first.cluster === a.cluster) ?? open.find((i) => (a.cluster ? i.clusters.includes(clusterOf(a.cluster, a.version ?? "")) : i.zones.includes(a.zone?.split("/").at(-1))));

function Attention({ status }) {
  const open = useOpen();
  return html`<section aria-label="What needs attention">
  <h2>What needs attention</h2>
  ${status.attention.length === 0
    ? html`<p class="well"><span aria-hidden="true">✓</span> Nothing needs attention.</p>`
    : html`<ul class="attention">${status.attention.map((a) => html`<li>
        <strong>${a.kind}</strong> ${a.since && html`<${Time} at=${a.since} />`} <span>${a.cluster ? html`<a href=${link("clusters", a.cluster)}>${a.text}</a>` : a.text}</span>
        <div><code>${a.command}</code> <${Going} of=${incidentOf(a, open.all)} /></div></li>`)}</ul>`}
  <${Partial} of=${open} />
  ${status.further > 0 && html`<p>and ${status.further} more</p>`}
</section>`;
}

const Going = ({ of: i }) => i && html`<a href=${link("incidents", i.id)}>Incident: ${i.down} of ${i.endpoints} down</a>`;

const Counts = ({ status: { clusters: k, endpoints: e, checkers: c } }) => html`<dl class="counts">
  <div><dt>Clusters</dt><dd>${k.ok} ok, ${k.someDown} some down, ${k.halfDown} half down, ${k.allDown} all down, ${k.unobserved} unobserved, ${k.noneHealthy} none healthy, ${k.unchecked} not checked</dd></div>
  <div><dt>Endpoints</dt><dd>${e.healthy} healthy${e.degraded > 0 && ` (${e.degraded} degraded)`}, ${e.unhealthy} down, ${e.draining} draining, ${e.unknown} unknown${e.held > 0 && html`, <span class="held">${e.held} HELD</span>`}</dd></div>
  <div><dt>Checkers</dt><dd>${c.connected} connected, ${c.doubted} doubted, ${c.silent} silent, ${c.blind} blind, ${c.lost} lost</dd></div>
  <${Leadership} />
</dl>`;

// serves tells whether an endpoint of a cluster is healthy, if any may be checked.
const serves = (k) => !k.checked || k.endpoints === 0 || k.healthy > 0;

// worse orders clusters: those without a healthy endpoint come first, then those with most endpoints down, then by name.
const worse = (a, b) => serves(a) - serves(b) || b.unhealthy / (b.endpoints || 1) - a.unhealthy / (a.endpoints || 1) || b.unhealthy - a.unhealthy || a.name.localeCompare(b.name);

const many = 1000; // clusters, from which on all of them are asked for less often

// useClusters has all clusters. Those that change are put into the last answer, so that all are not asked for again.
function useClusters() {
  const { answer, error, asked } = usePoll((signal) => all("/v1/clusters", "clusters", {}, signal), (k) => (k?.length > many ? 15000 : 3000), []);
  const newer = useRef(new Map());
  const [, redraw] = useReducer((n) => n + 1, 0);
  useFlips(({ clusters }) => (clusters.forEach((k) => newer.current.set(k.name, { ...k, time: Date.now() })), redraw()));
  for (const [name, k] of newer.current) if (k.time < asked) newer.current.delete(name);
  const known = new Set(answer?.map((k) => k.name));
  return { error, all: answer && [...answer.map((k) => newer.current.get(k.name) ?? k), ...[...newer.current.values()].filter((k) => !known.has(k.name))] };
}

function Clusters({ find, setFind }) {
  const { all: answer, error } = useClusters();
  const found = answer?.filter((k) => k.name.toLowerCase().includes(find.toLowerCase())).sort(worse);
  return html`<section aria-label="Clusters"><h2>Clusters</h2><${Trouble} error=${error} />
    <p><label>Find <input type="search" value=${find} onInput=${(e) => setFind(e.currentTarget.value)} /></label>
      ${answer && html` <span>${found.length.toLocaleString("en")} of ${plural(answer.length, "cluster")}, worst first</span>`}</p>
    ${answer?.length === 0 && html`<p>No source has a cluster. <code>hdsd source list</code> shows the sources.</p>`}
    ${found && html`<${Long} items=${found} label="Clusters, worst first" render=${(k) => html`<${Cluster} of=${k} />`} />`}</section>`;
}

const Cluster = ({ of: k }) => {
  const up = k.endpoints ? k.healthy / k.endpoints : 0;
  const down = k.endpoints ? k.unhealthy / k.endpoints : 0;
  return html`<a class="name" href=${link("clusters", k.name)}>${titleOf(k.name, k.version ?? "")}</a>
    <span class="bar" aria-hidden="true"><span class="up" style=${{ width: `${100 * up}%` }}></span><span class="down" style=${{ width: `${100 * down}%` }}></span></span>
    <span class=${k.unhealthy || !serves(k) ? "count bad" : "count"}>${k.checked ? `${serves(k) || k.unhealthy === k.endpoints ? "" : "none healthy, "}${k.unhealthy} of ${k.endpoints} down` : "not checked"}</span>
    ${k.mode !== "PUBLISH" && html`<span class="mark">${k.mode}</span>`}${k.overridden > 0 && html`<span class="mark">${k.overridden} overridden</span>`}`;
};

const behind = 1000; // changes that the disk does not have yet, from which on that is told

function Changes({ pending }) {
  const { answer, error } = useGet("/v1/transitions", { newestFirst: true, pageSize: 30 }, 3000, anyCluster);
  return html`<section aria-label="What changed lately"><h2>What changed lately</h2><${Trouble} error=${error} />
    ${answer?.failing ? html`<p class="trouble">History is not being written: recent changes are missing below.</p>` : pending > behind && html`<p class="hint" role="status">${plural(Number(pending), "change")} have not been written to the history yet: recent changes are missing below.</p>`}
    ${answer?.transitions.length === 0 && html`<p>No changes are recorded.</p>`}
    <ol class="changes">${answer?.transitions.map((t) => html`<li key=${t.time + t.cluster + t.address}>
      <${Time} at=${t.time} /> <a href=${link("clusters", t.cluster, t.address)}>${titleOf(t.cluster)} <${Address} of=${t.address} /></a> <${Health} is=${t.to} /><br /><small>${t.reason}</small></li>`)}</ol></section>`;
}

/** Banner says what holds for everything. */
export function Banner({ status, error }) {
  const lines = [];
  if (error) lines.push(html`<${Trouble} error=${error} />`);
  if (status && !status.ready) lines.push(html`<p>NOT READY: ${status.notReadyReason}</p>`);
  if (status?.frozen) lines.push(html`<p>FROZEN: verdicts are not published. <code>hdsd unfreeze</code> ends it.</p>`);
  if (status?.mode === "SHADOW") lines.push(html`<p>SHADOW: verdicts are not published.</p>`);
  if (status && status.checkers.connected === 0) lines.push(html`<p>No checker is connected: nothing is checked, and health stays what it was last.</p>`);
  else if (status?.endpoints.held > 0) lines.push(html`<p>${plural(status.endpoints.held, "endpoint")} HELD: no believed vote stands behind their health.</p>`);
  return lines.length > 0 && html`<div class="banner" role="status">${lines}</div>`;
}

