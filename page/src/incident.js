import { get } from "./api.js";
import { Address, Health, Long, Table, Time, Trouble, ago, anyCluster, clusterOf, html, isDown, lasting, link, Moment, plural, quoted, titleOf, usePoll } from "./look.js";

const seconds = (from, to) => (Date.parse(to) - Date.parse(from)) / 1000;

/** State says whether an incident is ongoing, and for how long it did. */
export const State = ({ of: i }) => (i.end ? html`<span class="well">over</span> after ${lasting(seconds(i.start, i.end))}` : html`<strong class="bad">ongoing: ${i.down} down</strong>`);

/** advice says what the cause of an incident is, and where to look. */
const advice = {
  ENDPOINT: (i) => html`One endpoint went down, or several on one host. Look at <a href=${link("clusters", i.first.cluster, i.first.address)}>what its checkers see</a>, then at its process and its host.`,
  CLUSTER: (i) => html`Several endpoints of <a href=${link("clusters", i.first.cluster)}>one cluster</a> went down. Look at its latest release, its configuration, and what it depends on.`,
  ZONE: () => html`Several clusters in one zone went down. Look at the zone: its network, its machines. To take traffic off it, <a href=${link("clients")}>override the locality</a>.`,
  SEVERAL: () => html`Several clusters in several zones went down. Look at what they share: a service, a name server, a certificate, a release.`,
  OPERATOR: () => html`An operator's <a href=${link("clients")}>override</a> began it. The endpoints come back when it is cleared or expires.`,
  NETWORK: () => html`The path to the zone was cut. Look at the network between the zones: <a href=${link("checkers")}>the checkers</a> show which paths are cut.`,
  CHECKERS: () => html`Those who saw it begin were doubted. Look at <a href=${link("checkers")}>the checkers</a> before the endpoints.`,
};

/** soon is when to ask for incidents again: sooner while hdsd reads its history. */
export const soon = (answer) => (answer?.partial ? 1000 : 5000);

/** Partial notes that hdsd still reads its history. */
export const Partial = ({ of: answer }) => answer?.partial && html`<p class="hint" role="status">hdsd is still reading its history. Incidents appear when it has read all of it.</p>`;

const recorded = 1000; // changes asked for

/** about asks for an incident, and for what was recorded from a minute before it until its end. */
async function about(id, signal) {
  const { incidents, partial } = await get("/v1/incidents", { id, allowPartial: true }, signal);
  const incident = incidents.find((i) => i.id === id);
  if (!incident) return { incident: null, partial };
  const cluster = incident.clusters.length === 1 ? incident.clusters[0] : undefined;
  const endTime = incident.end && new Date(Date.parse(incident.end) + 1000).toISOString(); // with the change that ended it
  const [changes, events] = await Promise.all([
    get("/v1/transitions", { cluster, startTime: incident.start, endTime, pageSize: recorded }, signal),
    get("/v1/events", { startTime: ago(60, Date.parse(incident.start)), endTime, pageSize: recorded }, signal),
  ]);
  const concerned = (name) => incident.clusters.includes(clusterOf(name));
  return {
    incident,
    partial,
    changes: changes.transitions.filter((t) => concerned(t.cluster)),
    events: events.events.filter((e) => !e.cluster || concerned(e.cluster)),
    cut: Boolean(changes.nextPageToken || events.nextPageToken),
  };
}

/** Incident is one outage: what it was, whom it touched, what happened, and what to do. */
export function Incident({ id }) {
  const { answer, error } = usePoll((signal) => about(id, signal), (known) => (known?.incident?.end ? 60000 : soon(known)), [id], anyCluster);
  const i = answer?.incident;
  return html`<p><a href=${link("incidents")}>All incidents</a></p><h1>${i ? i.summary : `Incident ${id}`}</h1><${Trouble} error=${error} />
    <${Partial} of=${answer} />
    ${answer && !answer.partial && !i && html`<p>No incident of this id is known. The history may no longer reach back to it.</p>`}
    ${i && html`<${Facts} of=${i} /><${Advice} of=${i} /><${First} of=${i} /><${Endpoints} of=${answer.changes} /><${Seers} of=${answer.changes} /><${Course} of=${i} ...${answer} />`}`;
}

const Facts = ({ of: i }) => html`<dl class="counts">
  <div><dt>State</dt><dd><${State} of=${i} /></dd></div>
  <div><dt>Began</dt><dd><${Moment} time=${i.start} />, <${Time} at=${i.start} /></dd></div>
  ${i.end && html`<div><dt>Ended</dt><dd><${Moment} time=${i.end} />, <${Time} at=${i.end} /></dd></div>`}
  <div><dt>Endpoints</dt><dd>${i.endpoints} went down, ${i.down} ${i.down === 1 ? "is" : "are"} down</dd></div>
  <div><dt>Clusters</dt><dd><${Clusters} of=${i.clusters} most=${30} /></dd></div>
  ${i.zones.length > 0 && html`<div><dt>Zones</dt><dd>${i.zones.join(", ")}</dd></div>`}
</dl>`;

