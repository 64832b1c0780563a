"use strict";
/* Draws the rows. Text from models reaches the page by textContent, never as markup. */
const rows = JSON.parse(document.getElementById("data").textContent);
const ops = rows.ops, groups = rows.groups;
const $ = (id) => document.getElementById(id);
const PALETTE = ["#2a78d6", "#eb6834", "#1baf7a", "#c98500", "#d55181", "#7a5cd0", "#4c8a00", "#d03b3b"];
const colour = (d) => PALETTE[d % PALETTE.length];
const WEBGL = (() => {
  const context = document.createElement("canvas").getContext("webgl");
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return context !== null;
})();
const POINTS = WEBGL ? "scattergl" : "scatter";
const PLAIN = { displaylogo: false, displayModeBar: false, responsive: true };

/* ---- text ---- */
const number = (v, digits = 4) => v === null || v === undefined ? "–" : Number(v.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits, useGrouping: false });
const ms = (s, digits) => s === null || s === undefined ? "–" : number(s * 1e3, digits) + " ms";
const change = (s) => s === null || s === undefined ? "not allowed" : (s >= 0 ? "+" : "−") + ms(Math.abs(s), 3);
function bytes(b) {
  if (b === null || b === undefined) return "–";
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) if (b >= size) return number(b / size, 3) + " " + unit;
  return b + " B";
}
/* Plotly reads a little markup in labels; this makes it show any text as it is. */
const plain = (text, most = 60) => (text.length > most ? text.slice(0, most - 1) + "…" : text)
  .replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}
/* Columns: [heading, function of a row, whether it is a number]. */
function table(target, columns, items, mark) {
  const head = element("thead"), line = element("tr"), body = element("tbody");
  for (const [heading, , right] of columns) line.append(element("th", heading, right ? "number" : ""));
  head.append(line);
  for (const item of items) {
    const made = element("tr", undefined, mark && mark(item) ? "chosen" : "");
    for (const [, get, right] of columns) made.append(element("td", get(item), right ? "number" : ""));
    body.append(made);
  }
  target.replaceChildren(head, body);
}
const styles = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
function theme(layout) {
  const axis = { gridcolor: styles("--line"), zerolinecolor: styles("--line"), linecolor: styles("--line") };
  const themed = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: styles("--ink"), size: 12 }, ...layout };
  for (const key of ["xaxis", "yaxis"]) themed[key] = { ...axis, ...layout[key] };
  return themed;
}

/* ---- head ---- */
$("model").textContent = rows.title;
$("verdict").textContent = rows.verdict || "A placement without a measured verdict.";
const labels = rows.devices.map((d) => d.label);
const chosen = rows.candidates.find((c) => c.chosen);
const single = rows.candidates.find((c) => c.best_single);
const tiles = [
  ["latency (measured median)", chosen ? ms(chosen.measured_s) : "–"],
  ["best single device (measured)", single ? ms(single.measured_s) : "–"],
  [`predicted (${rows.cost_source} costs)`, ms(rows.predicted_s)],
  [`lower bound (predicted; ${rows.bound.name})`, ms(rows.bound.seconds)],
  ["ops", String(ops.name.length)],
  ["sub-graphs", String(rows.subgraphs.length)],
  ["engine, execution model", [rows.executor, rows.execution_model].filter(Boolean).join(", ")],
];
for (const [label, value] of tiles) {
  const tile = element("div", undefined, "tile");
  tile.append(element("b", value), element("span", label));
  $("tiles").append(tile);
}

