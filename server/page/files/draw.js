// Helpers that draw elements, ages, amounts and curves.

// element creates an element. Text from the node is added as text, never as markup.
export function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

// age formats the time since a timestamp as kubectl does.
export function age(time, now = Date.now()) {
  if (!time) return "";
  const s = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (s < 120) return `${s}s`;
  const m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
  if (m < 10) return s % 60 ? `${m}m${s % 60}s` : `${m}m`;
  if (h < 3) return `${m}m`;
  if (h < 8) return m % 60 ? `${h}h${m % 60}m` : `${h}h`;
  if (h < 48) return `${h}h`;
  return `${d}d`;
}

export const cores = nano => `${Math.ceil(nano / 1e6)}m`;

export function bytes(n) {
  for (const unit of ["B", "Ki", "Mi", "Gi"]) {
    if (n < 1024 || unit === "Gi") return `${n < 10 && unit !== "B" ? n.toFixed(1) : Math.round(n)}${unit}`;
    n /= 1024;
  }
}

// curve draws values, the newest at the right. The vertical scale ends at top or at
// the greatest value if that is greater.
export function curve(svg, values, top, room) {
  const high = Math.max(top, ...values) || 1;
  const x = i => room - values.length + i;
  const line = values.map((v, i) => `${i ? "L" : "M"}${x(i)} ${(40 - 38 * v / high).toFixed(2)}`).join("");
  svg.setAttribute("viewBox", `0 0 ${room - 1} 40`);
  svg.setAttribute("preserveAspectRatio", "none");
  const path = (d, kind) => {
    const p = document.createElementNS("http://www.w3.org/2000/svg", "path");
    p.setAttribute("d", d);
    if (kind) p.setAttribute("class", kind);
    return p;
  };
  const below = line && `${line}L${room - 1} 40L${x(0)} 40Z`;
  svg.replaceChildren(path(below, "below"), path(line));
}

// drawEvents lists events, the newest first. If named is set, it includes the object
// of each event.
export function drawEvents(list, events, named) {
  list.replaceChildren(...events.toReversed().map(e => element("li", { class: e.type },
    element("time", { datetime: e.last, title: e.last }, age(e.last)),
    ...(named ? [element("span", { class: "about" }, e.pod || "node")] : []),
    element("span", {}, element("b", { class: "reason" }, e.reason), ` ${e.message}${e.count > 1 ? ` (${e.count} times)` : ""}`))));
}
