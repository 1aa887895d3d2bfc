/// Elements of the page: element("p", { class: "notice" }, "text", child). Functions that start with "on" are called with the
/// event; they ask its target for elements of the page, because what they were made beside may have been patched into another.

function filled(made, attributes, children) {
  made.handlers = Object.keys(attributes).filter((key) => key.startsWith("on"));
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made[key] = value;
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/// An element of a drawing: drawn("svg", { viewBox: "0 0 10 10" }, drawn("line", { x2: 10 })).
export function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

/// What the function makes, or a sentence that says why it cannot; `said` may say it in the reader's language.
export function tried(make, said = (message) => message) {
  try {
    return make();
  } catch (error) {
    return element("p", { class: "wrong", role: "alert" }, said(error.message));
  }
}

/// For `tried`, where a number is asked for.
export function numberSaid(message, texts) {
  return message.includes("decimals are written with a point") ? texts("decimal_point") : message;
}

/// A text to type, which counts when it is finished.
export function field(id, label, value, onchange) {
  return element("label", {}, label, element("input", { id, value, spellcheck: "false", autocomplete: "off",
    autocapitalize: "off",
    onchange: ({ target }) => onchange(target.value) }));
}

/// A longer text.
export function area(id, label, value, onchange) {
  return element("label", {}, label, element("textarea", { id, rows: 3, spellcheck: "false", onchange: ({ target }) =>
    onchange(target.value) },
    value));
}

/// One of some: options are [value, text] or texts that are their own values.
export function choice(id, label, options, chosen, onchange) {
  return element("label", {}, label, element("select", { id, onchange: ({ target }) => onchange(target.value) },
    ...options.map((option) => [option].flat()).map(([value, text = value]) =>
      element("option", { value, selected: value === chosen }, text))));
}

/// A slider of { min, max, step, value, text }, where the text says what its place means; it counts while it moves.
export function slider(id, label, { min, max, step = 1, value, text }, oninput) {
  return element("label", { class: "slider" }, element("span", {}, label, " ", element("output", { for: id }, text)),
    element("input", { id, type: "range", min, max, step, value, "aria-valuetext": text, oninput: ({ target }) =>
      oninput(target.value) }));
}

/// The two things most chapters ask: a value, with its label, and a format.
export function askedValue(engine, state, texts, go, label) {
  return element("div", { class: "asked" }, field("value", label, state.value, (value) => go({ value })),
    choice("format", texts("format"), engine.formats().map(({ name, text }) => [name, text]), state.format, (format) =>
      go({ format })));
}

export function isFormat(engine, name) {
  return engine.formats().some((format) => format.name === name);
}

/// A word of the library, such as "divide by zero", in the language of the page.
export function word(texts, family, said) {
  return texts(`${family}.${said.replaceAll(" ", "_")}`);
}

export function flags(raised, texts) {
  return raised.split(", ").map((flag) => word(texts, "flag", flag)).join(", ");
}

/// A number of a measurement, to three digits.
export function rounded(value) {
  return String(Number(value.toPrecision(3)));
}

/// A whole number with its thousands apart: by a blank where a point would look like that of decimals.
export function counted(count, language, digits = 21) {
  const text = count.toLocaleString("en", { maximumSignificantDigits: digits });
  return language === "en" ? text : text.replaceAll(",", "\u202f");
}

/// Whether a text is a whole number from `least` to `most`.
export function isWhole(text, least, most) {
  return /^\d{1,15}$/.test(text) && Number(text) >= least && Number(text) <= most;
}

/// A table that scrolls by itself where the screen is narrow. Rows are arrays of texts and elements.
export function table(head, rows) {
  const cells = (kind, row) => element("tr", {}, ...row.map((cell) => element(kind, {}, cell)));
  return element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": head.filter((text) => text).join(", ") },
    element("table", {}, element("thead", {}, cells("th", head)),
      element("tbody", {}, ...rows.map((row) => cells("td", row)))));
}

/// The fields of a code, "0 01111 0000000000", each in its own colour.
export function coloredFields(fields) {
  const parts = fields.split(" "), kinds = parts.length === 3 ? ["sign", "exponent", "significand"] : ["exponent"];
  return element("span", { class: "bits" }, ...parts.map((part, i) => element("span", { class: kinds[i] ?? "significand" },
    part)));
}
