// The dialog of one pod: its status with the reason, its containers and their logs.
import { bytes, cores, curve, drawEvents, element } from "./draw.js";
import * as log from "./log.js";

const $ = id => document.getElementById(id);
const dialog = $("detail");
let key, drawn, container, following;

export function open(pod, state, events) {
  key = pod;
  drawn = container = undefined;
  $("log").hidden = true;
  update(state, events);
  dialog.showModal();
  if (state.logs && state.pods.get(key)?.containers.length) follow(state.pods.get(key).containers.at(-1).name);
}

// update draws the current state of the pod.
export function update(state, events) {
  const pod = state.pods.get(key);
  if (!key || pod === drawn && pod) return drawPodEvents(events);
  drawn = pod;
  $("detail-title").textContent = key;
  $("why").textContent = pod ? [pod.status, pod.ip, pod.why].filter(Boolean).join(" · ") : "deleted";
  $("why").className = pod?.tone || "";
  $("containers").replaceChildren(...(pod?.containers || []).map(c => containerItem(c, state.logs)));
  drawPodEvents(events);
}

function drawPodEvents(events) {
  drawEvents($("pod-events"), events.filter(e => e.pod === key), false);
}

function containerItem(c, logs) {
  const text = [c.kind, c.state, c.restarts ? `${c.restarts} restarts` : ""].filter(Boolean).join(", ");
  const item = element("li", {}, element("b", {}, c.name), ` ${text} `, element("code", {}, c.image));
  if (logs) {
    const button = element("button", { type: "button" }, "logs");
    button.addEventListener("click", () => follow(c.name));
    item.append(button);
  }
  return item;
}

function follow(name) {
  container = name;
  following?.abort();
  following = new AbortController();
  $("log").hidden = false;
  $("log-title").textContent = `Log of ${name}`;
  const [namespace, pod] = key.split("/");
  log.show($("lines"), { namespace, pod, container, previous: $("previous").checked }, $("stay"), following.signal);
}

// use draws the curves of the pod's resource usage.
export function use(history) {
  const h = history.pods.get(key);
  $("pod-curves").hidden = !h;
  if (!h || !dialog.open) return;
  const [cpu, memory] = $("pod-curves").querySelectorAll("figure");
  for (const [figure, values, format, top] of [[cpu, h.cpu, cores, 1e7], [memory, h.memory, bytes, 1 << 20]]) {
    figure.querySelector("b").textContent = format(values.at(-1));
    curve(figure.querySelector("svg"), values, top, history.room);
  }
}

$("close").addEventListener("click", () => dialog.close());
$("previous").addEventListener("change", () => container && follow(container));
dialog.addEventListener("close", () => { following?.abort(); key = undefined; });
dialog.addEventListener("click", event => { if (event.target === dialog) dialog.close(); });
