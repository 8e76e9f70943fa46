// SPDX-License-Identifier: BSL-1.0
//
// The first half of the HTML page's script: data, geometry and painting; page_interaction.hpp has
// the rest. Rows are painted on a canvas, because a table may have hundreds of thousands of
// actions; all words are text nodes of the page, so no name becomes markup.
#pragma once

namespace pp::detail {

/// Not a script alone: page_interaction continues the function that begins here.
inline constexpr char page_script[] = R"js(
"use strict";
(() => {
const page = JSON.parse(document.getElementById("data").textContent);
const element = id => document.getElementById(id);
const make = (tag, into, text = "", style = "") => {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = style;
  into.append(made);
  return made;
};

// ---- amounts, as readable_amount of the library writes them

const grouped = n => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
function readable(amount, unit) {
  amount = Math.round(amount);
  if (unit === "") return grouped(amount);
  const bytes = unit === "B", time = unit === "ns", base = bytes ? 1024 : 1000;
  const names = bytes ? ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] : time ? ["ns", "µs", "ms", "s"]
    : ["", "k", "M", "G", "T", "P", "E"].map(prefix => prefix + unit);
  let power = 0;
  for (; Math.abs(amount) >= base - 0.5 && power + 1 < names.length; ++power) amount /= base;
  const size = Math.abs(amount);
  const digits = power === 0 ? 0 : bytes ? 1 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return amount.toFixed(digits) + " " + names[power];
}
const name = a => `${page.kinds[a.kind]} of micro-batch ${a.micro_batch}, chunk ${a.chunk}`;

// ---- what is drawn: columns of the data, one array each

const F = 0, BW = 3, R = 4;
const drawings = page.drawings.map(d => ({...d, ranks: d.ranks.map(r => {
  const columns = [[], [], [], [], [], [], [], []], width = columns.length;
  r.actions.forEach((value, i) => columns[i % width].push(value));
  const [kind, chunk, micro_batch, start, end, shade, critical, with_next] = columns;
  return {kind, chunk, micro_batch, start, end, shade, critical, with_next, size: kind.length,
      times: r.memory.filter((_, i) => i % 2 === 0),
          live: r.memory.filter((_, i) => i % 2 === 1), peak: r.peak, details: r.details};
})}));
const action = (d, rank, i) => {
  const r = d.ranks[rank];
  return {kind: r.kind[i], chunk: r.chunk[i], micro_batch: r.micro_batch[i], start: r.start[i],
      end: r.end[i],
          shade: r.shade[i], critical: r.critical[i]};
};
/// The first index whose value is greater than x; values ascend.
function above(values, x) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > x) high = middle; else low = middle + 1;
  }
  return low;
}
const liveAt = (r, t) => { const i = above(r.times, t); return i > 0 ? r.live[i - 1] : 0; };

// ---- the common axis: pages count in the time of the last drawing; others are stretched to it by
// `scale`

const end = Math.max(1, ...drawings.map(d => d.makespan * d.scale));
const unit = drawings[drawings.length - 1].time_unit;
const most = Math.max(1, ...drawings.map(d => d.ranks.length));
const longest = Math.max(0, ...drawings.flatMap(d => d.names.map(name => name.length)));
const left = Math.max(72, 14 + 6.4 * longest);   // room for the names of rows
const right = 12, highest = 26, rowsHeight = 520 / drawings.length, memoryHeight = 96,
    axisHeight = 20;
const fitting = Math.min(highest, rowsHeight / most);
// the first time shown; how often it is magnified; the first row shown
const view = {from: 0, zoom: 1, top: 0};
let picked = null, showsCritical = false, showsTransfers = false, waiting = false;

const paint = page.fills.map((shades, kind) =>
    shades.map((fill, shade) => ({fill, text: page.texts[kind][shade]})));
const hatch = {};
function hatched(context, fill) {
  if (!hatch[fill]) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const ink = tile.getContext("2d");
    ink.fillStyle = fill;
    ink.fillRect(0, 0, 6, 6);
    ink.strokeStyle = "#6b7280";
    ink.beginPath();
    for (const x of [-6, 0, 6]) { ink.moveTo(x, 6); ink.lineTo(x + 6, 0); }
    ink.stroke();
    hatch[fill] = context.createPattern(tile, "repeat");
  }
  return hatch[fill];
}

