// How operators change something: a button, a dialog that says what it does, a confirmation.
import { createContext } from "preact";
import { useContext, useLayoutEffect, useRef, useState } from "preact/hooks";
import { changed } from "./api.js";
import { Trouble, html } from "./look.js";

/** Me is who looks at the page and what that caller may do, as hdsd tells it; null until it does. */
export const Me = createContext(null);

const escaped = (text) => text.replace(/[\\^$.|+()[\]{}]/g, "\\$&");

/** matches reports whether a name matches a glob: * is any text, ? one character. */
export const matches = (glob, name) => new RegExp(`^${escaped(glob).replaceAll("*", ".*").replaceAll("?", ".")}$`, "su").test(name);

/** useMay tells what the caller may change: what concerns all clusters, and the health in one. */
export function useMay() {
  const globs = useContext(Me)?.operates ?? [];
  return { all: globs.includes("*"), change: (cluster) => globs.some((glob) => glob === "*" || (cluster && matches(glob, cluster))) };
}

const authorKey = "hdsd-author";

/**
 * Act is a button that opens a dialog. Its form has the given fields, a reason if it takes one,
 * and a name if hdsd does not know the caller. preview turns the values into a sentence that
 * has to be confirmed; run does it.
 */
export function Act({ label, about, title, says, fields, reason = true, preview, run }) {
  const box = useRef();
  const [open, setOpen] = useState(false);
  useLayoutEffect(() => {
    if (open) box.current.showModal();
  }, [open]);
  return html`<button type="button" aria-label=${about && `${label} ${about}`} onClick=${() => setOpen(true)}>${label}</button>
    ${open && html`<dialog ref=${box} aria-label=${title} onClose=${() => setOpen(false)}>
      <h2>${title}</h2>${says && html`<p>${says}</p>`}
      <${Form} of=${{ label, fields, reason, preview, run }} close=${() => box.current.close()} /></dialog>`}`;
}

function Form({ of: { label, fields, reason, preview, run }, close }) {
  const { identity } = useContext(Me) ?? {};
  const [state, set] = useState({}); // sentence: to be confirmed; done: what is left to say
  const attempt = async (ask) => {
    set((s) => ({ ...s, busy: true, error: null }));
    try {
      await ask();
    } catch (error) {
      set({ error });
    }
  };
  const submit = (e) => {
    e.preventDefault();
    const values = Object.fromEntries(new FormData(e.currentTarget));
    if (values.author !== undefined) sessionStorage.setItem(authorKey, values.author);
    if (preview && !state.sentence) return attempt(async () => set({ sentence: await preview(values) }));
    return attempt(async () => {
      const { notDurable } = await run(values);
      dispatchEvent(new Event(changed));
      notDurable ? set({ done: notDurable }) : close();
    });
  };
  if (state.done) return html`<p role="alert">It is in force, but not durable: ${state.done}</p><p class="buttons"><button type="button" onClick=${close}>Close</button></p>`;
  return html`<form onSubmit=${submit}>
    <div class="fields" onInput=${() => state.sentence && set({})}>${fields}
      ${reason && html`<label>Reason <input name="reason" required maxlength="1000" autocomplete="off" /></label>`}
      ${!identity && html`<label>Your name <input name="author" maxlength="200" autocomplete="off" value=${sessionStorage.getItem(authorKey) ?? ""} /></label>`}</div>
    <${Failed} error=${state.error} />${state.sentence && html`<p role="alert">${state.sentence}</p>`}
    <p class="buttons"><button disabled=${state.busy}>${preview && !state.sentence ? "Show what it does" : label}</button> <button type="button" onClick=${close}>Cancel</button></p></form>`;
}

// Nothing tries again here, so an error that is no refusal is told as it is.
const Failed = ({ error }) => error && (error.status ? html`<${Trouble} error=${error} />` : html`<p class="trouble" role="alert">hdsd cannot be reached: ${error.message}. Whether the change was made is not known.</p>`);