/** Clusters links to the first of some clusters, and counts the others. */
export const Clusters = ({ of: names, most }) => html`${names.slice(0, most).map((name, n) => html`${n > 0 && ", "}<a href=${link("clusters", name)}>${name}</a>`)}${names.length > most && ` and ${names.length - most} more`}`;

const Advice = ({ of: i }) => html`<section aria-label="What to do"><h2>What to do</h2>
  <p><strong>${i.cause}</strong> is the likely cause. ${advice[i.cause]?.(i)}</p>
  <p><code>hdsd describe incident ${quoted(i.id)}</code></p></section>`;

const First = ({ of: { first: t } }) => html`<section aria-label="How it began"><h2>How it began</h2>
  <p><a href=${link("clusters", t.cluster, t.address)}>${titleOf(t.cluster)} <${Address} of=${t.address} /></a> went from <${Health} is=${t.from} /> to <${Health} is=${t.to} />: ${t.reason}</p>
  ${t.observations.length > 0 && html`<${Table} small caption="Votes then" head=${["Checker", "Vote", "Code"]} rows=${t.observations.map((o) => html`<tr>
    <th scope="row">${o.checker}</th><td><${Health} is=${o.status} /></td><td>${o.httpStatusCode ?? ""}</td></tr>`)} />`}</section>`;

// touched lists the endpoints that went down, with when they did and when they were back, if they are.
function touched(changes) {
  const all = new Map();
  for (const t of changes) {
    const key = `${t.cluster} ${t.address}`;
    const e = all.get(key);
    if (isDown(t.to) && !e) all.set(key, { cluster: t.cluster, address: t.address, down: t.time, is: t.to });
    else if (e) Object.assign(e, { is: t.to, back: isDown(t.to) ? undefined : t.time });
  }
  return [...all.values()].sort((a, b) => Boolean(a.back) - Boolean(b.back));
}

function Endpoints({ of: changes }) {
  const all = touched(changes);
  return html`<section aria-label="Endpoints"><h2>${plural(all.length, "endpoint")}, those that are down first</h2>
    <${Long} items=${all} label="Endpoints that went down" render=${(e) => html`<a class="name" href=${link("clusters", e.cluster, e.address)}>${titleOf(e.cluster)} <${Address} of=${e.address} /></a>
      <span class="cell"><${Health} is=${e.is} /></span><span class="cell">${e.back ? `back after ${lasting(seconds(e.down, e.back))}` : html`down since <${Time} at=${e.down} />`}</span>`} /></section>`;
}

// Seers counts by checker what it said when endpoints went down.
function Seers({ of: changes }) {
  const all = new Map();
  for (const o of changes.filter((t) => isDown(t.to)).flatMap((t) => t.observations)) {
    const c = all.get(o.checker) ?? { down: 0, other: 0 };
    isDown(o.status) ? c.down++ : c.other++;
    all.set(o.checker, c);
  }
  const most = [...all].sort(([, a], [, b]) => b.down - a.down).slice(0, 50);
  return most.length > 0 && html`<section aria-label="Checkers"><h2>Checkers that saw it</h2>
    <${Table} small caption="What checkers said of endpoints that went down" head=${["Checker", "Said down", "Said else"]} rows=${most.map(([checker, c]) => html`<tr key=${checker}>
      <th scope="row">${checker}</th><td>${c.down}</td><td>${c.other}</td></tr>`)} /></section>`;
}

const most = 200; // lines of the course

// Course is what happened, in the order of time.
function Course({ of: i, changes, events, cut }) {
  const all = [...changes.map((t) => ({ time: t.time, text: html`<a href=${link("clusters", t.cluster, t.address)}>${titleOf(t.cluster)} <${Address} of=${t.address} /></a> <${Health} is=${t.to} /><br /><small>${t.reason}</small>` })),
    ...events.map((e) => ({ time: e.time, text: html`<strong>${e.kind}</strong> ${[e.checker, e.text, e.author && `(${e.author})`].filter(Boolean).join(" ")}` }))].sort((a, b) => (a.time < b.time ? -1 : 1));
  const since = (time) => (time < i.start ? `−${lasting(seconds(time, i.start))}` : `+${lasting(seconds(i.start, time))}`);
  return html`<section aria-label="What happened"><h2>What happened</h2>
    <ol class="changes">${all.slice(0, most).map((one) => html`<li><time datetime=${one.time} title=${one.time}>${since(one.time)}</time> ${one.text}</li>`)}</ol>
    ${(cut || all.length > most) && html`<p>The first ${Math.min(all.length, most)}. <code>hdsd history --since ${i.start}${i.clusters.length === 1 && ` ${quoted(i.clusters[0])}`}</code> shows all.</p>`}</section>`;
}
