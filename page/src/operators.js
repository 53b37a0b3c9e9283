import { Act, useMay } from "./act.js";
import { all, post, remove } from "./api.js";
import { Address, Health, Table, Time, Trouble, html, link, Moment, plural, titleOf, useGet, usePoll, where } from "./look.js";
import { Clear, Override } from "./override.js";

/** Sources are in the order of their precedence, with what hdsd holds of them. */
export function Sources() {
  const { answer, error } = useGet("/v1/sources", {}, 5000);
  return html`<section aria-label="Where clusters come from"><h2>Sources</h2><${Trouble} error=${error} />
    ${answer?.sources.length === 0 && html`<p>No sources are configured.</p>`}
    ${answer?.sources.length > 0 && html`<${Table} caption="Sources" head=${["Source", "Clusters", "Endpoints", "Held", "Problem"]} rows=${answer.sources.map((s) => html`<tr key=${s.name}>
      <th scope="row">${s.name}</th><td>${s.clusters}</td><td>${s.endpoints}</td><td>${s.held ? html`<${Held} of=${s} />` : "nothing"}</td><td>${s.problem && html`<span class="bad">BROKEN</span> ${s.problem}`}</td></tr>`)} />`}</section>`;
}

const left = (h) => `${plural(h.clusters, "cluster")} and ${plural(h.endpoints, "endpoint")}`;

function Held({ of: { name, held: h } }) {
  const may = useMay();
  const accept = ({ reason, author }) => post("/v1/sources", { name, reason, author, heldSince: h.since, heldRevision: h.revision });
  return html`<span class="held">HELD</span> since <${Time} at=${h.since} />: ${left(h)} would be left.
  hdsd accepts this by itself at <${Moment} time=${h.acceptsAt} />; <code>hdsd source accept ${name}</code> does so now.
  ${may.all && html` <${Act} label="Accept" about=${`what is held of ${name}`}
    says=${`${left(h)} will be left.`} run=${accept} />`}`;
}

/** Freeze says whether publishing is frozen, and freezes it. */
export function Freeze() {
  const may = useMay();
  const { answer, error } = useGet("/v1/freeze", {}, 3000);
  return html`<section aria-label="Freeze"><h2>Freeze</h2><${Trouble} error=${error} />
    ${answer && !answer.frozen && html`<p>Not frozen. ${may.all && html`<${Act} label="Freeze" title="Freeze publishing" says="Data planes get no new verdicts until somebody unfreezes. Checks and history go on. Overrides stay in force, and none expires meanwhile."
      fields=${html`<${Publish} />`} run=${(values) => post("/v1/freeze", values)} />`}</p>`}
    ${answer?.frozen && html`<p><strong>FROZEN</strong> <${Time} at=${answer.since} />: ${answer.reason} (${answer.author || "author unknown"}).
      Data planes get ${answer.publish === "HELD" ? "the health at the moment of the freeze" : "the sources' own health"}. Overrides stay in force, and none expires meanwhile. <code>hdsd unfreeze</code> ends it.
      ${may.all && html`<${Act} label="Unfreeze" title="Unfreeze publishing" says="Data planes get the present verdicts at once. Overrides whose time is over end." reason=${false} run=${({ author }) => remove("/v1/freeze", { author })} />`}</p>`}</section>`;
}

const Publish = () => html`<label>Publish <select name="publish"><option value="HELD">the present health</option><option value="SOURCES">the sources' own health</option></select></label>`;

const target = (o) => (o.cluster ? html`<a href=${o.address ? link("clusters", o.cluster, o.address) : link("clusters", o.cluster)}>${titleOf(o.cluster, o.version ?? "")} ${o.address && html`<${Address} of=${o.address} />`}</a>` : o.address || "all clusters");

/** Overrides are what operators set in place of verdicts. */
export function Overrides() {
  const { answer, error } = usePoll((signal) => all("/v1/overrides", "overrides", {}, signal), 3000, []);
  return html`<section aria-label="Overrides"><h2>Overrides</h2><${Trouble} error=${error} />
    ${answer?.length === 0 && html`<p>No overrides are in force.</p>`}
    <${Override} />
    ${answer?.length > 0 && html`<${Table} caption="What operators set" head=${["Applies to", "Where", "Health", "Endpoints", "Since", "Until", "Reason", "Author"]} rows=${answer.map((o) => html`<tr key=${JSON.stringify([o.cluster, o.address, o.locality])}>
      <th scope="row">${target(o)}</th><td>${where(o.locality, "everywhere")}</td><td><${Health} is=${o.health} /></td><td>${o.endpoints}</td><td><${Time} at=${o.since} /></td>
      <td>${o.until ? html`<${Moment} time=${o.until} />` : "it is cleared"} <${Clear} of=${o} /></td><td>${o.reason}</td><td>${o.author}</td></tr>`)} />`}</section>`;
}