/* ---- candidates ---- */
function drawCandidates() {
  const shown = rows.candidates.filter((c) => c.measured_s !== null).reverse();
  if (!shown.length) { $("candidates").textContent = "No candidate was measured."; return; }
  const names = shown.map((c) => plain(c.name, 48) + (c.chosen ? " ★" : ""));
  const at = shown.map((_, k) => k);
  const lines = [[rows.bound.seconds, "lower bound", styles("--soft")]];
  if (single) lines.push([single.measured_s, "best single device", "#d03b3b"]);
  Plotly.react("candidates", [{
    type: "bar", orientation: "h", y: at, x: shown.map((c) => c.measured_s * 1e3),
    marker: { color: shown.map((c) => c.chosen ? styles("--accent") : "#8a97a8") },
    error_x: { type: "data", symmetric: false, color: styles("--ink"), thickness: 1.5,
      array: shown.map((c) => (c.interval_s[1] - c.measured_s) * 1e3), arrayminus: shown.map((c) => (c.measured_s - c.interval_s[0]) * 1e3) },
    text: shown.map((c) => `${number(c.measured_s * 1e3)} ms, n = ${c.samples}${c.stage === "screening" ? " (screening)" : ""}`),
    textposition: "inside", insidetextanchor: "start", insidetextfont: { color: "#ffffff" }, hoverinfo: "none",
  }], theme({
    height: 70 + 34 * shown.length, margin: { l: 10, r: 20, t: 24, b: 40 }, bargap: 0.25, showlegend: false,
    xaxis: { title: { text: "milliseconds per request" }, rangemode: "tozero" },
    yaxis: { tickvals: at, ticktext: names, automargin: true, fixedrange: true },
    shapes: lines.map(([s, , color]) => ({ type: "line", x0: s * 1e3, x1: s * 1e3, y0: 0, y1: 1, yref: "paper", line: { color, width: 2, dash: "dash" } })),
    annotations: lines.map(([s, text, color], k) => ({ x: s * 1e3, y: 1, yref: "paper", yanchor: "bottom", xanchor: k ? "left" : "right", text, showarrow: false, font: { color, size: 11 } })),
  }), PLAIN);
}
table($("candidate-table"), [
  ["candidate", (c) => c.name], ["engine", (c) => c.executor], ["status", (c) => c.status.replaceAll("_", " ") + (c.detail ? ": " + c.detail : "")],
  ["measured", (c) => ms(c.measured_s), true],
  ["95 % interval", (c) => c.interval_s ? c.interval_s.map((s) => ms(s)).join(" to ") : "–", true],
  ["n", (c) => String(c.samples), true], ["predicted", (c) => ms(c.predicted_s), true],
  ["vs best single", (c) => c.ratio ? ((c.ratio[0] - 1) * 100).toFixed(1) + " %" : "–", true],
  ["sub-graphs", (c) => String(c.subgraphs ?? "–"), true], ["moved", (c) => bytes(c.moved_bytes), true],
], rows.candidates, (c) => c.chosen);

/* ---- one op ---- */
function describe(op, short) {
  const made = document.createDocumentFragment();
  made.append(element("h3", short ? ops.name[op].slice(0, 300) : ops.name[op]));
  made.append(element("p", `${ops.type[op]}  ${ops.shapes[op]}`));
  made.append(element("p", `On ${labels[ops.device[op]]}: ${ops.why[op]}`));
  const costs = element("table");
  table(costs, [
    ["device", (d) => labels[d] + (d === ops.device[op] ? " ★" : "")],
    [`op (${rows.cost_source})`, (d) => ops.seconds[op][d] === null ? "not supported" : ms(ops.seconds[op][d]), true],
    ["moved (predicted)", (d) => d === ops.device[op] ? "" : change(ops.unit_moves_s[ops.unit[op]][d]), true],
  ], labels.map((_, d) => d));
  made.append(costs);
  const size = groups.size[ops.unit[op]];
  made.append(element("p", `${number(ops.weight[op] * 100, 3)} % of the op times` + (size > 1 ? `; moves with ${size - 1} other op${size > 2 ? "s" : ""}` : ""), "note"));
  return made;
}
function showTip(op, event, extra) {
  const tip = $("tip");
  tip.replaceChildren(describe(op, true));
  if (extra) tip.append(element("p", extra));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const x = event.clientX + 16, y = event.clientY + 16;
  tip.style.left = Math.max(4, x + box.width > innerWidth ? x - box.width - 32 : x) + "px";
  tip.style.top = Math.max(4, y + box.height > innerHeight ? innerHeight - box.height - 8 : y) + "px";
}
const hideTip = () => { $("tip").hidden = true; };