const panels = drawings.map(d => {
  const section = make("section", element("drawings"));
  if (drawings.length > 1) make("h2", section, d.title);
  const last = drawings[drawings.length - 1].title;
  make("p", section, d.summary + (d.scale === 1 ? ""
      : `; stretched until its ranks compute as long as those of: ${last}`));
  const box = make("div", section, "", "view");
  const rows = make("canvas", box, "", "rows"), memory = make("canvas", box, "", "memory");
  const hair = make("div", box, "", "hair");
  hair.hidden = true;
  rows.tabIndex = 0;
  rows.setAttribute("role", "img");
  rows.setAttribute("aria-label", `${d.title}: ${d.summary}`);
  memory.setAttribute("role", "img");
  memory.setAttribute("aria-label", `Memory of each rank over time: ${d.title}`);
  const details = make("details", section);
  make("summary", details, "Ranks in numbers");
  details.addEventListener("toggle",
      () => { if (details.open && !details.querySelector("table")) numbers(details, d); });
  return {d, rows, memory, hair, box};
});
function numbers(into, d) {
  const table = make("table", into), head = make("tr", make("thead", table)),
      body = make("tbody", table);
  for (const title of ["rank", "actions", "busy", "idle", "idle share", "peak memory"])
    make("th", head, title).scope = "col";
  d.ranks.forEach((r, rank) => {
    const busy = r.end.reduce((sum, e, i) => sum + e - r.start[i], 0), idle = d.makespan - busy,
        line = make("tr", body);
    for (const cell of [d.names[rank], r.size, readable(busy, d.time_unit),
                        readable(idle, d.time_unit),
                        (100 * idle / Math.max(1, d.makespan)).toFixed(1) + " %",
                         readable(r.peak, d.memory_unit)])
      make("td", line, cell);
  });
}

// ---- geometry

const width = () => panels[0].rows.clientWidth;
const plot = () => Math.max(1, width() - left - right);
const rowHeight = () => Math.min(highest, fitting * view.zoom);
const x = time => left + (time - view.from) * view.zoom / end * plot();
const timeAt = px => view.from + (px - left) / plot() * end / view.zoom;
const tall = d => Math.min(d.ranks.length * fitting, rowsHeight);
function clamp() {
  view.zoom = Math.min(Math.max(1, view.zoom), Math.max(1, end / 4));
  view.from = Math.min(Math.max(0, view.from), end - end / view.zoom);
  view.top = Math.min(Math.max(0, view.top), Math.max(0, most - most * fitting / rowHeight()));
}
function zoom(factor, px = left + plot() / 2, row = null) {
  const time = timeAt(px), before = rowHeight();
  view.zoom *= factor;
  clamp();
  view.from = time - (px - left) / plot() * end / view.zoom;
  if (row !== null) view.top += row / before - row / rowHeight();
  draw();
}
function show() { view.from = 0; view.zoom = 1; view.top = 0; draw(); }

// ---- painting

