import { all } from "./api.js";
import { Table, Time, Trouble, html, usePoll } from "./look.js";
import { Freeze, Overrides, Sources } from "./operators.js";
import { Replicas } from "./replicas.js";

const typeOf = (url) => ({ ClusterLoadAssignment: "EDS", Cluster: "CDS", HealthCheckSpecifier: "HDS" })[url.split(".").at(-1)] ?? url.split(".").at(-1);

/** Clients are the replicas, who has which configuration, where that comes from, and what operators set. */
export function Clients() {
  return html`<h1>Data planes and checkers</h1><${Replicas} /><${Connected} /><${Sources} /><${Freeze} /><${Overrides} />`;
}

// rank orders clients: those that refuse, those that lack something, and the others.
const rank = (c) => (c.error > 0 ? 0 : c.stale > 0 || c.unasked > 0 || !c.connected ? 1 : 2);

function Connected() {
  const { answer, error } = usePoll((signal) => all("/v1/clients", "clients", {}, signal), 3000, []);
  const several = answer?.some((c) => c.replica);
  return html`<section aria-label="Who is connected"><h2>Who is connected</h2><${Trouble} error=${error} />
    ${answer?.length === 0 && html`<p>None is connected.</p>`}
    ${answer?.length > 0 && html`<${Table} caption="Clients, worst first" head=${["Client", "Kind", ...(several ? ["Replica"] : []), "Type", "Has", "Behind", "Refused", "Last accepted", "Error"]} rows=${answer.toSorted((a, b) => rank(a) - rank(b)).map((c) => html`<tr key=${c.id + c.kind + c.typeUrl + c.replica}>
      <th scope="row">${c.id}</th><td>${c.kind}</td>${several && html`<td>${c.replica}</td>`}<td>${typeOf(c.typeUrl)}</td><td>${c.synced} of ${c.resources}</td><td class=${c.stale ? "bad" : ""}>${c.stale}</td><td class=${c.error ? "bad" : ""}>${c.error}</td>
      <td><${Time} at=${c.lastAck} /></td><td>${c.lastError}</td></tr>`)} />`}</section>`;
}