/* ---- graph ---- */
let collapsed = false, picked = -1;
const place = () => collapsed ? groups : ops;
const nodeOf = (op) => collapsed ? ops.unit[op] : op;
const opOf = (node) => collapsed ? groups.head[node] : node;
function edgeTraces(drawn) {
  const within = labels.map(() => [[], []]), across = [[], []];
  for (const [device, ...points] of drawn.edge) {
    const [xs, ys] = device < 0 ? across : within[device];
    for (let k = 0; k < points.length; k += 2) { xs.push(points[k]); ys.push(points[k + 1]); }
    xs.push(null); ys.push(null);
  }
  const line = ([x, y], color, width, opacity) => ({ type: POINTS, mode: "lines", x, y, line: { color, width }, opacity, hoverinfo: "skip" });
  return [...within.map((xy, d) => line(xy, colour(d), 1, 0.45)), line(across, styles("--ink"), 2, 0.9)];
}
function nodeTrace(drawn) {
  const count = drawn.x.length, top = Math.max(...ops.weight, 1e-12);
  const size = drawn.x.map((_, n) => collapsed ? Math.min(28, 9 + 3 * Math.sqrt(groups.size[n])) : 8 + 12 * Math.sqrt(ops.weight[n] / top));
  return { type: POINTS, mode: "markers", x: drawn.x, y: drawn.y, hoverinfo: "none",
    customdata: Array.from({ length: count }, (_, n) => n),
    marker: { size, color: drawn.device.map(colour), line: { width: 1, color: styles("--card") }, opacity: 1 } };
}
function ringTrace(drawn) {
  const at = picked < 0 ? [] : [nodeOf(picked)];
  return { type: POINTS, mode: "markers", x: at.map((n) => drawn.x[n]), y: at.map((n) => drawn.y[n]), hoverinfo: "skip",
    marker: { size: 30, symbol: "circle-open", color: styles("--ink"), line: { width: 3, color: styles("--ink") } } };
}
function extent(values, least) {
  let low = Infinity, high = -Infinity;
  for (const v of values) { if (v < low) low = v; if (v > high) high = v; }
  const pad = Math.max((high - low) * 0.04, (least - (high - low)) / 2, 0.5);
  return [low - pad, high + pad];
}
let range = null;
/* The whole graph if that can be seen; of a long one, its beginning. */
const fitted = () => ({ x: extent(place().x, 4), y: extent(place().y, 6) });
function drawGraph(keep) {
  const drawn = place();
  if (!keep || !range) range = fitted();
  Plotly.react("graph", [...edgeTraces(drawn), nodeTrace(drawn), ringTrace(drawn)], theme({
    showlegend: false, dragmode: "pan", hovermode: "closest", hoverdistance: 12, margin: { l: 0, r: 0, t: 0, b: 0 },
    xaxis: { visible: false, range: range.x.slice() }, yaxis: { visible: false, range: range.y.slice() },
  }), { ...PLAIN, scrollZoom: true });
}
function pick(op, zoom) {
  picked = op;
  $("detail").replaceChildren(describe(op, false));
  if (zoom) {
    const drawn = place(), node = nodeOf(op), box = $("graph").getBoundingClientRect();
    const half = 8, tall = half * box.height / box.width;
    range = { x: [drawn.x[node] - half, drawn.x[node] + half], y: [drawn.y[node] - tall, drawn.y[node] + tall] };
  }
  drawGraph(true);
}
for (const [d, label] of labels.entries()) {
  const key = element("span", undefined, "key"), dot = element("i");
  dot.style.background = colour(d);
  key.append(dot, element("span", `${label}, ${rows.devices[d].ops} ops`));
  $("legend").append(key);
}
function listen(id, opAt, note) {
  const chart = $(id);
  chart.on("plotly_hover", (e) => { const op = opAt(e.points[0]); if (op !== undefined) showTip(op, e.event, note && note(e.points[0])); });
  chart.on("plotly_unhover", hideTip);
  chart.on("plotly_click", (e) => { const op = opAt(e.points[0]); if (op !== undefined) pick(op, id !== "graph"); });
}
let hits = [], hit = 0;
const lowered = ops.name.map((name, k) => (name + "\n" + ops.type[k]).toLowerCase());
$("search").addEventListener("input", () => {
  const wanted = $("search").value.trim().toLowerCase();
  hits = []; hit = 0;
  if (wanted) for (let k = 0; k < lowered.length; k++) if (lowered[k].includes(wanted)) hits.push(k);
  $("found").textContent = wanted ? `${hits.length} found; Enter goes to the next` : "";
  $("matches").replaceChildren(...hits.slice(0, 12).map((op) => {
    const button = element("button", ops.name[op].slice(0, 200));
    button.type = "button";
    button.title = ops.name[op].slice(0, 1000);
    button.addEventListener("click", () => pick(op, true));
    return button;
  }));
});
$("search").addEventListener("keydown", (e) => {
  if (e.key === "Enter" && hits.length) pick(hits[hit++ % hits.length], true);
});
$("collapse").addEventListener("change", () => { collapsed = $("collapse").checked; drawGraph(false); });
$("fit").addEventListener("click", () => drawGraph(false));
if (!groups.size.some((size) => size > 1)) $("collapse").disabled = true;

