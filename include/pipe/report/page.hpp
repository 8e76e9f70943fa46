// SPDX-License-Identifier: BSL-1.0
//
// The style sheet and structure of the HTML page, the same for every drawing. Nothing is loaded
// from elsewhere.
#pragma once

namespace pp::detail {

/// The style sheet.
inline constexpr char page_style[] = R"css(
:root { color-scheme: light; --ink: #111827; --soft: #4b5563; --line: #d1d5db; --mark: #d11149; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 20px 24px 40px;
  max-width: 1600px; background: #fff; color: var(--ink);
  font: 14px/1.45 "DejaVu Sans", Verdana, Helvetica, Arial, sans-serif; }
h1 { font-size: 20px; margin: 0 0 12px; overflow-wrap: anywhere; }
h2 { font-size: 15px; margin: 20px 0 0; overflow-wrap: anywhere; }
p { margin: 2px 0 6px; color: var(--soft); }
.bar { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center;
  position: sticky; top: 0; z-index: 1; background: #fff; padding: 8px 0;
  border-bottom: 1px solid var(--line); }
.group { display: flex; gap: 6px; align-items: center; }
button { font: inherit; min-width: 32px; padding: 3px 10px; border: 1px solid #9ca3af;
  border-radius: 6px; background: #f9fafb; color: inherit; cursor: pointer; }
button:hover { background: #eef2f7; }
label { display: flex; gap: 5px; align-items: center; cursor: pointer; }
.keys { display: flex; flex-wrap: wrap; gap: 4px 14px; margin: 10px 0 0; padding: 0;
  list-style: none; color: var(--soft); font-size: 12px; }
.keys li { display: flex; gap: 6px; align-items: center; }
.keys i { width: 20px; height: 13px; border-radius: 2px; outline: 1px solid #fff; }
canvas { display: block; width: 100%; touch-action: none; }
canvas.rows { cursor: grab; }
canvas.rows.dragged { cursor: grabbing; }
canvas:focus-visible, button:focus-visible { outline: 2px solid #2563eb; outline-offset: 1px; }
.view { position: relative; }
.hair { position: absolute; top: 0; bottom: 0; width: 0;
  border-left: 1px dashed #6b7280; pointer-events: none; }
#tip { position: fixed; z-index: 2; max-width: 340px; padding: 8px 11px; border-radius: 6px;
  background: #111827; color: #fff; font-size: 12px; white-space: pre-line;
  pointer-events: none; box-shadow: 0 3px 12px #0004; }
#picked { min-height: 1.5em; color: var(--ink); }
table { border-collapse: collapse; margin: 8px 0; font-size: 12px;
  font-variant-numeric: tabular-nums; }
th, td { padding: 2px 12px; border-bottom: 1px solid var(--line); text-align: right; }
summary { cursor: pointer; color: var(--soft); margin-top: 10px; }
kbd { border: 1px solid var(--line); border-radius: 3px; padding: 0 4px; font-size: 11px; }
)css";

/// The elements of the body. The script finds them by id, and fills `keys` and `drawings`.
inline constexpr char page_body[] = R"html(
<div class="bar">
<span class="group" role="group" aria-label="Zoom"
><button id="out" title="Zoom out (-)" aria-label="Zoom out">&minus;</button
><button id="in" title="Zoom in (+)" aria-label="Zoom in">+</button
><button id="all" title="Show everything (0)">Fit</button></span>
<label><input type="checkbox" id="critical">critical path</label>
<label><input type="checkbox" id="transfers">transfers</label>
<output id="window" aria-label="Time shown"></output>
</div>
<ul class="keys" id="keys"></ul>
<main id="drawings"></main>
<p id="picked" aria-live="polite"></p>
<details><summary>How to move about</summary><p>Wheel: zoom at the pointer. Drag: move.
Click on an action: follow its micro-batch; click beside the actions or <kbd>Esc</kbd>: stop.
Keys, on the rows: <kbd>+</kbd> <kbd>-</kbd> <kbd>0</kbd> zoom, <kbd>&larr;</kbd> <kbd>&rarr;</kbd>
move, <kbd>Shift</kbd> with an arrow: the next action or rank.</p></details>
<div id="tip" role="tooltip" hidden></div>
)html";

}  // namespace pp::detail
