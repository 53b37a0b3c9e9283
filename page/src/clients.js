import { all } from "./api.js";
import { Health, Table, Time, Trouble, html, link, useGet, usePoll, where } from "./look.js";

const typeOf = (url) => ({ ClusterLoadAssignment: "EDS", Cluster: "CDS", HealthCheckSpecifier: "HDS" })[url.split(".").at(-1)] ?? url.split(".").at(-1);

/** Clients are who has which configuration, where that comes from, and what operators set. */
export function Clients() {
  return html`<h1>Data planes and checkers</h1><${Connected} /><${Sources} /><${Freeze} /><${Overrides} />`;
}

function Connected() {
  const { answer, error } = usePoll((signal) => all("/v1/clients", "clients", {}, signal), 3000, []);
  return html`<section aria-label="Who is connected"><h2>Who is connected</h2><${Trouble} error=${error} />
    ${answer?.length === 0 && html`<p>None is connected.</p>`}
    ${answer?.length > 0 && html`<${Table} caption="Clients" head=${["Client", "Kind", "Type", "Has", "Behind", "Refused", "Last accepted", "Error"]} rows=${answer.map((c) => html`<tr key=${c.id + c.kind + c.typeUrl}>
      <th scope="row">${c.id}</th><td>${c.kind}</td><td>${typeOf(c.typeUrl)}</td><td>${c.synced} of ${c.resources}</td><td class=${c.stale ? "bad" : ""}>${c.stale}</td><td class=${c.error ? "bad" : ""}>${c.error}</td>
      <td><${Time} at=${c.lastAck} /></td><td>${c.lastError}</td></tr>`)} />`}</section>`;
}

// Sources are in the order of their precedence.
function Sources() {
  const { answer, error } = useGet("/v1/sources", {}, 5000);
  return html`<section aria-label="Where clusters come from"><h2>Sources</h2><${Trouble} error=${error} />
    ${answer?.sources.length === 0 && html`<p>There is none.</p>`}
    ${answer?.sources.length > 0 && html`<${Table} caption="Sources" head=${["Source", "Clusters", "Endpoints", "Held"]} rows=${answer.sources.map((s) => html`<tr key=${s.name}>
      <th scope="row">${s.name}</th><td>${s.clusters}</td><td>${s.endpoints}</td><td>${s.held ? html`<${Held} of=${s} />` : "nothing"}</td></tr>`)} />`}</section>`;
}

const Held = ({ of: { name, held: h } }) => html`<span class="held">HELD</span> since <${Time} at=${h.since} />: ${h.clusters} clusters and ${h.endpoints} endpoints would be left.
  hdsd follows it at <time datetime=${h.acceptsAt}>${h.acceptsAt}</time>, or at <code>hdsd source accept ${name}</code>.`;

function Freeze() {
  const { answer, error } = useGet("/v1/freeze", {}, 3000);
  return html`<section aria-label="Freeze"><h2>Freeze</h2><${Trouble} error=${error} />
    ${answer && !answer.frozen && html`<p>Not frozen.</p>`}
    ${answer?.frozen && html`<p><strong>FROZEN</strong> <${Time} at=${answer.since} />: ${answer.reason} (${answer.author || "author unknown"}).
      Data planes get ${answer.publish === "HELD" ? "the health at the moment of the freeze" : "the sources' own health"}. <code>hdsd unfreeze</code> ends it.</p>`}</section>`;
}

const target = (o) => (o.cluster ? html`<a href=${o.address ? link("clusters", o.cluster, o.address) : link("clusters", o.cluster)}>${o.cluster} ${o.address}</a>` : o.address || "all clusters");

function Overrides() {
  const { answer, error } = usePoll((signal) => all("/v1/overrides", "overrides", {}, signal), 3000, []);
  return html`<section aria-label="Overrides"><h2>Overrides</h2><${Trouble} error=${error} />
    ${answer?.length === 0 && html`<p>There is none.</p>`}
    ${answer?.length > 0 && html`<${Table} caption="What operators set" head=${["Of", "In", "Health", "Endpoints", "Since", "Until", "Why", "Who"]} rows=${answer.map((o) => html`<tr key=${JSON.stringify([o.cluster, o.address, o.locality])}>
      <th scope="row">${target(o)}</th><td>${where(o.locality, "everywhere")}</td><td><${Health} is=${o.health} /></td><td>${o.endpoints}</td><td><${Time} at=${o.since} /></td>
      <td>${o.until ? html`<time datetime=${o.until}>${o.until}</time>` : "it is cleared"}</td><td>${o.reason}</td><td>${o.author}</td></tr>`)} />`}</section>`;
}
