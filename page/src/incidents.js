import { get } from "./api.js";
import { Table, Time, Trouble, html, lasting, link, usePoll } from "./look.js";

/** Incidents are outages, those that go on and those that are over. */
export function Incidents() {
  const { answer, error } = usePoll(async (signal) => {
    const [open, latest] = await Promise.all([{ open: true }, {}].map((which) => get("/v1/incidents", { ...which, pageSize: 200 }, signal)));
    return [...open.incidents, ...latest.incidents.filter((i) => i.end)];
  }, 5000, []);
  return html`<h1>Incidents</h1><${Trouble} error=${error} />
    ${answer?.length === 0 && html`<p>None is recorded.</p>`}
    ${answer?.length > 0 && html`<${Table} caption="Incidents: those that go on, then the latest" head=${["What happened", "State", "Began", "Cause", "Endpoints", "Clusters"]} rows=${answer.map((i) => html`<tr key=${i.id}>
      <th scope="row">${i.summary}</th><td>${i.end ? html`<span class="well">over</span> after ${lasting((Date.parse(i.end) - Date.parse(i.start)) / 1000)}` : html`<strong class="bad">goes on: ${i.down} down</strong>`}</td>
      <td><${Time} at=${i.start} /></td><td>${i.cause}</td><td>${i.endpoints}</td><td>${i.clusters.slice(0, 5).map((k, n) => html`${n > 0 && ", "}<a href=${link("clusters", k)}>${k}</a>`)}${i.clusters.length > 5 && ` and ${i.clusters.length - 5} more`}</td></tr>`)} />`}`;
}
