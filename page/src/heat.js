import { anyCluster, Table, Trouble, html, link, titleOf, useGet, where } from "./look.js";

const states = { ALL_DOWN: "all down", NONE_HEALTHY: "none healthy", HALF_DOWN: "half down or more", SOME_DOWN: "some down", UNCHECKED: "not checked", UNOBSERVED: "unobserved", OK: "ok" };

/** Heat is a map of clusters by zones, those that are worst off first. hdsd makes the summary. */
export function Heat() {
  const { answer, error } = useGet("/v1/overview", {}, 3000, anyCluster);
  return html`<section aria-label="Where it is down"><h2>Where it is down</h2><${Trouble} error=${error} />
    ${answer?.clusters.length === 0 && html`<p>No cluster is checked.</p>`}
    ${answer?.clusters.length > 0 && html`<${Table} caption="Endpoints that are down, by cluster and zone, worst first" head=${["Cluster", "State", ...answer.zones.map(zoneName)]}
      rows=${answer.clusters.map((k) => html`<tr key=${k.cluster} class="heat"><th scope="row"><a href=${link("clusters", k.cluster)}>${titleOf(k.cluster, k.version ?? "")}</a></th><td class=${`state ${k.down > 0 || k.state !== "OK" ? "bad" : "well"}`}>${states[k.state] ?? k.state}</td>${byZone(k, answer.zones.length).map(cell)}</tr>`)} />`}
    ${answer?.further > 0 && html`<p>${answer.further.toLocaleString("en")} more clusters are in better health.</p>`}</section>`;
}

const zoneName = (zone) => (zone.region || zone.zone ? where(zone) : "no zone");

function byZone(cluster, zones) {
  const cells = new Array(zones).fill(null);
  for (const cell of cluster.cells) cells[cell.zone] = cell;
  return cells;
}

/** cell says how many endpoints are down. Its colour only repeats that. */
const cell = (c) => {
  if (!c) return html`<td class="none"><span aria-label="none">–</span></td>`;
  const level = c.down === 0 ? 0 : Math.ceil((3 * c.down) / c.endpoints);
  return html`<td class=${`heat${level}`}>${c.down} of ${c.endpoints} down</td>`;
};
