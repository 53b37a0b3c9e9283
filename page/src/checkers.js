import { Act, useMay } from "./act.js";
import { all, post, remove } from "./api.js";
import { Table, Time, Trouble, html, plural, usePoll, where } from "./look.js";

const yes = (is) => (is ? "yes" : "no");

// Trust is a button that decides whether a checker is believed, and one that ends that.
function Trust({ of: { id, operator } }) {
  const may = useMay();
  if (!may.all) return null;
  const fields = html`<label>Trust <select name="word"><option value="DISTRUSTED">it is never believed</option><option value="TRUSTED">it is never doubted</option></select></label>`;
  return html`<${Act} label="Set trust" about=${`in ${id}`} says="It holds until it is cleared, whatever the other checkers report." fields=${fields} run=${(values) => post("/v1/trust", { checker: id, ...values })} />
    ${operator && html` <${Act} label="Clear" about=${`the trust in ${id}`} says="hdsd decides again whether to believe it." reason=${false}
      run=${({ author }) => remove("/v1/trust", { checker: id, author })} />`}`;
}

const byOperator = (o) => o && `${o.word} by an operator: ${o.reason}${o.author && ` (${o.author})`}`;

// rank orders checkers: those that are lost, those that are not believed, and the others.
const rank = (c) => (!c.connected ? 0 : !c.trusted || c.blindReason ? 1 : 2);

/** Checkers are who checks, how much, and whether they are believed. */
export function Checkers() {
  const { answer, error } = usePoll((signal) => all("/v1/checkers", "checkers", { lost: true }, signal), 3000, []);
  return html`<h1>Checkers</h1><${Trouble} error=${error} />
    ${answer?.length === 0 && html`<p>No checker is connected, and none was lost lately. <code>hdsd bootstrap checker</code> prints the configuration of an Envoy that is one.</p>`}
    ${answer?.length > 0 && html`<${Table} caption="Checkers, worst first" head=${["Checker", "Zone", "Version", "Connected", "Endpoints", "Checks/s", "Specifier", "Last report", "Believed", "Note"]} rows=${answer.toSorted((a, b) => rank(a) - rank(b)).map((c) => html`<tr key=${c.id}>
      <th scope="row">${c.id}</th><td>${where(c.locality)}</td><td>${c.version}</td><td class=${c.connected ? "" : "bad"}>${yes(c.connected)}</td><td>${c.assignedEndpoints}</td>
      <td>${c.checksPerSecond.toFixed(1)}</td><td>${c.connected ? c.specifier : "–"}</td><td><${Time} at=${c.lastReport} /></td><td class=${c.trusted ? "" : "bad"}>${yes(c.trusted)} <${Trust} of=${c} /></td>
      <td>${c.lostSince && html`<span class="bad">LOST</span> <${Time} at=${c.lostSince} />: ${c.lostReason} `}${[byOperator(c.operator), c.distrustReason, c.blindReason && `blind: ${c.blindReason}`, c.probation && `on probation: ${c.probationReason}`, c.replica && `at the replica ${c.replica}`, ...(c.cutPaths ?? []).map((p) => `path to ${p.to} cut: ${p.reason}`)].filter(Boolean).join("; ")}</td></tr>`)} />`}
    <${Paths} />`;
}

const most = 30; // zones in the matrix, each way

// worst lists the zones at one end of paths, those with cut paths first, then those with most
// downs, and no more than fit.
function worst(paths, end) {
  const bad = new Map();
  for (const p of paths) bad.set(p[end], (bad.get(p[end]) ?? 0) + p.downs + (p.cutReason ? 1e12 : 0));
  return [...bad].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, most).map(([zone]) => zone).sort();
}

const key = (from, to) => `${from}\0${to}`;

// Paths is a matrix: how the checkers of each zone see the endpoints of each other zone.
function Paths() {
  const { answer, error } = usePoll((signal) => all("/v1/paths", "paths", {}, signal), (paths) => (paths?.length > 1000 ? 15000 : 3000), []);
  const paths = answer ?? [];
  const [from, to] = [worst(paths, "from"), worst(paths, "to")];
  const at = new Map(paths.map((p) => [key(p.from, p.to), p]));
  const shown = from.flatMap((a) => to.map((b) => at.get(key(a, b)))).filter(Boolean);
  return html`<section aria-label="Paths between zones"><h2>Paths between zones</h2><${Trouble} error=${error} />
    ${answer?.length === 0 && html`<p>No checker has a vote on an endpoint of another zone.</p>`}
    ${paths.length > 0 && html`<${Table} caption="How the checkers of a zone (rows) see the endpoints of another (columns)" head=${["From", ...to.map((zone) => `to ${zone}`)]}
      rows=${from.map((a) => html`<tr class="heat" key=${a}><th scope="row">${a}</th>${to.map((b) => cell(at.get(key(a, b)), a === b))}</tr>`)} />`}
    ${shown.length < paths.length && html`<p>${plural(paths.length - shown.length, "more path")}: <code>GET /v1/paths</code> lists all.</p>`}
    <ul>${[...new Set(shown.map((p) => p.cutReason).filter(Boolean))].map((why) => html`<li>${why}</li>`)}</ul></section>`;
}

// cell says what the votes over a path say. Its colour only repeats that.
function cell(p, own) {
  if (!p) return html`<td class="none">${own ? "own zone" : "no votes"}</td>`;
  if (p.cutReason) return html`<td class="heat3">CUT: ${p.contradicted} of ${p.votes} contradicted</td>`;
  return html`<td class=${p.downs > 0 ? "heat1" : "heat0"}>${p.downs || "none"} of ${p.votes} down</td>`;
}
