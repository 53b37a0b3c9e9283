import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, watch } from "./api.js";
import { Address, Health, Long, Time, Trouble, ago, hour, html, isDown, link, oneCluster, titleOf, useGet, usePoll, where } from "./look.js";
import { Open } from "./incidents.js";
import { Override } from "./override.js";
import { Drawn } from "./strip.js";

const order = ["TIMEOUT", "UNHEALTHY", "UNKNOWN", "DEGRADED", "DRAINING", "HEALTHY"];
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const keyOf = (e) => `${where(e.locality)} ${e.address} ${e.cluster}`; // the cluster has several versions behind the relay

const busy = 4; // how many times as long as it takes to sort the endpoints passes before they are drawn again

/** useWatch keeps the endpoints of a cluster as they are now. */
function useWatch(cluster) {
  const endpoints = useRef(new Map());
  const cost = useRef(0); // ms to sort them
  const [state, set] = useState({ version: 0, synced: false, error: null });
  useEffect(() => {
    const end = new AbortController();
    let due;
    let drawn = 0;
    // What comes after a pause is drawn at once. A large cluster takes longer, so it is drawn less often.
    const draw = () => (due ??= setTimeout(() => ((due = undefined), (drawn = performance.now()), set((s) => ({ ...s, version: s.version + 1 }))),
      Math.max(50, drawn + busy * cost.current - performance.now())));
    watch({ cluster }, end.signal, {
      begin: () => endpoints.current.clear(),
      lost: (error) => set((s) => ({ ...s, error })),
      events: (events) => {
        for (const { name, data } of events) {
          if (name === "synced") set((s) => ({ ...s, synced: true }));
          else {
            const key = keyOf(data);
            const now = name === "endpoint" ? data : { ...endpoints.current.get(key), ...data, health: data.to, since: data.time, held: false };
            endpoints.current.set(key, { ...now, key, place: where(data.locality), words: `${where(data.locality)} ${data.address}` });
          }
        }
        draw();
      },
    });
    return () => (end.abort(), clearTimeout(due), endpoints.current.clear());
  }, [cluster]);
  return { ...state, cost, all: [...endpoints.current.values()] };
}

const recorded = 1000; // changes asked for

/** usePast has the latest changes of a cluster in the last hour, by endpoint, and whether there are more. */
function usePast(cluster) {
  const { answer } = usePoll((signal) => get("/v1/transitions", { cluster, startTime: ago(hour), newestFirst: true, pageSize: recorded }, signal), 5000, [cluster], oneCluster(cluster));
  return useMemo(() => answer && { of: Map.groupBy(answer.transitions, keyOf), cut: Boolean(answer.nextPageToken) }, [answer]);
}

/** Cluster is the endpoints of one cluster, live. */
export function Cluster({ name, health, find, set }) {
  const { all, synced, error, cost } = useWatch(name);
  const past = usePast(name);
  const known = useGet("/v1/clusters", { cluster: name }, 3000, oneCluster(name));
  const shown = known.answer?.clusters.find((k) => k.name === name);
  const began = performance.now();
  const found = all
    .filter((e) => (!health || (health === "DOWN" ? isDown(e.health) : e.health === health)) && e.words.includes(find))
    .sort((a, b) => compare(a.place, b.place) || order.indexOf(a.health) - order.indexOf(b.health) || compare(a.address, b.address) || compare(a.cluster, b.cluster));
  const rows = [];
  let zone;
  for (const e of found) {
    if (zone?.at !== e.place) rows.push((zone = { at: e.place, zone: true, count: 0, down: 0 }));
    zone.count++;
    zone.down += isDown(e.health);
    rows.push({ e });
  }
  cost.current = performance.now() - began;
  return html`<p><a href="#/">All clusters</a></p><h1>${titleOf(name, known.answer ? (shown?.version ?? "") : undefined)}</h1><${Trouble} error=${error} /><${Open} cluster=${name} /><${Panic} of=${shown} />
    <p class="filters"><label>Health <select value=${health} onChange=${(e) => set({ health: e.currentTarget.value })}>
      <option value="">all</option><option value="DOWN">down</option>${order.map((one) => html`<option value=${one}>${one.toLowerCase()}</option>`)}</select></label>
      <label>Find <input type="search" value=${find} onInput=${(e) => set({ find: e.currentTarget.value })} /></label>
      <span role="status">${synced ? `${found.length.toLocaleString("en")} of ${all.length.toLocaleString("en")} endpoints, ${all.filter((e) => isDown(e.health)).length} down` : "Loading"}</span>
      ${synced && html`<${Override} cluster=${name} version=${shown?.version} endpoints=${all} />`}</p>
    ${all.length > 0 && html`<p class="hint">Each strip is the last hour.</p>`}
    ${synced && all.length === 0 && html`<${Absence} of=${known} />`}
    <${Long} items=${rows} label="Endpoints by locality" render=${(row) => (row.zone ? html`<${Zone} of=${row} />` : html`<${Endpoint} of=${row.e} past=${past} />`)} />`;
}

// Panic explains why Envoys disregard the published health of a cluster.
const Panic = ({ of: k }) => k?.panicReason && html`<p class="trouble"><strong>PANIC</strong> ${k.panicSince && html`<${Time} at=${k.panicSince} /> `}${k.panicReason}</p>`;

// Absence says why a cluster has no endpoints.
function Absence({ of: { answer, error } }) {
  const removed = answer?.removed;
  if (removed?.time) return html`<p>No source has it any more: it was removed <${Time} at=${removed.time} />, ${removed.text}.</p>`;
  if (removed) return html`<p>No source has it now. When it was removed is not recorded.</p>`;
  return html`<${Trouble} error=${error} />${answer && html`<p>It has no endpoints: ${answer.clusters[0]?.noEndpointsReason}</p>`}`;
}

const Zone = ({ of: { at, count, down } }) => html`<strong class="zone">${at}</strong> <span class="count">${down} of ${count} down</span>`;

const Endpoint = ({ of: e, past }) => html`<a class="name" href=${link("clusters", e.cluster, e.address)}><${Address} of=${e.address} />${e.version && html` <small>version ${e.version}</small>`}</a>
  <span class="cell"><${Health} is=${e.health} held=${e.held} /></span><span class="cell"><${Time} at=${e.since} /></span>
  <span class="strip">${past && html`<${Drawn} of=${past.of.get(e.key) ?? []} cut=${past.cut} seconds=${hour} label="Last hour" before=${e.health} />`}</span><span class=${e.health === "HEALTHY" ? "reason good" : "reason"}>${e.reason}</span>`;
