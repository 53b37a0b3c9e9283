import { Act, useMay } from "./act.js";
import { post, remove } from "./api.js";
import { html, plural, titleOf, where } from "./look.js";

const durations = [["15 minutes", "900s"], ["1 hour", "3600s"], ["4 hours", "14400s"], ["1 day", "86400s"], ["until it is cleared", ""]];

// Place chooses among the localities of endpoints, if there are several.
function Place({ of: endpoints }) {
  const places = new Map(endpoints.filter((e) => where(e.locality, "")).map((e) => [where(e.locality), e.locality]));
  return places.size > 1 && html`<label>Where <select name="locality"><option value="">everywhere</option>
    ${[...places].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, l]) => html`<option key=${name} value=${JSON.stringify(l)}>${name}</option>`)}</select></label>`;
}

// Locality asks for one of any cluster.
const Locality = () => html`<label>Locality <input name="locality" required maxlength="500" pattern="(?=.*[^\\/])[^\\/]*(\\/[^\\/]*){0,2}" placeholder="region/zone/sub-zone" title="REGION, REGION/ZONE or REGION/ZONE/SUB-ZONE; an empty part is any" autocomplete="off" /></label>`;

/** place reads what Place and Locality ask for. */
function place(text) {
  if (text[0] === "{") return JSON.parse(text);
  const [region, zone, subZone] = text.split("/");
  return { region, zone, subZone };
}

/** Override is a button that overrides the health of an endpoint, of a cluster in one locality or all, or of a locality in all clusters. */
export function Override({ cluster, version = "", address, endpoints = [] }) {
  const may = useMay();
  if (!(cluster ? may.change(cluster, version) : may.all)) return null;
  const asked = ({ health, duration, reason, author, locality }) => ({
    cluster, address, health, reason, author, duration: duration || undefined, locality: locality ? place(locality) : undefined,
  });
  const preview = async (values) => {
    const { override, replaced, totalEndpoints, panics = [] } = await post("/v1/overrides/preview", asked(values));
    return `It sets ${plural(override.endpoints, "endpoint")} of ${totalEndpoints.toLocaleString("en")} to ${override.health}.${replaced ? ` It replaces ${replaced.health}: ${replaced.reason}.` : ""}${panics.map((text) => ` In ${text}.`).join("")}`;
  };
  const fields = html`<label>Health <select name="health"><option>DRAINING</option><option>UNHEALTHY</option><option>HEALTHY</option></select></label>
    ${cluster ? html`<${Place} of=${endpoints} />` : html`<${Locality} />`}
    <label>For <select name="duration">${durations.map(([name, value]) => html`<option value=${value} selected=${name === "1 hour"}>${name}</option>`)}</select></label>`;
  return html`<${Act} label="Override" about=${`the health of ${address ? `${address} in ${titleOf(cluster, version)}` : cluster ? titleOf(cluster, version) : "a locality"}`}
    says="Data planes get this health, whatever the checkers see." fields=${fields} preview=${preview} run=${(values) => post("/v1/overrides", asked(values))} />`;
}

/** Clear is a button that ends an override. */
export function Clear({ of: o }) {
  const may = useMay();
  const name = `the override of ${[titleOf(o.cluster, o.version ?? ""), o.address, where(o.locality, "")].filter(Boolean).join(" ")}`;
  const scope = { cluster: o.cluster, address: o.address, region: o.locality?.region, zone: o.locality?.zone, subZone: o.locality?.subZone };
  return may.change(o.cluster, o.version) && html`<${Act} label="Clear" about=${name} says=${`${o.endpoints ? `It applies to ${plural(o.endpoints, "endpoint")}. ` : ""}Data planes get the verdict of the checkers again, or the next override that applies.`}
    reason=${false} run=${({ author }) => remove("/v1/overrides", { ...scope, author })} />`;
}