/* ---- timeline ---- */
function drawTimeline() {
  const lanes = rows.timeline.lanes;
  const critical = new Set(rows.timeline.critical_path || []);
  $("timeline-note").textContent = rows.timeline.missing ||
    `Predicted from ${rows.cost_source} costs under the ${rows.execution_model} model: ${ms(rows.timeline.seconds)}. The thin line below a device marks ops that the latency hangs on.`;
  if (!lanes.length) { $("timeline").hidden = true; return; }
  const traces = lanes.map((lane, row) => {
    const x = [], y = [], customdata = [];
    lane.op.forEach((op, k) => {
      const a = lane.start_s[k] * 1e3, b = lane.end_s[k] * 1e3;
      // The middle is a point of its own, so that pointing at a long span finds it.
      x.push(a, (a + b) / 2, b, null); y.push(row, row, row, null);
      for (let i = 0; i < 4; i++) customdata.push([op, a, b]);
    });
    return { type: "scatter", mode: "lines", x, y, customdata, line: { width: 16, color: colour(lane.device) }, opacity: row < labels.length ? 1 : 0.6, hoverinfo: "none" };
  });
  const x = [], y = [];
  lanes.slice(0, labels.length).forEach((lane, row) => lane.op.forEach((op, k) => {
    if (rows.execution_model === "dataflow" && critical.has(op)) { x.push(lane.start_s[k] * 1e3, lane.end_s[k] * 1e3, null); y.push(row + 0.36, row + 0.36, null); }
  }));
  if (x.length) traces.push({ type: "scatter", mode: "lines", x, y, line: { width: 3, color: styles("--ink") }, hoverinfo: "skip" });
  Plotly.react("timeline", traces, theme({
    height: 90 + 44 * lanes.length, margin: { l: 10, r: 20, t: 10, b: 44 }, showlegend: false, dragmode: "pan", hovermode: "closest",
    xaxis: { title: { text: "milliseconds (predicted)" }, zeroline: false },
    yaxis: { tickvals: lanes.map((_, k) => k), ticktext: lanes.map((l) => plain(l.label)), automargin: true, range: [lanes.length - 0.4, -0.6], fixedrange: true, zeroline: false },
  }), { ...PLAIN, scrollZoom: true });
}

/* ---- convergence ---- */
function drawConvergence() {
  if (!rows.convergence.length) { $("convergence").textContent = "No search left a trace: the placers that ran give one answer each."; return; }
  const key = $("axis").value;
  Plotly.react("convergence", rows.convergence.map((c, k) => ({
    type: "scatter", mode: "lines+markers", name: plain(c.placer, 40), x: c[key], y: c.best_s.map((s) => s * 1e3),
    line: { shape: "hv", color: colour(k) }, hovertemplate: "%{y:.4g} ms at %{x:.4g}<extra>%{fullData.name}</extra>",
  })), theme({
    height: 320, margin: { l: 60, r: 20, t: 10, b: 44 }, showlegend: true,
    xaxis: { title: { text: key === "evaluations" ? "placements valued" : "seconds of search" } },
    yaxis: { title: { text: "best so far, ms" } },
  }), PLAIN);
}
$("axis").addEventListener("change", drawConvergence);
table($("placers"), [
  ["placer", (p) => p.placer], ["parameters", (p) => Object.entries(p.parameters).map(([k, v]) => `${k}=${v}`).join(", ")],
  ["status", (p) => p.status], ["predicted", (p) => ms(p.predicted_s), true], ["bound", (p) => p.bound_s ? ms(p.bound_s) : "–", true],
  ["evaluations", (p) => String(p.evaluations), true], ["took", (p) => number(p.elapsed_s, 3) + " s", true], ["", (p) => p.detail],
], rows.placers);

