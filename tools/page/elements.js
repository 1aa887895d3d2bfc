/// Elements of the page: element("p", { class: "notice" }, "text", child).

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/// A table that scrolls by itself where the screen is narrow. Rows are arrays of texts and elements.
export function table(head, rows) {
  const cells = (kind, row) => element("tr", {}, ...row.map((cell) => element(kind, {}, cell)));
  return element("div", { class: "wide", tabindex: "0" },
    element("table", {}, element("thead", {}, cells("th", head)), element("tbody", {}, ...rows.map((row) => cells("td", row)))));
}

/// The fields of a code, "0 01111 0000000000", each in its own colour.
export function coloredFields(fields) {
  const parts = fields.split(" "), kinds = parts.length === 3 ? ["sign", "exponent", "significand"] : ["exponent"];
  return element("span", { class: "bits" }, ...parts.map((part, i) => element("span", { class: kinds[i] ?? "significand" }, part)));
}
