import { get } from "./api.js";
import { Clusters, State } from "./incident.js";
import { Table, Time, Trouble, anyCluster, html, link, oneCluster, useGet, usePoll } from "./look.js";

/** Incidents are outages, those that go on and those that are over. */
export function Incidents() {
  const { answer, error } = usePoll(async (signal) => {
    const [open, latest] = await Promise.all([{ open: true }, {}].map((which) => get("/v1/incidents", { ...which, pageSize: 200 }, signal)));
    return [...open.incidents, ...latest.incidents.filter((i) => i.end)];
  }, 5000, [], anyCluster);
  return html`<h1>Incidents</h1><${Trouble} error=${error} />
    ${answer?.length === 0 && html`<p>None is recorded.</p>`}
    ${answer?.length > 0 && html`<${Table} caption="Incidents: those that go on, then the latest" head=${["What happened", "State", "Began", "Cause", "Endpoints", "Clusters"]} rows=${answer.map((i) => html`<tr key=${i.id}>
      <th scope="row"><a href=${link("incidents", i.id)}>${i.summary}</a></th><td><${State} of=${i} /></td><td><${Time} at=${i.start} /></td><td>${i.cause}</td><td>${i.endpoints}</td>
      <td><${Clusters} of=${i.clusters} most=${5} /></td></tr>`)} />`}`;
}

/** useOpen has the incidents that go on: of one cluster, or of all. */
export const useOpen = (cluster) => useGet("/v1/incidents", { open: true, cluster, pageSize: 200 }, 5000, cluster ? oneCluster(cluster) : anyCluster).answer?.incidents ?? [];

/** Open links to the incidents of a cluster that go on. */
export const Open = ({ cluster }) => html`${useOpen(cluster).map((i) => html`<p class="trouble" key=${i.id}><strong>Incident</strong> <a href=${link("incidents", i.id)}>${i.summary}</a></p>`)}`;
