// The log of a container as it comes.
import { lines } from "./state.js";

const most = 5000; // lines shown
const escapes = /\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]/g;

// show follows a log into a box until the signal.
export async function show(box, where, stay, signal) {
  const query = new URLSearchParams({ ...where, follow: !where.previous, tail: 1000 });
  box.replaceChildren();
  let waiting = [];
  const flush = () => {
    if (signal.aborted) return;
    box.append(...waiting.map(line => line + "\n"));
    waiting = [];
    while (box.childNodes.length > most) box.firstChild.remove();
    if (stay.checked) box.scrollTop = box.scrollHeight;
  };
  try {
    const answer = await fetch(`page/logs?${query}`, { signal, cache: "no-store" });
    if (!answer.ok) throw new Error((await answer.json()).error);
    for await (const line of lines(answer.body)) {
      if (waiting.length === 0) requestAnimationFrame(flush);
      waiting.push(line.replace(escapes, ""));
      if (waiting.length > most) waiting.shift();
    }
  } catch (err) {
    if (!signal.aborted) waiting.push(`podd: ${err.message}`);
  }
  flush();
}
