import { get } from "./api.js";
import { Clusters, Partial, State, soon } from "./incident.js";
import { Table, Time, Trouble, anyCluster, html, link, oneCluster, useGet, usePoll } from "./look.js";

/** Incidents are outages, those that go on and those that are over. */
export function Incidents() {
  const { answer, error } = usePoll(async (signal) => {
    const [open, latest] = await Promise.all([{ open: true }, {}].map((which) => get("/v1/incidents", { ...which, pageSize: 200, allowPartial: true }, signal)));
    return { partial: open.partial || latest.partial, all: [...open.incidents, ...latest.incidents.filter((i) => i.end)] };
  }, soon, [], anyCluster);
  const all = answer?.all ?? [];
  return html`<h1>Incidents</h1><${Trouble} error=${error} />
    <${Partial} of=${answer} />
    ${answer && !answer.partial && all.length === 0 && html`<p>No incidents are recorded.</p>`}
    ${all.length > 0 && html`<${Table} caption="Incidents: ongoing ones first, then the latest" head=${["What happened", "State", "Began", "Cause", "Endpoints", "Clusters"]} rows=${all.map((i) => html`<tr key=${i.id}>
      <th scope="row"><a href=${link("incidents", i.id)}>${i.summary}</a></th><td><${State} of=${i} /></td><td><${Time} at=${i.start} /></td><td>${i.cause}</td><td>${i.endpoints}</td>
      <td><${Clusters} of=${i.clusters} most=${5} /></td></tr>`)} />`}`;
}

/** useOpen has the incidents that go on: of one cluster, or of all. */
export function useOpen(cluster) {
  const { answer } = useGet("/v1/incidents", { open: true, cluster, pageSize: 200, allowPartial: true }, soon, cluster ? oneCluster(cluster) : anyCluster);
  return { partial: answer?.partial, all: answer?.incidents ?? [] };
}

/** Open links to the incidents of a cluster that go on. */
export function Open({ cluster }) {
  const open = useOpen(cluster);
  return html`<${Partial} of=${open} />${open.all.map((i) => html`<p class="trouble" key=${i.id}><strong>Incident</strong> <a href=${link("incidents", i.id)}>${i.summary}</a></p>`)}`;
}
