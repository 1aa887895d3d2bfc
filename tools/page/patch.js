/// Elements in the page made equal to new ones. What is equal stays: focus, a pointer that drags, what was scrolled to.

/// Makes `old` as `fresh` is, which is used up.
export function patch(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
    old.replaceWith(fresh);
  } else if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
  } else {
    patchAttributes(old, fresh);
    const before = [...old.childNodes], after = [...fresh.childNodes];
    before.slice(after.length).forEach((node) => node.remove());
    after.forEach((node, i) => (i < before.length ? patch(before[i], node) : old.append(node)));
    patchControl(old, fresh);
  }
}

function patchAttributes(old, fresh) {
  for (const name of old.handlers) old[name] = null;
  for (const name of fresh.handlers) old[name] = fresh[name];
  old.handlers = fresh.handlers;
  old.isStale = old.defaultValue !== fresh.defaultValue;
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
}

/// What is being typed stays, unless the state says something else than before.
function patchControl(old, fresh) {
  if (old.nodeName === "OPTION") old.selected = fresh.selected;
  else if (old.nodeName === "INPUT" || old.nodeName === "TEXTAREA") {
    if (old.checked !== fresh.checked) old.checked = fresh.checked;
    if (old.value !== fresh.value && (old.isStale || old !== document.activeElement)) old.value = fresh.value;
  }
}
