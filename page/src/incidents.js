import { Table, Time, Trouble, html, lasting, link, useGet } from "./look.js";

/** Incidents are outages, those that go on and those that are over. */
export function Incidents() {
  const { answer, error } = useGet("/v1/incidents", { pageSize: 200 }, 5000);
  return html`<h1>Incidents</h1><${Trouble} error=${error} />
    ${answer?.incidents.length === 0 && html`<p>None is recorded.</p>`}
    ${answer && html`<${Table} caption="Incidents, latest first" head=${["Began", "Lasted", "Where", "Endpoints", "Clusters", "What happened"]} rows=${answer.incidents.map((i) => html`<tr key=${i.id}>
      <th scope="row"><${Time} at=${i.start} /></th><td>${i.end ? lasting((Date.parse(i.end) - Date.parse(i.start)) / 1000) : html`<strong class="bad">goes on: ${i.down} down</strong>`}</td>
      <td>${i.cause}</td><td>${i.endpoints}</td><td>${i.clusters.slice(0, 5).map((k, n) => html`${n > 0 && ", "}<a href=${link("clusters", k)}>${k}</a>`)}${i.clusters.length > 5 && ` and ${i.clusters.length - 5} more`}</td><td>${i.summary}</td></tr>`)} />`}`;
}
