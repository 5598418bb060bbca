// The log of a container, which is followed while it is shown.
import { lines } from "./state.js";

const maxLines = 5000;
const escapes = /\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]/g;

const stamped = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) /;
const pause = 1000;

// show writes a log into box. Unless it is the log of the previous instance, show
// follows it, and then those of later instances, until the signal.
export async function show(box, where, stay, signal) {
  const follow = !where.previous;
  box.replaceChildren();
  let waiting = [], newest, notice;
  const flush = () => {
    if (signal.aborted) return;
    box.append(...waiting.map(line => line + "\n"));
    waiting = [];
    while (box.childNodes.length > maxLines) box.firstChild.remove();
    if (stay.checked) box.scrollTop = box.scrollHeight;
  };
  const add = line => {
    if (waiting.length === 0) requestAnimationFrame(flush);
    waiting.push(line);
    if (waiting.length > maxLines) waiting.shift();
  };
  const notify = text => { // once, until the next line of the log
    if (text !== notice) add(`podd: ${notice = text}`);
  };
  for (let part = { tail: 1000 }; ; part = newest ? { tail: maxLines, since: newest.stamp } : { tail: maxLines }) {
    const shown = newest; // the response may repeat lines up to this one
    let more = notice === undefined; // in the first request
    try {
      const query = new URLSearchParams({ ...where, follow, timestamps: true, ...part });
      const response = await fetch(`page/logs?${query}`, { signal, cache: "no-store" });
      if (!response.ok) throw new Error((await response.json()).error);
      for await (const line of lines(response.body)) {
        const entry = read(line);
        if (entry.at === undefined ? !more : entry.at <= shown?.at) continue;
        more = true;
        if (entry.at !== undefined && !(entry.at <= newest?.at)) newest = entry;
        notice = undefined;
        add(entry.text.replace(escapes, ""));
      }
      if (follow) notify("the container has terminated");
    } catch (err) {
      if (!signal.aborted) notify(err.message);
    }
    flush();
    if (!follow) return;
    await new Promise(done => setTimeout(done, pause));
    if (signal.aborted) return;
  }
}

// read separates a line from its timestamp, in nanoseconds. A malformed line has none.
function read(line) {
  const [stamp, second, fraction = "", zone] = stamped.exec(line) || [];
  const ms = Date.parse(second + zone);
  if (Number.isNaN(ms)) return { text: line };
  const at = BigInt(ms) * 1000000n + BigInt(fraction.padEnd(9, "0"));
  return { at, stamp: stamp.trim(), text: line.slice(stamp.length) };
}
