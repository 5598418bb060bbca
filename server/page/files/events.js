// What happened, asked for while someone looks.

const every = 2000, most = 200; // kept
const known = new Map(); // by name, the newest last

// watch keeps asking and calls tell with what there is when there is more; it
// ends where nothing is told.
export async function watch(tell) {
  for (let after = 0; ;) {
    if (!document.hidden) {
      try {
        const answer = await fetch(`page/events?after=${after}`, { cache: "no-store" });
        if (answer.status === 404) return;
        if (answer.ok) {
          const news = await answer.json();
          if (news.revision < after) known.clear(); // podd began anew
          after = news.revision;
          if (news.events.length) tell(remember(news.events));
        }
      } catch { /* the state's stream tells that the node is away */ }
    }
    await new Promise(done => setTimeout(done, every));
  }
}

function remember(events) {
  for (const e of events) {
    known.delete(e.name);
    known.set(e.name, e);
  }
  for (const name of known.keys()) {
    if (known.size <= most) break;
    known.delete(name);
  }
  return [...known.values()];
}
