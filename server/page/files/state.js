// The node's state, received as lines of JSON. Each line is a change.

// follow calls update with the state after each change. It calls link with an error
// message when the connection fails, and with "" when it is established.
export async function follow(update, link) {
  const state = { pods: new Map(), revision: 0 };
  for (let pause = 250; ; pause = Math.min(pause * 2, 8000)) {
    try {
      const response = await fetch(`page/state?revision=${state.revision}`, { cache: "no-store" });
      if (!response.ok) throw new Error(await response.text());
      link("");
      pause = 250;
      for await (const line of lines(response.body)) {
        apply(state, JSON.parse(line));
        update(state);
      }
    } catch (err) {
      link(String(err.message || err));
    }
    await new Promise(done => setTimeout(done, pause));
  }
}

function apply(state, change) {
  if (change.whole) state.pods.clear();
  for (const key of change.gone || []) state.pods.delete(key);
  for (const pod of change.pods || []) state.pods.set(`${pod.namespace}/${pod.name}`, pod);
  const { whole, gone, pods, ...rest } = change;
  Object.assign(state, rest);
}

// lines yields the lines of a stream.
export async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      yield* parts;
    }
    if (rest) yield rest;
  } finally {
    reader.cancel().catch(() => {});
  }
}
