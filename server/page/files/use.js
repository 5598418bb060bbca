// What the node and its pods use, sampled while someone looks.

const every = 2000, room = 150; // five minutes
export const history = { node: { cpu: [], memory: [] }, pods: new Map(), room };

// sample keeps asking and calls tell with each answer; it ends where the node
// does not tell.
export async function sample(tell) {
  for (;;) {
    if (!document.hidden) {
      try {
        const answer = await fetch("page/usage", { cache: "no-store" });
        if (answer.status === 404) return;
        if (answer.ok) tell(remember(await answer.json()));
      } catch { /* the state's stream tells that the node is away */ }
    }
    await new Promise(done => setTimeout(done, every));
  }
}

function remember(usage) {
  push(history.node, usage.node);
  const seen = usage.pods || {};
  for (const key of history.pods.keys()) if (!(key in seen)) history.pods.delete(key);
  for (const [key, use] of Object.entries(seen)) {
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
