import { Act, useMay } from "./act.js";
import { all, post, remove } from "./api.js";
import { Table, Time, Trouble, html, useGet, usePoll, where } from "./look.js";

const yes = (is) => (is ? "yes" : "no");

// Trust is a button that decides whether a checker is believed, and one that ends that.
function Trust({ of: { id, operator } }) {
  const may = useMay();
  if (!may.all) return null;
  const fields = html`<label>Trust <select name="word"><option value="DISTRUSTED">it is never believed</option><option value="TRUSTED">it is never doubted</option></select></label>`;
  return html`<${Act} label="Set trust" about=${`in ${id}`} title=${`Set trust in ${id}`} says="It holds whatever the other checkers report, until it is cleared." fields=${fields} run=${(values) => post("/v1/trust", { checker: id, ...values })} />
    ${operator && html` <${Act} label="Clear" about=${`the trust in ${id}`} title=${`Clear the trust in ${id}`} says="hdsd decides again whether to believe it." reason=${false}
      run=${({ author }) => remove("/v1/trust", { checker: id, author })} />`}`;
}

const byOperator = (o) => o && `${o.word} by an operator: ${o.reason}${o.author && ` (${o.author})`}`;

/** Checkers are who checks, how much, and whether they are believed. */
export function Checkers() {
  const { answer, error } = usePoll((signal) => all("/v1/checkers", "checkers", { lost: true }, signal), 3000, []);
  return html`<h1>Checkers</h1><${Trouble} error=${error} />
    ${answer && html`<${Table} caption="Checkers" head=${["Checker", "Zone", "Version", "Connected", "Endpoints", "Checks/s", "Specifier", "Last report", "Believed", "Note"]} rows=${answer.map((c) => html`<tr key=${c.id}>
      <th scope="row">${c.id}</th><td>${where(c.locality)}</td><td>${c.version}</td><td class=${c.connected ? "" : "bad"}>${yes(c.connected)}</td><td>${c.assignedEndpoints}</td>
      <td>${c.checksPerSecond.toFixed(1)}</td><td>${c.specifier}</td><td><${Time} at=${c.lastReport} /></td><td class=${c.trusted ? "" : "bad"}>${yes(c.trusted)} <${Trust} of=${c} /></td>
      <td>${[byOperator(c.operator), c.distrustReason, c.blindReason && `blind: ${c.blindReason}`, c.probation && `on probation: ${c.probationReason}`, ...(c.cutPaths ?? []).map((p) => `path to ${p.to} cut: ${p.reason}`)].filter(Boolean).join("; ")}</td></tr>`)} />`}
    <${Paths} />`;
}

const sorted = (zones) => [...new Set(zones)].sort();

// Paths is a matrix: how the checkers of each zone see the endpoints of each other zone.
function Paths() {
  const { answer, error } = useGet("/v1/paths", {}, 3000);
  const paths = answer?.paths ?? [];
  const zones = sorted(paths.map((p) => p.to));
  const cut = paths.filter((p) => p.cutReason);
  return html`<section aria-label="Paths between zones"><h2>Paths between zones</h2><${Trouble} error=${error} />
    ${answer && paths.length === 0 && html`<p>No checker votes on endpoints of another zone.</p>`}
    ${paths.length > 0 && html`<${Table} caption="How the checkers of a zone (rows) see the endpoints of another (columns)" head=${["From", ...zones.map((zone) => `to ${zone}`)]}
      rows=${sorted(paths.map((p) => p.from)).map((from) => html`<tr class="heat" key=${from}><th scope="row">${from}</th>${zones.map((to) => html`<${Cell} of=${paths.find((p) => p.from === from && p.to === to)} own=${from === to} />`)}</tr>`)} />`}
    ${cut.length > 0 && html`<ul>${cut.map((p) => html`<li>${p.cutReason}</li>`)}</ul>`}</section>`;
}

function Cell({ of: p, own }) {
  if (!p) return html`<td class="none">${own ? "own zone" : "no votes"}</td>`;
  if (p.cutReason) return html`<td class="heat3">CUT: ${p.contradicted} of ${p.votes} contradicted</td>`;
  return html`<td class=${p.downs > 0 ? "heat1" : "heat0"}>${p.downs > 0 ? `${p.downs} of ${p.votes} down` : `none of ${p.votes} down`}</td>`;
}
