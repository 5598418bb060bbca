// The events, polled while the page is visible.

const interval = 2000, maxEvents = 200;
const received = new Map(); // by name, the newest last

// watch polls the events and calls update with all of them when there are new ones.
// It returns if the node does not serve events.
export async function watch(update) {
  for (let after = 0; ;) {
    if (!document.hidden) {
      try {
        const response = await fetch(`page/events?after=${after}`, { cache: "no-store" });
        if (response.status === 404) return;
        if (response.ok) {
          const news = await response.json();
          if (news.revision < after) received.clear(); // podd was restarted
          after = news.revision;
          if (news.events.length) update(add(news.events));
        }
      } catch { /* the stream of states reports connection errors */ }
    }
    await new Promise(done => setTimeout(done, interval));
  }
}

function add(events) {
  for (const e of events) {
    received.delete(e.name);
    received.set(e.name, e);
  }
  for (const name of received.keys()) {
    if (received.size <= maxEvents) break;
    received.delete(name);
  }
  return [...received.values()];
}
