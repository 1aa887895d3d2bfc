/// The page: a chapter at a time. All that is seen follows from the address: #number&format=binary16&value=0.1&language=de

import engineBytes from "engine.wasm";
import * as number from "./chapters/number.js";
import * as operation from "./chapters/operation.js";
import { element } from "./elements.js";
import { loadEngine } from "./engine.js";
import de from "./texts/de.json";
import en from "./texts/en.json";

const CHAPTERS = [number, operation];
const LANGUAGES = { en, de };

/// { chapter, language, format, value } of the address; what it does not say, or says of a later page, is as at first.
function readState() {
  const [chapterName, ...rest] = decodeURIComponent(location.hash.slice(1)).split("&");
  const given = Object.fromEntries(rest.map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]));
  const chapter = CHAPTERS.find(({ name }) => name === chapterName) ?? CHAPTERS[0];
  const language = given.language in LANGUAGES ? given.language : navigator.language.startsWith("de") ? "de" : "en";
  const known = formats.some(({ name }) => name === given.format);
  return { chapter, language, format: known ? given.format : chapter.defaults.format, value: given.value ?? chapter.defaults.value };
}

function go(change) {
  const { chapter, language, format, value } = { ...readState(), ...change };
  location.hash = [chapter.name, `format=${format}`, `value=${encodeURIComponent(value)}`, `language=${language}`].join("&");
}

function translator(language) {
  return (key, values = {}) => Object.entries(values).reduce((text, [name, value]) => text.replace(`{${name}}`, value),
    LANGUAGES[language][key] ?? `?${key}?`);
}

let engine, formats;

function render() {
  const state = readState(), texts = translator(state.language), { chapter } = state;
  document.documentElement.lang = state.language;
  document.title = `${texts(`${chapter.name}.title`)} - ${texts("title")}`;
  const focused = document.activeElement?.id, places = document.activeElement?.dataset?.place;
  document.body.replaceChildren(header(state, texts), main(state, texts));
  const again = focused ? document.getElementById(focused) : places && document.querySelector(`[data-place="${places}"]`);
  again?.focus();
}

function header({ chapter, language }, texts) {
  const links = CHAPTERS.map((each) => element("button", { class: "chapter", "aria-current": each === chapter && "page",
    onclick: () => go({ chapter: each, ...each.defaults }) }, texts(`${each.name}.title`)));
  const languages = Object.entries(LANGUAGES).map(([code, { language: name }]) =>
    element("option", { value: code, selected: code === language }, name));
  return element("header", {}, element("h1", {}, texts("title")), element("p", {}, texts("lead")),
    element("nav", { "aria-label": texts("chapters") }, ...links,
      element("select", { id: "language", "aria-label": "Language", onchange: ({ target }) => go({ language: target.value }) }, ...languages)));
}

function main(state, texts) {
  const { chapter, format, value } = state;
  const input = element("input", { id: "value", value, spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    onchange: ({ target }) => go({ value: target.value }) });
  const choice = element("select", { id: "format", onchange: ({ target }) => go({ format: target.value }) },
    ...formats.map(({ name }) => element("option", { value: name, selected: name === format }, name)));
  return element("main", {}, element("h2", {}, texts(`${chapter.name}.title`)), element("p", { class: "notice" }, texts(`${chapter.name}.notice`)),
    element("div", { class: "asked" }, element("label", {}, texts(`${chapter.name}.input`), input), element("label", {}, texts("format"), choice)),
    answer(state, texts), element("p", { class: "note" }, texts("copy")));
}

/// Of the chapter, or the library's own sentence on what is wrong with the input.
function answer(state, texts) {
  try {
    return state.chapter.show(engine, state, texts, go);
  } catch (error) {
    return element("p", { class: "wrong", role: "alert" }, error.message);
  }
}

async function start() {
  try {
    engine = await loadEngine(engineBytes);
  } catch {
    document.body.replaceChildren(element("p", { class: "wrong" }, en.needs_wasm));
    return;
  }
  formats = engine.formats();
  addEventListener("hashchange", render);
  render();
  performance.mark("answered");
  document.documentElement.dataset.ready = "yes";
}

start();