function draw() {
  clamp();
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; panels.forEach(drawPanel); say(); });
}
function say() {
  const to = view.from + end / view.zoom;
  element("window").textContent =
      `${readable(view.from, unit)} to ${readable(to, unit)} of ${readable(end, unit)}`;
}
function prepared(canvas, height) {
  const ratio = window.devicePixelRatio || 1, context = canvas.getContext("2d");
  canvas.style.height = height + "px";
  canvas.width = Math.round(width() * ratio);
  canvas.height = Math.round(height * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = "11px 'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif";
  context.textBaseline = "middle";
  return context;
}
function step(span, most) {
  for (let power = 1;; power *= 10)
    for (const digit of [1, 2, 5]) if (span / (digit * power) <= most) return digit * power;
}
function drawPanel(panel) {
  drawRows(panel);
  drawMemory(panel);
}
function drawRows({d, rows}) {
  const height = tall(d) + 2, c = prepared(rows, height + axisHeight), h = rowHeight(),
      gap = h >= 12 ? 4 : h >= 6 ? 1 : 0;
  const first = Math.floor(view.top),
      last = Math.min(d.ranks.length, Math.ceil(view.top + height / h));
  const y = rank => (rank - view.top) * h + 1;
  const from = view.from / d.scale, to = (view.from + end / view.zoom) / d.scale;
  c.save();
  c.beginPath();
  c.rect(0, 0, left + plot() + right, height);
  c.clip();
  const every = step(last - first, Math.max(1, height / 15));
  c.textAlign = "right";
  for (let rank = first; rank < last; ++rank) {
    c.fillStyle = d.curves[rank];   // as its curve below
    c.fillRect(left - 6, y(rank), 3, Math.max(h - gap, 1));
    c.fillStyle = "#4b5563";
    const middle = y(rank) + (h - gap) / 2;
    if (rank % every === 0 && (h < 12 || middle > 6))
      c.fillText(d.names[rank], left - 11, Math.min(Math.max(6, middle), height - 6));
    if (gap > 0) {
      c.strokeStyle = "#d1d5db";
      c.lineWidth = 0.75;
      c.strokeRect(left, y(rank), plot(), h - gap);
    }
  }
  c.beginPath();
  c.rect(left, 0, plot(), height);
  c.clip();
  c.textAlign = "center";
  for (let rank = first; rank < last; ++rank) {
    const r = d.ranks[rank];
    // the last column of pixels that has something in it: more would not be seen
    let painted = -1;
    for (let i = above(r.end, from); i < r.size && r.start[i] < to; ++i) {
      const x1 = x(r.start[i] * d.scale),
          x2 = Math.max(x(r.end[i] * d.scale), x1 + (r.end[i] === r.start[i] ? 1.5 : 0));
      if (x2 < painted + 1 && x2 - x1 < 1) continue;
      painted = Math.floor(x2);
      box(c, r, i, x1, y(rank), Math.max(x2 - x1, 0.75), h - gap);
    }
  }
  if (showsTransfers && (h >= 5 || picked))
    drawTransfers(c, d, y, (h - gap) / 2, from, to, first, last);
  if (d.floor > 0) {
    c.strokeStyle = "#d11149";
    c.lineWidth = 1.4;
    c.setLineDash([5, 3]);
    c.beginPath();
    c.moveTo(x(d.floor * d.scale), 0);
    c.lineTo(x(d.floor * d.scale), height);
    c.stroke();
  }
  c.restore();
  drawAxis(c, d, height);
}
function box(c, r, i, x, y, w, h) {
  const kind = r.kind[i], shade = Math.min(r.shade[i], paint[kind].length - 1);
  const own = paint[kind][shade];
  const faded = (showsCritical && !r.critical[i])
      || (picked && r.micro_batch[i] !== picked.micro_batch);
  const apart = w > 3 && !r.with_next[i] ? 0.8 : 0;   // none inside a pair
  c.globalAlpha = faded ? 0.25 : 1;
  c.fillStyle = kind === R && w > 4 ? hatched(c, own.fill) : own.fill;
  c.fillRect(x, y, w - apart, h);
  if (kind === BW) {
    c.fillStyle = paint[2][shade].fill;
    c.fillRect(x + w / 2, y, w / 2 - apart, h);
  }
  if (showsCritical && r.critical[i]) {   // outlined, or filled where an outline has no room
    c.strokeStyle = c.fillStyle = "#d11149";
    c.lineWidth = 2;
    if (w > 3 && h > 5) c.strokeRect(x + 1, y + 1, w - apart - 2, h - 2);
    else c.fillRect(x, y, w, Math.max(h, 1));
  }
  // a cut letter would be another
  const from = Math.max(x, left), seen = Math.min(x + w, left + plot()) - from;
  if (h >= 12 && seen > 8) {
    const number = String(r.micro_batch[i]), full = page.kinds[kind] + number;
    const shown = c.measureText(full).width < seen - 2 ? full
        : c.measureText(number).width < seen - 2 ? number : "";
    c.fillStyle = own.text;
    c.fillText(shown, from + seen / 2, y + h / 2 + 0.5);
  }
  c.globalAlpha = 1;
}
function drawTransfers(c, d, y, middle, from, to, first, last) {
  c.beginPath();
  for (let i = 0; i < d.transfers.length; i += 4) {
    const r1 = d.transfers[i], p1 = d.transfers[i + 1], r2 = d.transfers[i + 2],
        p2 = d.transfers[i + 3];
    const t1 = d.ranks[r1].end[p1], t2 = d.ranks[r2].start[p2];
    if (t2 < from || t1 > to || Math.max(r1, r2) < first || Math.min(r1, r2) >= last) continue;
    if (picked && d.ranks[r1].micro_batch[p1] !== picked.micro_batch) continue;
    const x1 = x(t1 * d.scale), x2 = x(t2 * d.scale), y1 = y(r1) + middle, y2 = y(r2) + middle;
    const angle = Math.atan2(y2 - y1, x2 - x1);
    c.moveTo(x1, y1);
    c.lineTo(x2, y2);
    for (const side of [-0.4, 0.4]) {
      c.moveTo(x2, y2);
      c.lineTo(x2 - 6 * Math.cos(angle + side), y2 - 6 * Math.sin(angle + side));
    }
  }
  c.strokeStyle = "#111827";
  c.lineWidth = 0.9;
  c.stroke();
}
function drawAxis(c, d, y) {
  const span = end / view.zoom, gap = step(span, plot() / 110);
  c.fillStyle = "#4b5563";
  c.strokeStyle = "#d1d5db";
  c.textAlign = "center";
  for (let t = Math.ceil(view.from / gap) * gap; t <= view.from + span * 1.0001; t += gap) {
    c.beginPath();
    c.moveTo(x(t), y);
    c.lineTo(x(t), y + 5);
    c.stroke();
    if (x(t) < left + plot() - 12) c.fillText(readable(t, unit), x(t), y + 13);
  }
}
function drawMemory({d, memory}) {
  const c = prepared(memory, memoryHeight + 16),
      same = drawings.filter(o => o.memory_unit === d.memory_unit);
  const peak = Math.max(1, ...same.flatMap(o => o.ranks.map(r => r.peak)));
  const y = live => memoryHeight + 4 - live / peak * (memoryHeight - 6);
  const from = view.from / d.scale, to = (view.from + end / view.zoom) / d.scale;
  c.textAlign = "right";
  for (const live of [0, peak]) {
    c.strokeStyle = "#d1d5db";
    c.lineWidth = 0.75;
    c.strokeRect(left, y(live), plot(), 0);
    c.fillStyle = "#4b5563";
    c.fillText(readable(live, d.memory_unit), left - 8, Math.max(y(live), 6));
  }
  c.fillText("memory", left - 8, memoryHeight / 2);
  c.beginPath();
  c.rect(left, 0, plot(), memoryHeight + 8);
  c.clip();
  for (let rank = 0; rank < d.ranks.length; ++rank) {
    const r = d.ranks[rank], first = above(r.times, from);
    let live = liveAt(r, from), last = left;
    c.beginPath();
    c.moveTo(left, y(live));
    for (let i = first; i < r.times.length && r.times[i] < to; ++i) {
      const at = x(r.times[i] * d.scale);
      if (at - last < 0.5 && i + 1 < r.times.length
          && x(r.times[i + 1] * d.scale) - last < 0.5) continue;
      last = at;
      c.lineTo(at, y(live));
      live = r.live[i];
      c.lineTo(at, y(live));
    }
    c.lineTo(left + plot(), y(live));
    c.strokeStyle = d.curves[rank];
    c.setLineDash(d.dashes[rank]);
    c.globalAlpha = picked && picked.panel.d === d && picked.rank !== rank ? 0.25 : 1;
    c.lineWidth = picked && picked.panel.d === d && picked.rank === rank ? 2.6 : 1.5;
    c.stroke();
  }
}
)js";

}  // namespace pp::detail
