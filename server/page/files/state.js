// The node's state as it comes: lines of JSON, each a change of the last.

// follow calls tell with the state whenever it changed, and lost with true or
// false as the node is out of reach or back.
export async function follow(tell, lost) {
  const state = { pods: new Map(), revision: 0 };
  for (let pause = 250; ; pause = Math.min(pause * 2, 8000)) {
    try {
      const answer = await fetch(`page/state?revision=${state.revision}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(await answer.text());
      lost("");
      pause = 250;
      for await (const line of lines(answer.body)) {
        apply(state, JSON.parse(line));
        tell(state);
      }
    } catch (err) {
      lost(String(err.message || err));
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

// lines are those of a stream of text.
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
