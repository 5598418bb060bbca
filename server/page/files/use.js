// The resource usage of the node and its pods, sampled while the page is visible.

const interval = 2000, room = 150; // five minutes
export const history = { node: { cpu: [], memory: [] }, pods: new Map(), room };

// sample polls the usage and calls update with each response. It returns if the node
// does not serve the usage.
export async function sample(update) {
  for (;;) {
    if (!document.hidden) {
      try {
        const response = await fetch("page/usage", { cache: "no-store" });
        if (response.status === 404) return;
        if (response.ok) update(record(await response.json()));
      } catch { /* the stream of states reports connection errors */ }
    }
    await new Promise(done => setTimeout(done, interval));
  }
}

function record(usage) {
  push(history.node, usage.node);
  const pods = usage.pods || {};
  for (const key of history.pods.keys()) if (!(key in pods)) history.pods.delete(key);
  for (const [key, use] of Object.entries(pods)) {
    if (!history.pods.has(key)) history.pods.set(key, { cpu: [], memory: [] });
    push(history.pods.get(key), use);
  }
  return usage;
}

function push(h, use) {
  for (const [values, v] of [[h.cpu, use.nanoCores], [h.memory, use.workingSet]]) {
    values.push(v || 0);
    if (values.length > room) values.shift();
  }
}
