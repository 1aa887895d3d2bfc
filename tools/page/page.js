/// The page: a chapter at a time. All that is seen follows from the address: #number&format=binary16&value=0.1&language=de
///
/// A chapter exports its `name`; `defaults`, all its parameters of the address, which are texts; the `words` it explains; where
/// not every text will do, allowed(name, value, engine); and show(engine, state, texts, go), which gives an element.
/// go({ value: "1" }) changes parameters and makes an entry of the browser's history, go(change, { replace: true }) changes the
/// present one, as sliders and animations should; neither does anything once another chapter is shown. The chapter is then
/// shown anew and the elements in the page are made equal to the new ones (patch.js), so that focus, a pointer that drags and
/// what scrolls stay. leave() ends what runs when another chapter is chosen, drop(file) takes a file dropped on the page.

import packedEngine from "engine.wasm.gz";
import * as blocks from "./chapters/blocks.js";
import * as gradients from "./chapters/gradients.js";
import * as number from "./chapters/number.js";
import * as operation from "./chapters/operation.js";
import * as quiz from "./chapters/quiz.js";
import * as sum from "./chapters/sum.js";
import * as training from "./chapters/training.js";
import { element, tried } from "./elements.js";
import { loadEngine, unpacked } from "./engine.js";
import { patch } from "./patch.js";
import de from "./texts/de.json";
import en from "./texts/en.json";

const CHAPTERS = [number, operation, sum, gradients, training, blocks, quiz];
const LANGUAGES = { en, de };
const ADDRESS_DELAY = 300;  // ms: browsers refuse many changes of the address at once

let engine, present, written;

function firstLanguage() {
  return navigator.language.startsWith("de") ? "de" : "en";
}

/// The parts of the address, { name, given: [[parameter, value], ...] }, whatever it holds.
function readAddress() {
  const decoded = (part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  const [name, ...rest] = location.hash.slice(1).split("&");
  return { name: decoded(name), given: rest.filter((part) => part).map((part) => {
    const end = part.includes("=") ? part.indexOf("=") : part.length;
    return [decoded(part.slice(0, end)), decoded(part.slice(end + 1))];
  }) };
}

/// { chapter, language, parameters, unknown }: what the address does not say is as at first, and so is what it says of another
/// version of this page, which `unknown` lists.
function readState() {
  const { name: asked, given } = readAddress();
  const chapter = CHAPTERS.find(({ name }) => name === asked) ?? CHAPTERS[0];
  const parameters = { ...chapter.defaults }, unknown = asked && chapter.name !== asked ? [asked] : [];
  let language = firstLanguage();
  for (const [name, value] of given) {
    if (name === "language" && Object.hasOwn(LANGUAGES, value)) language = value;
    else if (asked && chapter.name !== asked) continue;
    else if (Object.hasOwn(parameters, name) && (chapter.allowed?.(name, value, engine) ?? true)) parameters[name] = value;
    else unknown.push(`${name}=${value}`);
  }
  return { chapter, language, parameters, unknown };
}

function address({ chapter, language, parameters }) {
  const parts = Object.entries({ ...parameters, language }).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `#${[chapter.name, ...parts].join("&")}`;
}

/// Sets the present entry of the history right, if that was put off.
function writeAddress() {
  if (written === undefined) return;
  clearTimeout(written);
  written = undefined;
  history.replaceState(null, "", address(present));
}

function go(change, { replace = false } = {}) {
  const { language = present.language, ...parameters } = change;
  const changed = { ...present, language, parameters: { ...present.parameters, ...parameters }, unknown: [] };
  if (!replace) {
    writeAddress();
    if (address(changed) !== location.hash) history.pushState(null, "", address(changed));
  }
  render(changed);
  if (replace) written ??= setTimeout(writeAddress, ADDRESS_DELAY);
}

function translator(language) {
  return (key, values = {}) =>
    (LANGUAGES[language][key] ?? `?${key}?`).replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
}

function render(state) {
  const before = present, isChapter = before?.chapter === state.chapter;
  present = state;
  if (!isChapter) before?.chapter.leave?.();
  const texts = translator(state.language);
  document.documentElement.lang = state.language;
  document.title = `${texts(`${state.chapter.name}.title`)} - ${texts("title")}`;
  const fresh = [header(state, texts), main(state, texts)];
  if (isChapter && before.language === state.language) fresh.forEach((part, i) => patch(document.body.children[i], part));
  else document.body.replaceChildren(...fresh);
}

function header({ chapter, language }, texts) {
  const links = CHAPTERS.map((each) => element("a", { class: "chapter", "aria-current": each === chapter && "page",
    href: address({ chapter: each, language, parameters: {} }) }, texts(`${each.name}.title`)));
  const languages = Object.entries(LANGUAGES).map(([code, { language: name }]) =>
    element("option", { value: code, lang: code, selected: code === language }, name));
  return element("header", {}, element("h1", {}, texts("title")), element("p", {}, texts("lead")),
    element("nav", { "aria-label": texts("chapters") }, ...links,
      element("select", { id: "language", "aria-label": texts("languages"), onchange: ({ target }) =>
        go({ language: target.value }) },
        ...languages)));
}

/// What the words of the chapter mean.
function glossary({ words = [] }, texts) {
  if (words.length === 0) return null;
  const entries = words.flatMap((word) => [element("dt", {}, texts(`words.${word}`)),
    element("dd", {}, texts(`words.${word}_is`))]);
  return element("details", { class: "words" }, element("summary", {}, texts("words")), element("dl", { class: "facts" }, ...entries));
}

/// The chapter, or the library's own sentence on what is wrong with what it was asked.
function main({ chapter, language, parameters, unknown }, texts) {
  const goHere = (change, options) => {
    if (present.chapter === chapter) go(change, options);
  };
  return element("main", {}, element("h2", {}, texts(`${chapter.name}.title`)),
    element("p", { class: "notice" }, texts(`${chapter.name}.notice`)), glossary(chapter, texts),
    unknown.length > 0 ? element("p", { class: "wrong", role: "status" },
      texts("unknown", { parts: unknown.join(", ").slice(0, 200) })) : null,
    element("div", { id: "chapter" }, tried(() => chapter.show(engine, { ...parameters, language }, texts, goHere))),
    element("p", { class: "note" }, texts("copy")),
    element("p", { class: "printed" }, texts("printed", { state: address({ chapter, language, parameters }) })));
}

/// A file that falls beside what takes it would else be opened in the place of the page.
function takeFiles() {
  const isOfFiles = ({ dataTransfer }) => dataTransfer.types.includes("Files");
  addEventListener("dragover", (event) => isOfFiles(event) && event.preventDefault());
  addEventListener("drop", (event) => {
    if (!isOfFiles(event)) return;
    event.preventDefault();
    present.chapter.drop?.(event.dataTransfer.files[0]);
  });
}

async function start() {
  try {
    engine = await loadEngine(await unpacked(packedEngine));
  } catch {
    const lacks = globalThis.WebAssembly ? "needs_decompression" : "needs_wasm";
    document.body.replaceChildren(element("p", { class: "wrong", role: "alert" }, LANGUAGES[firstLanguage()][lacks]));
    return;
  }
  addEventListener("hashchange", () => {
    clearTimeout(written);
    written = undefined;
    if (location.hash !== address(present)) render(readState());
  });
  takeFiles();
  render(readState());
  performance.mark("answered");
  document.documentElement.dataset.ready = "yes";
}

start();
