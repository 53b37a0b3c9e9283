import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Me } from "./act.js";
import { Refusal, changed, flipped, token, watch } from "./api.js";
import { Checkers } from "./checkers.js";
import { Cluster } from "./cluster.js";
import { Endpoint } from "./endpoint.js";
import { Clients } from "./clients.js";
import { Incident } from "./incident.js";
import { Incidents } from "./incidents.js";
import { anyCluster, html, useGet } from "./look.js";
import { Banner, Overview } from "./overview.js";

/** decode reads a part of an address. What nobody can have made stays as it is. */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** place reads the address: the parts of its path, and its parameters. */
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { parts: path ? path.split("/").map(decode) : [], query: new URLSearchParams(query) };
}

function usePlace() {
  const [here, set] = useState(place);
  useEffect(() => {
    const moved = () => set(place());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  const change = (parameters) => {
    for (const [name, value] of Object.entries(parameters)) value ? here.query.set(name, value) : here.query.delete(name);
    history.replaceState(null, "", `#/${here.parts.map(encodeURIComponent).join("/")}${here.query.size ? `?${here.query}` : ""}`);
    set(place());
  };
  return [here, change];
}

function View({ here, change, status }) {
  const [view, ...about] = here.parts;
  const parameter = (name) => here.query.get(name) ?? "";
  if (view === "clusters" && about.length === 1) return html`<${Cluster} key=${about[0]} name=${about[0]} health=${parameter("health")} find=${parameter("find")} set=${change} />`;
  if (view === "clusters" && about.length === 2) return html`<${Endpoint} key=${about.join(" ")} cluster=${about[0]} address=${about[1]} />`;
  if (view === "incidents" && about.length === 1) return html`<${Incident} key=${about[0]} id=${about[0]} />`;
  if (view === "incidents") return html`<${Incidents} />`;
  if (view === "checkers") return html`<${Checkers} />`;
  if (view === "clients") return html`<${Clients} />`;
  return html`<${Overview} status=${status} find=${parameter("find")} setFind=${(find) => change({ find })} />`;
}

/** useWatch tells all that is shown when endpoints change. While hdsd cannot be reached, what is shown is asked for from time to time. */
function useWatch() {
  useEffect(() => {
    const end = new AbortController();
    watch({ by: "cluster" }, end.signal, {
      begin: () => {},
      lost: () => {},
      events: (events) => events.forEach(({ name, data }) => name === "clusters" && dispatchEvent(new CustomEvent(flipped, { detail: data }))),
    });
    const looked = () => document.hidden || dispatchEvent(new Event(changed));
    document.addEventListener("visibilitychange", looked);
    return () => (end.abort(), document.removeEventListener("visibilitychange", looked));
  }, []);
}

const views = [["", "Overview"], ["incidents", "Incidents"], ["checkers", "Checkers"], ["clients", "Data planes"]];

function App() {
  const [here, change] = usePlace();
  useWatch();
  const { answer: status, error } = useGet("/v1/status", {}, 3000, anyCluster);
  const at = here.parts[0] === "clusters" ? "" : (here.parts[0] ?? "");
  useEffect(() => {
    document.title = [...here.parts.slice(0, 3).reverse(), "hdsd"].join(" · ");
  }, [here]);
  if (error instanceof Refusal && error.status === 401) return html`<${Ask} why=${error.message} />`;
  return html`<${Me.Provider} value=${status?.caller ?? null}><a class="skip" href="#content" onClick=${(e) => (e.preventDefault(), document.getElementById("content").focus())}>Skip to the content</a>
    <header><strong>hdsd</strong><nav aria-label="Views">${views.map(([path, name]) => html`<a href=${`#/${path}`} aria-current=${at === path ? "page" : undefined}>${name}</a>`)}</nav>
      <span class="version">${status ? `${status.version}, ${status.ready ? "ready" : "not ready"}` : ""}</span></header>
    <${Banner} status=${status} error=${error} />
    <main id="content" tabindex="-1"><${View} here=${here} change=${change} status=${status} /></main></${Me.Provider}>`;
}

/** Ask asks for a token where hdsd wants one. It is kept until the tab is closed. */
function Ask({ why }) {
  const given = (e) => {
    e.preventDefault();
    token.set(new FormData(e.currentTarget).get("token").trim());
    dispatchEvent(new Event(changed));
  };
  return html`<main><h1>hdsd</h1><p role="alert">${why}</p>
    <form onSubmit=${given}><label>Bearer token <input name="token" type="password" autocomplete="off" required /></label> <button>Use it</button></form></main>`;
}

render(html`<${App} />`, document.getElementById("page"));
