// How operators change something: a button, a dialog that says what it does, a confirmation.
import { createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { changed } from "./api.js";
import { clusterOf, html } from "./look.js";

/** Me is who looks at the page, and what they may do, as /v1/status says it; null before that. */
export const Me = createContext(null);

const escaped = (text) => text.replace(/[\\^$.|+()[\]{}]/g, "\\$&");

/** matches reports whether a name matches a glob: * is any text, ? one character. */
export const matches = (glob, name) => new RegExp(`^${escaped(glob).replaceAll("*", ".*").replaceAll("?", ".")}$`, "su").test(name);

/** useMay tells what the caller may change: what concerns all clusters, and the health of one. */
export function useMay() {
  const globs = useContext(Me)?.operates ?? [];
  return { all: globs.includes("*"), change: (cluster, version) => globs.some((glob) => glob === "*" || (cluster && (matches(glob, cluster) || matches(glob, clusterOf(cluster, version ?? ""))))) };
}

const authorKey = "hdsd-author";

/**
 * Act is a button that opens a dialog. Its form has the given fields, a reason if it takes one,
 * and a name if hdsd does not know the caller. run makes the change. With preview, which writes
 * a sentence from the same values, the change is confirmed first.
 */
export function Act({ label, about, title, ...rest }) {
  const [open, setOpen] = useState(false);
  return html`<button type="button" aria-label=${about && `${label} ${about}`} onClick=${() => setOpen(true)}>${label}</button>
    ${open && html`<${Dialog} ...${{ label, title: title ?? `${label} ${about}`, ...rest }} closed=${() => setOpen(false)} />`}`;
}

function Dialog({ label, title, says, fields, reason = true, preview, run, closed }) {
  const box = useRef();
  const told = useRef();
  const { identity } = useContext(Me) ?? {};
  // sentence and values: what is to be confirmed; notDurable: what is left to say.
  const [{ busy, error, sentence, values, notDurable }, set] = useState({});
  useLayoutEffect(() => box.current.showModal(), []);
  useEffect(() => told.current?.focus(), [error, sentence, notDurable]);
  const close = () => box.current?.close();
  const attempt = async (ask, unsure) => {
    set({ busy: true, sentence, values });
    try {
      set(await ask());
    } catch (failure) {
      set({ error: failure.status ? failure.message : `hdsd cannot be reached: ${failure.message}. ${unsure}` });
    }
  };
  const submit = (e) => {
    e.preventDefault();
    const asked = values ?? Object.fromEntries(new FormData(e.currentTarget));
    if (asked.author !== undefined) sessionStorage.setItem(authorKey, asked.author);
    if (preview && !sentence) return attempt(async () => ({ sentence: await preview(asked), values: asked }), "Nothing was changed.");
    return attempt(async () => {
      const answer = await run(asked);
      dispatchEvent(new Event(changed));
      if (!answer.notDurable) close();
      return { notDurable: answer.notDurable };
    }, "Whether the change was made is not known.");
  };
  const edited = () => (sentence || error) && set({});
  return html`<dialog ref=${box} aria-label=${title} onClose=${closed} onCancel=${(e) => busy && e.preventDefault()}>
    <h2>${title}</h2>${says && html`<p>${says}</p>`}
    ${notDurable
      ? html`<p role="alert" tabindex="-1" ref=${told}>It is in force, but not durable: ${notDurable}</p><p class="buttons"><button type="button" onClick=${close}>Close</button></p>`
      : html`<form onSubmit=${submit}>
          <fieldset class="fields" disabled=${busy} onInput=${edited}>${fields}
            ${reason && html`<label>Reason <input name="reason" required maxlength="1000" autocomplete="off" /></label>`}
            ${!identity && html`<label>Your name <input name="author" maxlength="200" autocomplete="off" value=${sessionStorage.getItem(authorKey) ?? ""} /></label>`}</fieldset>
          ${(error || sentence) && html`<p class=${error ? "trouble" : ""} role="alert" tabindex="-1" ref=${told}>${error || sentence}</p>`}
          <p class="buttons"><button disabled=${busy}>${preview && !sentence ? "Show what it does" : label}</button> <button type="button" disabled=${busy} onClick=${close}>Cancel</button></p></form>`}</dialog>`;
}
