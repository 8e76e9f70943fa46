// SPDX-License-Identifier: BSL-1.0
//
// The style sheet, elements and script of the page of a run. Nothing is loaded from elsewhere. What
// a colour says is also said by a dash, a word or a number.
#pragma once

namespace pp::detail {

/// The style sheet. Colours are variables, which a browser that prefers a dark page replaces; all
/// texts have a contrast of at least 4.5 to what they stand on, in both.
///
/// curve: measured values; band: from the least to the greatest value of a point; plan: predictions
inline constexpr char live_page_style[] = R"css(
:root { color-scheme: light dark; --paper: #fff; --ink: #111827; --soft: #4b5563; --line: #d1d5db;
  --card: #f9fafb; --curve: #2f5cb8; --band: #2f5cb866; --plan: #a85a06; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #0f1521; --ink: #e5e7eb; --soft: #a6adb9; --line: #3b4454;
    --card: #171f2d; --curve: #8ab4ff; --band: #8ab4ff66; --plan: #ffb45c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 20px 24px 40px; max-width: 1600px; background: var(--paper);
  color: var(--ink); font: 14px/1.45 "DejaVu Sans", Verdana, Helvetica, Arial, sans-serif; }
h1 { font-size: 20px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 14px; margin: 0; overflow-wrap: anywhere; }
p { margin: 2px 0 10px; color: var(--soft); }
#about { font-size: 12px; overflow-wrap: anywhere; }
progress { width: 100%; height: 10px; accent-color: var(--curve); }
label { display: inline-flex; gap: 5px; align-items: center; cursor: pointer; }
select { font: inherit; color: var(--ink); background: var(--card);
  border: 1px solid var(--line); border-radius: 4px; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 360px), 1fr));
  gap: 12px; margin: 10px 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 10px 12px; min-width: 0; }
.head { display: flex; justify-content: space-between; gap: 10px; align-items: baseline; }
.value { font-variant-numeric: tabular-nums; font-size: 16px; white-space: nowrap; }
svg { display: block; width: 100%; height: 150px; touch-action: pan-y; }
svg:focus-visible { outline: 2px solid var(--curve); outline-offset: 1px; }
svg text { font-size: 11px; fill: var(--soft); }
.grid-line { stroke: var(--line); stroke-width: 1; }
.curve { fill: none; stroke: var(--curve); stroke-width: 1.6; stroke-linejoin: round; }
.band { fill: var(--band); stroke: var(--band); }
.plan { fill: none; stroke: var(--plan); stroke-width: 1.6; stroke-dasharray: 6 4; }
.kind { flex: 1; font-size: 11px; color: var(--soft); }
.hair { stroke: var(--soft); stroke-dasharray: 3 3; }
svg text.of-plan { fill: var(--plan); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px;
  font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; }
th:first-child, td:first-child, .busy { text-align: left; }
.busy { width: 45%; min-width: 150px; }
.bar { display: inline-block; width: calc(100% - 60px); height: 10px; margin-right: 8px;
  border: 1px solid var(--line); }
.bar i { display: block; height: 100%; background: var(--curve); }
)css";

/// The elements below the heading. The script finds them by id, and adds a card for each curve to
/// `charts` and a row for each rank to `ranks`.
inline constexpr char live_page_body[] = R"html(
<p id="status" role="status">waiting for the first step</p>
<progress id="progress" max="1" value="0" aria-label="steps done" hidden></progress>
<p><label>axes of loss and norm <select id="axes"><option>automatic<option>linear
<option>logarithmic</select></label></p>
<main class="grid" id="charts"></main>
<section class="card" id="ranks-card" hidden>
<div class="head"><h2>Ranks</h2><span id="slowest"></span></div>
<div class="wide"><table><thead><tr><th>rank<th class="busy">busy, share of a step
<th>memory planned<th>allocated</tr></thead><tbody id="ranks"></tbody></table></div>
<p id="memory"></p></section>
)html";