/* ---- tables ---- */
table($("devices"), [
  ["device", (d) => d.label], ["hardware", (d) => d.full_name], ["precision", (d) => d.precision], ["ops", (d) => String(d.ops), true],
  ["busy (predicted)", (d) => ms(d.busy_s), true], ["idle (predicted)", (d) => ms(d.idle_s), true],
  ["sent", (d) => bytes(d.sent_bytes), true], ["received", (d) => bytes(d.received_bytes), true],
  ["peak memory (predicted)", (d) => bytes(d.peak_bytes), true], ["limit", (d) => d.limit_bytes === null ? "none known" : bytes(d.limit_bytes), true],
], rows.devices);
const b = rows.boundaries;
$("boundary-note").textContent = `${rows.subgraphs.length} sub-graphs; ${b.count} crossings move ${bytes(b.bytes)} in ${ms(b.seconds)} (predicted).` +
  (b.count > b.dearest.length ? ` The ${b.dearest.length} dearest are listed.` : "");
table($("subgraphs"), [
  ["device", (s) => labels[s.device]], ["ops", (s) => String(s.ops), true], ["first op", (s) => ops.name[s.first].slice(0, 120)],
  ["op times", (s) => ms(s.seconds), true], ["weights", (s) => bytes(s.weight_bytes), true],
], rows.subgraphs.slice(0, 500));
table($("boundaries"), [
  ["tensor of", (c) => ops.name[c.producer].slice(0, 120)], ["from", (c) => labels[c.source]], ["to", (c) => labels[c.target]],
  ["size", (c) => bytes(c.bytes), true], ["time (predicted)", (c) => ms(c.seconds), true],
], b.dearest);
$("reproduce").textContent = `Graph ${rows.fingerprint}` + (rows.seed === null ? "" : `, seed ${rows.seed}`) +
  (rows.placers.length ? `; placers ${rows.placers.map((p) => p.placer).join(", ")}` : "") + ".";
table($("environment"), [["what", (e) => e[0]], ["value", (e) => e[1]]], [
  ...Object.entries(rows.environment), ...Object.entries(rows.costs),
  ...rows.devices.flatMap((d) => Object.entries(d.properties).map(([k, v]) => [`${d.label}: ${k}`, v])),
]);

/* ---- light and dark; what is not in sight is drawn when it comes into sight ---- */
const charts = { candidates: drawCandidates, graph: () => drawGraph(true), timeline: drawTimeline, convergence: drawConvergence };
const drawnOnce = new Set();
function draw(id) {
  charts[id]();
  if (drawnOnce.has(id)) return;
  drawnOnce.add(id);
  if (id === "graph") {
    listen("graph", (p) => p.customdata === undefined ? undefined : opOf(p.customdata), (p) => collapsed && groups.size[p.customdata] > 1 ? `Heaviest of ${groups.size[p.customdata]} ops that move together.` : "");
    $("graph").on("plotly_relayout", (e) => { const l = $("graph").layout; range = { x: l.xaxis.range.slice(), y: l.yaxis.range.slice() }; });
  }
  if (id === "timeline" && rows.timeline.lanes.length) listen("timeline", (p) => p.customdata?.[0], (p) => `${number(p.customdata[1])} to ${number(p.customdata[2])} ms (predicted)` + (p.curveNumber >= labels.length ? ", on the link" : ""));
}
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target.id); }
}, { rootMargin: "300px" });
const redraw = () => { for (const id of drawnOnce) charts[id](); };
$("theme").addEventListener("click", () => {
  const dark = styles("color-scheme") === "dark" || getComputedStyle(document.documentElement).colorScheme === "dark";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
document.documentElement.addEventListener("mouseleave", hideTip);
addEventListener("scroll", hideTip, { passive: true });
for (const id of ["candidates", "timeline", "convergence"]) seen.observe($(id));
draw("graph");
document.documentElement.dataset.ready = Math.round(performance.now());
