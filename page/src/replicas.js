import { Table, Time, Trouble, html, link, useGet } from "./look.js";

// useReplicas has the replicas of the coordinator, the one that answers among them.
function useReplicas() {
  const { answer, error } = useGet("/v1/replicas", {}, 3000);
  return { all: answer?.replicas ?? [], error };
}

/** Leadership is a line of counts: how many replicas there are, and which one leads. A coordinator alone has none. */
export function Leadership() {
  const { all } = useReplicas();
  if (all.length < 2) return null;
  const connected = all.filter((r) => r.connected).length;
  const leader = all.find((r) => r.leader);
  return html`<div><dt>Replicas</dt><dd><a href=${link("clients")}>${connected} of ${all.length} connected</a>, <span class=${leader ? "" : "bad"}>${leader ? `${leader.id} leads` : "none leads"}</span></dd></div>`;
}

// silent tells whether a replica has not answered, so that its figures are not known.
const silent = (r) => !r.self && !r.connected && r.position === "0";

/** Replicas are the replicas of the coordinator, if there are several. */
export function Replicas() {
  const { all, error } = useReplicas();
  if (all.length < 2) return null;
  const known = (r, figure) => (silent(r) ? "–" : figure);
  return html`<section aria-label="Replicas"><h2>Replicas</h2><${Trouble} error=${error} />
    <${Table} caption="Replicas" head=${["Replica", "Leads", "Connected", "Checkers", "Data planes", "Lag", "Since", "Version"]} rows=${all.map((r) => html`<tr key=${r.id}>
      <th scope="row">${r.id}${r.self && " (answers)"}</th><td>${r.leader ? "yes" : "no"}</td><td class=${r.connected ? "" : "bad"}>${r.connected ? "yes" : "no"}</td>
      <td>${known(r, r.checkers)}</td><td>${known(r, r.dataPlanes)}</td><td>${known(r, `${r.lagMillis} ms`)}</td><td><${Time} at=${r.since} /></td><td>${r.version}</td></tr>`)} /></section>`;
}