/// The script. With an element `data` it shows what that holds; otherwise it asks the server for
/// news, once a second, and every five seconds while the page cannot be seen. Each answer replaces
/// `facts` and continues `run`: see live_state::json and run_history::json_since.
inline constexpr char live_page_script[] = R"js(
"use strict";
(() => {
const element = id => document.getElementById(id);
const embedded = element("data");
// The curves so far: steps[point], curves[i].mean[point], and low and high where points are of
// several steps.
const run = {version: -1, begin: 0, steps: [], curves: []};
// What else the last answer said; the point that is shown in all charts, or null for the last one;
// the time of the last answer.
let facts = {}, chosen = null, answered = 0;

// ---- texts

/// Four digits, and a power of ten where there would be many zeros.
const real = x => x === null || x === undefined ? "-" : x === 0 ? "0"
  : Math.abs(x) >= 1e6 || Math.abs(x) < 1e-3 ? x.toExponential(2) : String(+x.toPrecision(4));
const percent = x => x === null || x === undefined ? "-" : (100 * x).toFixed(1) + " %";
/// As readable_bytes of the library writes them.
function bytes(n) {
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let power = 0;
  for (; n >= 1023.95 && power < 5; ++power) n /= 1024;
  return n.toFixed(power > 0 ? 1 : 0) + " " + names[power];
}
/// 83 -> "1:23", 5025 -> "1:23:45"
function duration(seconds) {
  const s = Math.round(seconds), two = n => String(n).padStart(2, "0");
  return s >= 3600 ? `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`
    : `${Math.floor(s / 60)}:${two(s % 60)}`;
}
/// A curve's name as a heading, and a value of it as text.
const title = name => name.replace(/_/g, " ");
const shown = (name, x) => name === "bubble" ? percent(x) : real(x);

// ---- data

/// Enters an answer: points from news.first on are new, or other ones than before.
function take(news) {
  facts = news;
  if (news.version !== run.version) {
    run.version = news.version;
    run.steps = [];
    run.curves = [];
  }
  run.begin = news.begin;
  run.steps.splice(news.first, Infinity, ...news.steps);
  news.curves.forEach((curve, i) => {
    if (!run.curves[i]) run.curves[i] = {name: curve.name, mean: [], low: [], high: []};
    const mine = run.curves[i];
    for (const row of ["mean", "low", "high"])
      mine[row].splice(news.first, Infinity, ...(curve[row] ?? []));
  });
  if (chosen !== null && chosen >= run.steps.length) chosen = null;
}

// ---- drawing

/// An element of a picture.
const svg = (tag, into, attributes, text) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  if (text !== undefined) made.textContent = text;
  into.append(made);
  return made;
};
// Pixels around the curves, for the texts of the axes.
const left = 58, right = 8, upper = 12, height = 150, lower = 20;
const charts = [];

/// The card of a curve, made when it is first needed. Its picture takes the pointer and keys.
function chart(i) {
  if (charts[i]) return charts[i];
  const card = document.createElement("section");
  card.className = "card";
  const head = document.createElement("div"), name = document.createElement("h2"),
    kind = document.createElement("span"), value = document.createElement("span");
  head.className = "head";
  kind.className = "kind";
  value.className = "value";
  head.append(name, kind, value);
  const picture = svg("svg", card, {role: "img", tabindex: 0});
  card.prepend(head);
  element("charts").append(card);
  picture.addEventListener("pointermove", event => {
    const at = picture.getBoundingClientRect(), count = run.steps.length;
    const share = (event.clientX - at.x - left) / (at.width - left - right);
    const step = run.begin + share * (run.steps[count - 1] - run.begin);
    let nearest = 0;
    while (nearest + 1 < count && run.steps[nearest] < step) ++nearest;
    choose(count > 0 && share > -0.02 ? nearest : null);
  });
  picture.addEventListener("pointerleave", () => choose(null));
  picture.addEventListener("blur", () => choose(null));
  picture.addEventListener("keydown", event => {
    const move = {ArrowLeft: -1, ArrowRight: 1}[event.key], last = run.steps.length - 1;
    if (event.key === "Escape") choose(null);
    if (!move || last < 0) return;
    event.preventDefault();
    choose(Math.min(last, Math.max(0, (chosen ?? last) + move)));
  });
  return charts[i] = {card, name, kind, value, picture};
}

/// Shows a point in all charts, or the last one.
function choose(point) {
  if (point === chosen) return;
  chosen = point;
  draw();
}

/// Whether a curve has a logarithmic axis: that of the loss or the norm, if the reader says so. An
/// automatic axis is logarithmic if all values are above 0 and the greatest is more than four times
/// the least: on a linear one the first steps of such a run would make all later ones flat.
function logarithmic(name, values) {
  if (name !== "loss" && name !== "gradient_norm") return false;
  const axes = element("axes").value;
  if (axes !== "automatic") return axes === "logarithmic";
  let least = Infinity, most = -Infinity;
  for (const x of values) { least = Math.min(least, x); most = Math.max(most, x); }
  return least > 0 && most > 4 * least;
}

/// Values with a line: the least and the greatest, and between them round ones where a text has
/// room: equal steps, or on a logarithmic axis powers of ten, and 5 and 2 times a power.
/// y: the pixel of a value
function ticks(least, most, logs, y) {
  const found = [least, most], enough = 18;
  const add = x => {
    if (x > least && x < most && found.every(other => Math.abs(y(x) - y(other)) >= enough))
      found.push(x);
  };
  if (logs) {
    const last = Math.floor(Math.log10(most)), first = Math.floor(Math.log10(least));
    for (const digit of [1, 5, 2])
      for (let power = last; power >= first; --power) add(Number(`${digit}e${power}`));
  } else {
    const third = (most - least) / 3, power = 10 ** Math.floor(Math.log10(third));
    const step = [1, 2, 5, 10].map(digit => digit * power).find(size => size >= third);
    for (let k = Math.ceil(least / step); k * step < most; ++k)
      add(Number((k * step).toPrecision(6)));
  }
  return found;
}

/// Paints a curve: its band, its line, the prediction if there is one, and the chosen point. The
/// axis has the least and the greatest value; a curve of equal values is in the middle.
function draw_chart(i) {
  const curve = run.curves[i], c = chart(i), count = run.steps.length;
  const planned = curve.name === "bubble" ? facts.predicted_bubble ?? null : null;
  const width = Math.max(200, c.picture.clientWidth);
  const last = curve.mean.findLastIndex(x => x !== null);
  const at = chosen ?? last;
  c.value.textContent = at < 0 ? "-" : shown(curve.name, curve.mean[at]) +
    (chosen === null ? "" : ` at step ${run.steps[at]}`);
  c.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  c.picture.replaceChildren();
  // Points of one step have no band.
  const lows = curve.low.length ? curve.low : curve.mean,
    highs = curve.high.length ? curve.high : curve.mean;
  // A logarithmic axis leaves out what is not above 0.
  const logs = logarithmic(curve.name, [...lows, ...highs].filter(x => x !== null));
  c.name.textContent = title(curve.name);
  c.kind.textContent = logs ? "logarithmic" : "";
  const good = x => x !== null && (!logs || x > 0), scale = logs ? Math.log10 : x => x;
  const all = [...lows.filter(good), ...highs.filter(good), ...(planned === null ? [] : [planned])];
  if (all.length === 0 || last < 0) return void svg("text", c.picture,
    {x: width / 2, y: height / 2, "text-anchor": "middle"}, "no number yet");
  // Not Math.min(...all): a call has fewer arguments than a curve may have points.
  let least = Infinity, most = -Infinity;
  for (const x of all) { least = Math.min(least, x); most = Math.max(most, x); }
  const say = value => shown(curve.name, value);
  c.picture.setAttribute("aria-label", `${title(curve.name)}: ${say(curve.mean[last])} at step ` +
    `${run.steps[last]}, from ${say(least)} to ${say(most)}` +
    (planned === null ? "" : `, predicted ${percent(planned)}`));
  const a = scale(least), b = scale(most), span = b > a ? b - a : Math.abs(a) || 1;
  const y = x => height - lower - (b > a ? (scale(x) - a) / span : 0.5) * (height - upper - lower);
  const range = Math.max(1, run.steps[count - 1] - run.begin);
  const x = k => left + (run.steps[k] - run.begin) / range * (width - left - right);
  for (const value of b > a ? ticks(least, most, logs, y) : [least]) {
    svg("path", c.picture, {class: "grid-line", d: `M${left} ${y(value)}H${width - right}`});
    svg("text", c.picture, {x: left - 6, y: y(value) + 4, "text-anchor": "end"},
      shown(curve.name, value));
  }
  svg("text", c.picture, {x: left, y: height - 4}, `step ${run.begin}`);
  if (run.steps[count - 1] > run.begin)
    svg("text", c.picture, {x: width - right, y: height - 4, "text-anchor": "end"},
      String(run.steps[count - 1]));
  // The pieces between missing numbers; a piece of one point is a dot.
  for (let from = 0; from < count; ++from) {
    if (!good(curve.mean[from])) continue;
    let to = from, line = "", over = "", under = "";
    for (; to < count && good(curve.mean[to]); ++to) {
      line += `${to > from ? "L" : "M"}${x(to).toFixed(1)} ${y(curve.mean[to]).toFixed(1)}`;
      if (!curve.low.length) continue;
      over += `${to > from ? "L" : "M"}${x(to).toFixed(1)} ${y(highs[to]).toFixed(1)}`;
      under = `L${x(to).toFixed(1)} ${y(good(lows[to]) ? lows[to] : least).toFixed(1)}` + under;
    }
    if (over) svg("path", c.picture, {class: "band", d: over + under + "Z"});
    if (to - from > 1) svg("path", c.picture, {class: "curve", d: line});
    else svg("circle", c.picture,
      {cx: x(from), cy: y(curve.mean[from]), r: 2, fill: "var(--curve)"});
    from = to;
  }
  if (planned !== null) {
    svg("path", c.picture, {class: "plan", d: `M${left} ${y(planned)}H${width - right}`});
    svg("text", c.picture, {class: "of-plan", x: (left + width - right) / 2, y: height - 4,
      "text-anchor": "middle"}, `\u2010 \u2010 predicted ${percent(planned)}`);
  }
  if (chosen !== null)
    svg("path", c.picture, {class: "hair", d: `M${x(chosen)} ${upper}V${height - lower}`});
}

/// The table of ranks. The slowest one is the one that is busy for most of a step: all others wait
/// for it.
function draw_ranks() {
  const busy = facts.busy ?? [], planned = facts.planned_bytes ?? [];
  element("ranks-card").hidden = planned.length === 0;
  const most = Math.max(...busy.filter(x => x !== null));
  const slowest = busy.findIndex(x => x === most);
  element("slowest").textContent = slowest < 0 ? "" :
    `slowest: rank ${slowest}, busy ${percent(most)}`;
  element("ranks").replaceChildren(...planned.map((amount, rank) => {
    const row = document.createElement("tr"), cell = text => {
      const made = document.createElement("td");
      made.textContent = text;
      row.append(made);
      return made;
    };
    cell(`${rank}${rank === slowest ? " (slowest)" : ""}`);
    const share = busy[rank] ?? null, where = cell("");
    where.className = "busy";
    if (share !== null) {
      const bar = document.createElement("span"), full = document.createElement("i");
      bar.className = "bar";
      full.style.width = `${100 * share}%`;
      bar.append(full);
      where.append(bar);
    }
    where.append(percent(share));
    cell(bytes(amount));
    cell(bytes(facts.allocated_bytes[rank]));
    return row;
  }));
  const sum = planned.reduce((a, b) => a + b, 0);
  element("memory").textContent = `planned ${bytes(sum)} in all, allocated ` +
    bytes(facts.allocated_bytes?.reduce((a, b) => a + b, 0) ?? 0) +
    (facts.resident_bytes ? `; the whole process has ${bytes(facts.resident_bytes)} resident` : "");
}

function draw() {
  run.curves.forEach((_, i) => draw_chart(i));
}

/// Everything, from `run` and `facts`.
function show() {
  const step = facts.step ?? 0, quiet = facts.quiet_seconds ?? 0;
  const of = facts.of_steps ? ` of ${facts.of_steps}` : "";
  const left = facts.seconds_left === null ? "" : `, ${duration(facts.seconds_left)} left`;
  element("status").textContent = facts.ended ? `ended after step ${step}${of}`
    : step === 0 ? "waiting for the first step"
    : `step ${step}${of}${left}` +
      (quiet > 15 ? `; the last step ended ${duration(quiet)} ago` : "");
  element("progress").hidden = !facts.of_steps;
  if (facts.of_steps) {
    element("progress").max = facts.of_steps;
    element("progress").value = step;
  }
  if (step > 0) document.title = `${step}${of} · ${element("title").textContent}`;
  draw();
  draw_ranks();
}

/// Asks for news, now and from time to time. Without an answer the page keeps what it has.
async function ask() {
  try {
    const answer = await fetch(`data?version=${run.version}&points=${run.steps.length}`);
    if (!answer.ok) throw new Error(answer.statusText);
    take(await answer.json());
    answered = Date.now();
    show();
  } catch {
    const since = answered ? ` for ${duration((Date.now() - answered) / 1000)}` : "";
    element("status").textContent = `no answer${since}: ` +
      `the program has ended or cannot be reached; last seen at step ${facts.step ?? 0}`;
  }
  setTimeout(ask, document.hidden ? 5000 : 1000);
}

element("axes").addEventListener("change", draw);
new ResizeObserver(draw).observe(element("charts"));
if (embedded) {
  take(JSON.parse(embedded.textContent));
  show();
} else {
  ask();
}
})();
)js";

}  // namespace pp::detail
