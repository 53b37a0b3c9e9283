import { all } from "./api.js";
import { Table, Time, Trouble, html, lasting, link, useGet, usePoll, where } from "./look.js";

const yes = (is) => (is ? "yes" : "no");

/** Incidents are outages, those that go on and those that are over. */
export function Incidents() {
  const { answer, error } = useGet("/v1/incidents", { pageSize: 200 }, 5000);
  return html`<h1>Incidents</h1><${Trouble} error=${error} />
    ${answer?.incidents.length === 0 && html`<p>None is recorded.</p>`}
    ${answer && html`<${Table} caption="Incidents, latest first" head=${["Began", "Lasted", "Where", "Endpoints", "Clusters", "What happened"]} rows=${answer.incidents.map((i) => html`<tr key=${i.id}>
      <th scope="row"><${Time} at=${i.start} /></th><td>${i.end ? lasting((Date.parse(i.end) - Date.parse(i.start)) / 1000) : html`<strong class="bad">goes on: ${i.down} down</strong>`}</td>
      <td>${i.cause}</td><td>${i.endpoints}</td><td>${i.clusters.slice(0, 5).map((k, n) => html`${n > 0 && ", "}<a href=${link("clusters", k)}>${k}</a>`)}${i.clusters.length > 5 && ` and ${i.clusters.length - 5} more`}</td><td>${i.summary}</td></tr>`)} />`}`;
}

/** Checkers are who checks, how much, and whether they are believed. */
export function Checkers() {
  const { answer, error } = usePoll((signal) => all("/v1/checkers", "checkers", { lost: true }, signal), 3000, []);
  return html`<h1>Checkers</h1><${Trouble} error=${error} />
    ${answer && html`<${Table} caption="Checkers" head=${["Checker", "Zone", "Version", "Connected", "Endpoints", "Checks/s", "Specifier", "Last report", "Believed", "Note"]} rows=${answer.map((c) => html`<tr key=${c.id}>
      <th scope="row">${c.id}</th><td>${where(c.locality)}</td><td>${c.version}</td><td class=${c.connected ? "" : "bad"}>${yes(c.connected)}</td><td>${c.assignedEndpoints}</td>
      <td>${c.checksPerSecond.toFixed(1)}</td><td>${c.specifier}</td><td><${Time} at=${c.lastReport} /></td><td class=${c.trusted ? "" : "bad"}>${yes(c.trusted)}</td>
      <td>${[c.distrustReason, c.blindReason && `blind: ${c.blindReason}`, c.probation && `on probation: ${c.probationReason}`, ...(c.cutPaths ?? []).map((p) => `path to ${p.to} cut: ${p.reason}`)].filter(Boolean).join("; ")}</td></tr>`)} />`}`;
}
