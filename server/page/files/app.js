// The page: draws the node's state.
import { age, bytes, cores, curve, drawEvents, element } from "./draw.js";
import { watch } from "./events.js";
import { follow } from "./state.js";
import { history, sample } from "./use.js";
import * as detail from "./detail.js";

const $ = id => document.getElementById(id);
const rows = new Map(); // rows of the table of pods, by key
let state = { pods: new Map() }, usage, events = [];

follow(now => { state = now; draw(); }, showLink);
sample(now => { usage = now; drawUse(); });
watch(now => { events = now; drawEventsNow(); });
setInterval(drawAges, 1000);

function showLink(why) {
  $("link").className = why ? "lost" : "";
  $("link").textContent = why ? "no response from podd; trying again" : "live";
}

function draw() {
  document.title = `${state.node} · podd`;
  $("node").textContent = state.node;
  $("about").textContent = [`podd ${state.version}`, state.runtime || "no container runtime", count()].join(" · ");
  drawShutdown();
  drawProblems();
  drawPods();
  detail.update(state, events);
}

function drawEventsNow() {
  drawEvents($("events").querySelector("ol"), events, true);
  $("events").hidden = false;
  detail.update(state, events);
}

const shutdown = {
  node: "The node is shutting down; podd starts no pods before the next boot, unless a user runs \"podd shutdown --cancel\"",
  pods: "\"podd down\" has stopped all pods; podd starts no pods until it is restarted",
};

function drawShutdown() {
  const text = shutdown[state.shutdown] || "";
  $("shutdown").hidden = !text;
  if ($("shutdown").textContent !== text) $("shutdown").textContent = text; // so that screen readers announce it once
}

function count() {
  const all = [...state.pods.values()], ready = all.filter(p => p.tone === "ok").length;
  return `${ready} of ${all.length} pods ready`;
}

function drawProblems() {
  $("problems").hidden = !state.problems?.length;
  $("problems").querySelector("ul").replaceChildren(...(state.problems || []).map(p => {
    const place = [p.path, p.line, p.column].filter(Boolean).join(":");
    const text = [p.field, p.message].filter(Boolean).join(": ");
    return element("li", { class: p.severity }, ...(place ? [element("code", {}, place), " "] : []), text);
  }));
}

function drawPods() {
  const filter = $("filter").value.trim().toLowerCase();
  const shown = [...state.pods.entries()].sort().filter(([key, p]) => `${key} ${p.status}`.toLowerCase().includes(filter));
  for (const [key, row] of rows) if (!shown.some(([k]) => k === key)) { row.remove(); rows.delete(key); }
  const body = $("pods").querySelector("tbody");
  shown.forEach(([key, pod], i) => {
    let row = rows.get(key);
    if (row?.pod !== pod) {
      const fresh = podRow(key, pod);
      const focused = row?.contains(document.activeElement);
      row?.replaceWith(fresh);
      rows.set(key, row = fresh);
      if (focused) row.querySelector("button").focus();
    }
    if (body.children[i] !== row) body.insertBefore(row, body.children[i] || null);
  });
  $("none").hidden = shown.length > 0;
  $("none").textContent = state.starting ? "podd is starting" : filter ? "no pod matches" : `no pods in ${(state.sources || []).join(", ") || "any source: none is configured"}`;
}

function podRow(key, pod) {
  const open = element("button", { type: "button" }, element("span", { class: "namespace" }, pod.namespace + "/"), pod.name);
  open.addEventListener("click", () => detail.open(key, state, events));
  const place = [pod.path, pod.line].filter(Boolean).join(":");
  const row = element("tr", { class: pod.tone },
    element("td", {}, open),
    element("td", {}, pod.containersReady),
    element("td", { class: `status ${pod.tone}` }, pod.status),
    element("td", { class: "restarts" }, pod.restarts),
    element("td", { class: "age" }),
    element("td", { class: "use cpu" }), element("td", { class: "use memory" }),
    element("td", { class: "from", title: place }, place.replace(/^\/.*\//, ""), pod.waits ? " (edit waits)" : "", element("span", { class: "pulls" })));
  row.pod = pod;
  drawRow(key, row);
  return row;
}

function drawRow(key, row) {
  row.querySelector(".age").textContent = age(row.pod.began);
  row.querySelector(".pulls").textContent = (row.pod.pulls || []).map(p => ` (pulling ${p.image} for ${age(p.since)})`).join("");
  const use = usage?.pods?.[key];
  row.querySelector(".cpu").textContent = use ? cores(use.nanoCores || 0) : "";
  row.querySelector(".memory").textContent = use ? bytes(use.workingSet) : "";
}

function drawAges() {
  for (const [key, row] of rows) drawRow(key, row);
  for (const t of document.querySelectorAll("time")) t.textContent = age(t.dateTime);
}

function drawUse() {
  if (state.cpu === undefined) return; // no state has been received yet
  document.body.classList.add("uses");
  $("gauges").hidden = false;
  const node = usage.node;
  $("cpu").textContent = share(node.nanoCores || 0, state.cpu, cores);
  $("memory").textContent = share(node.workingSet, state.memory, bytes);
  curve($("cpu-curve"), history.node.cpu, state.cpu, history.room);
  curve($("memory-curve"), history.node.memory, state.memory, history.room);
  for (const [key, row] of rows) drawRow(key, row);
  detail.use(history);
}

// share formats a part of a total; the total is omitted if it is unknown.
const share = (part, total, format) => total > 0 ? `${format(part)} of ${format(total)}` : format(part);

$("filter").addEventListener("input", drawPods);
document.addEventListener("keydown", event => {
  if (event.target.matches("input[type=search]")) {
    if (event.key === "Escape") { event.target.value = ""; drawPods(); event.target.blur(); }
    return;
  }
  if (event.ctrlKey || event.altKey || event.metaKey || $("detail").open) return;
  if (event.key === "/") { event.preventDefault(); $("filter").focus(); }
  if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event);
});

// step moves the focus to the next or the previous pod.
function step(event) {
  const buttons = [...document.querySelectorAll("#pods tbody button")];
  if (!buttons.length) return;
  event.preventDefault();
  const at = buttons.indexOf(document.activeElement);
  const next = event.key === "ArrowDown" ? at + 1 : at < 0 ? buttons.length - 1 : at - 1;
  buttons[Math.max(0, Math.min(buttons.length - 1, next))].focus();
}
