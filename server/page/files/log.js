// The log of a container as it comes.
import { lines } from "./state.js";

const most = 5000; // lines shown
const escapes = /\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]/g;

const stamped = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) /;
const pause = 1000;

// show puts a log into a box and, but for that of the run before, follows it and
// those of the runs to come until the signal.
export async function show(box, where, stay, signal) {
  const follow = !where.previous;
  box.replaceChildren();
  let waiting = [], newest, said;
  const flush = () => {
    if (signal.aborted) return;
    box.append(...waiting.map(line => line + "\n"));
    waiting = [];
    while (box.childNodes.length > most) box.firstChild.remove();
    if (stay.checked) box.scrollTop = box.scrollHeight;
  };
  const add = line => {
    if (waiting.length === 0) requestAnimationFrame(flush);
    waiting.push(line);
    if (waiting.length > most) waiting.shift();
  };
  const say = words => { // once, until there is more
    if (words !== said) add(`podd: ${said = words}`);
  };
  for (let part = { tail: 1000 }; ; part = newest ? { tail: most, since: newest.stamp } : { tail: most }) {
    const shown = newest; // of which the answer may tell again
    let more = said === undefined; // asked for the first time
    try {
      const query = new URLSearchParams({ ...where, follow, timestamps: true, ...part });
      const answer = await fetch(`page/logs?${query}`, { signal, cache: "no-store" });
      if (!answer.ok) throw new Error((await answer.json()).error);
      for await (const line of lines(answer.body)) {
        const entry = read(line);
        if (entry.at === undefined ? !more : entry.at <= shown?.at) continue;
        more = true;
        if (entry.at !== undefined && !(entry.at <= newest?.at)) newest = entry;
        said = undefined;
        add(entry.text.replace(escapes, ""));
      }
      if (follow) say("the container ended");
    } catch (err) {
      if (!signal.aborted) say(err.message);
    }
    flush();
    if (!follow) return;
    await new Promise(done => setTimeout(done, pause));
    if (signal.aborted) return;
  }
}

// read parts a line from its time, in nanoseconds; a malformed one has none.
function read(line) {
  const [stamp, second, fraction = "", zone] = stamped.exec(line) || [];
  const ms = Date.parse(second + zone);
  if (Number.isNaN(ms)) return { text: line };
  const at = BigInt(ms) * 1000000n + BigInt(fraction.padEnd(9, "0"));
  return { at, stamp: stamp.trim(), text: line.slice(stamp.length) };
}
