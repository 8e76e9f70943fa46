// SPDX-License-Identifier: BSL-1.0
//
// The interaction of the HTML page: pointer, keys and buttons. The second half of the script in
// page_script.hpp.
#pragma once

namespace pp::detail {

/// Not a script alone: it follows page_script and ends the function that begins there.
inline constexpr char page_interaction[] = R"js(
// ---- what is under the pointer

function find(panel, event) {
  const frame = panel.rows.getBoundingClientRect(), px = event.clientX - frame.left,
      py = event.clientY - frame.top;
  const rank = Math.floor(view.top + py / rowHeight()), r = panel.d.ranks[rank];
  if (!r || px < left || py > tall(panel.d)) return null;
  const time = timeAt(px) / panel.d.scale, i = above(r.end, time);
  // an action may be narrower than a pixel
  const near = 2 / plot() * end / view.zoom / panel.d.scale;
  const hit = i < r.size && r.start[i] <= time + near ? i : -1;
  return hit < 0 ? null : {panel, rank, position: hit, ...action(panel.d, rank, hit)};
}
function described(found) {
  const d = found.panel.d, r = d.ranks[found.rank], t = value => readable(value, d.time_unit);
  const lines = [`${name(found)}, ${d.names[found.rank]}`,
      `${t(found.start)} to ${t(found.end)}, takes ${t(found.end - found.start)}`,
    `memory ${readable(liveAt(r, found.start), d.memory_unit)}, ` +
    `then ${readable(liveAt(r, found.end), d.memory_unit)}`];
  const other = r.with_next[found.position] ? found.position + 1
      : r.with_next[found.position - 1] ? found.position - 1 : -1;
  if (other >= 0) lines.push(`together with ${name(action(d, found.rank, other))}`);
  if (found.critical) lines.push("on the critical path");
  const during = r.details.filter(s => s.start < found.end && s.end > found.start);
  for (const detail of during.slice(0, 8))
    lines.push(`  ${detail.name}: ${t(detail.end - detail.start)}`);
  return lines;
}
function pick(found) {
  picked = found;
  const whose = found && drawings.length > 1 ? found.panel.d.title + ": " : "";
  element("picked").textContent = found ? whose + described(found).join("; ") : "";
  draw();
}
function hover(panel, event) {
  const found = find(panel, event), tip = element("tip"),
      frame = panel.rows.getBoundingClientRect();
  const px = event.clientX - frame.left;
  for (const p of panels) {
    p.hair.hidden = px < left || px > left + plot();
    p.hair.style.left = px + "px";
  }
  tip.hidden = !found;
  if (!found) return;
  tip.textContent = described(found).join("\n");
  tip.style.left = Math.max(4,
      Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = (event.clientY + 18 + tip.offsetHeight > innerHeight
      ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18) + "px";
}
function leave() {
  element("tip").hidden = true;
  for (const p of panels) p.hair.hidden = true;
}
function next(panel, by, byRank) {
  let rank = 0, position = 0;
  if (picked && picked.panel === panel) {
    rank = Math.min(Math.max(0, picked.rank + byRank), panel.d.ranks.length - 1);
    const there = panel.d.ranks[rank];
    position = byRank ? above(there.end, picked.start) : picked.position + by;
    position = Math.min(Math.max(0, position), there.size - 1);
  }
  if (panel.d.ranks[rank].size === 0) return;
  const a = action(panel.d, rank, position), from = a.start * panel.d.scale,
      to = a.end * panel.d.scale;
  if (from < view.from || to > view.from + end / view.zoom) view.from = from - end / view.zoom / 4;
  if (rank < view.top || rank >= view.top + tall(panel.d) / rowHeight()) view.top = rank - 2;
  pick({panel, rank, position, ...a});
}

for (const panel of panels) {
  let drag = null;
  panel.rows.addEventListener("wheel", event => {
    event.preventDefault();
    const frame = panel.rows.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * 0.0015), Math.max(left, event.clientX - frame.left),
        event.clientY - frame.top);
    hover(panel, event);
  }, {passive: false});
  panel.rows.addEventListener("pointerdown", event => {
    drag = {x: event.clientX, y: event.clientY, from: view.from, top: view.top, moved: false};
    panel.rows.setPointerCapture(event.pointerId);
  });
  panel.rows.addEventListener("pointermove", event => {
    if (!drag) return hover(panel, event);
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (Math.abs(dx) + Math.abs(dy) > 3) drag.moved = true;
    if (!drag.moved) return;
    leave();
    panel.rows.classList.add("dragged");
    view.from = drag.from - dx / plot() * end / view.zoom;
    view.top = drag.top - dy / rowHeight();
    draw();
  });
  panel.rows.addEventListener("pointerup", event => {
    if (drag && !drag.moved) pick(find(panel, event));
    drag = null;
    panel.rows.classList.remove("dragged");
  });
  panel.rows.addEventListener("pointercancel", () => { drag = null; });
  panel.rows.addEventListener("pointerleave", leave);
  panel.rows.addEventListener("keydown", event => {
    const part = end / view.zoom / 8,
        arrows = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    const arrow = arrows[event.key];
    if (arrow && event.shiftKey) next(panel, arrow[0], arrow[1]);
    else if (arrow) { view.from += arrow[0] * part; view.top += arrow[1] * 2; draw(); }
    else if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else if (event.key === "0") show();
    else return;
    event.preventDefault();
  });
}
element("in").addEventListener("click", () => zoom(1.5));
element("out").addEventListener("click", () => zoom(1 / 1.5));
element("all").addEventListener("click", show);
element("critical").addEventListener("change",
    event => { showsCritical = event.target.checked; draw(); });
element("transfers").addEventListener("change",
    event => { showsTransfers = event.target.checked; draw(); });
addEventListener("keydown", event => { if (event.key === "Escape") pick(null); });
addEventListener("resize", draw);

// ---- the legend

for (const key of page.keys) {
  const item = make("li", element("keys"));
  make("i", item).style.background = key.background;
  item.append(key.name);
}
draw();
})();
)js";

}  // namespace pp::detail
