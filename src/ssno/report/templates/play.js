// The page: what is shown, drawn, pressed and linked. Numbers come from play_engine.js.
const page = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const two = page.grid.length === 2, N = page.grid[0], P = page.grid.reduce((a, b) => a * b, 1);
const K = page.input_frames, HORIZON = page.trained_frames, LAST = 2 * HORIZON - 1;
const ROLES = ["truth", "model", "equal"], BUDGET = two ? 40 : 12, STILL = matchMedia("(prefers-reduced-motion: reduce)");
const [LOW, HIGH] = page.range, UNIT = (HIGH - LOW) / (two ? 1024 : 16384), LIMIT = 32767 * UNIT;
const number = (x) => (x >= 100 ? x.toFixed(0) : x >= 1 ? x.toFixed(1) : x >= 0.01 ? x.toFixed(2) : x.toPrecision(2));
const percent = (e) => (Number.isFinite(e) ? (e > 9.99 ? "> 999 %" : `${(100 * e).toFixed(e < 0.1 ? 1 : 0)} %`) : "diverged");
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const most = (field) => field.reduce((a, b) => Math.max(a, Number.isNaN(b) ? Infinity : Math.abs(b)), 0);
const samples = page.samples.map((text) => new Float32Array(decoded(text).buffer));

// Initial states by number; the last one is outside the range of the training data.
const smooth = (() => {
  const out = new Float32Array(P), near = (a, b) => { const d = Math.abs(a - b); return Math.min(d, 1 - d); };
  for (let i = 0; i < P; i++) {
    const x = (two ? Math.floor(i / N) : i) / N, y = two ? (i % N) / N : 0;
    const blob = (a, b) => Math.exp(-(near(x, a) ** 2 + near(y, b) ** 2) / 0.01);
    if (page.equation === "torus") out[i] = 2 * (blob(0.35, 0.5) - blob(0.65, 0.5) + blob(0.5, 0.2) - blob(0.5, 0.8));
    else if (page.equation === "burgers") out[i] = Math.sin(2 * Math.PI * x) + 0.3;
    else out[i] = 0.9 * Math.sin(6 * Math.PI * x) + 0.7 * Math.cos(10 * Math.PI * x);
  }
  return out;
})();
const FACTOR = { ks: 4, burgers: 4, torus: 6 }[page.equation];
const presets = [
  ...samples.map((field, i) => ({ name: `Start ${"ABC"[i]}`, field })),
  { name: { ks: "Two waves", burgers: "One wave", torus: "Four vortices" }[page.equation], field: smooth },
  { name: "Too strong", field: samples[0].map((u) => FACTOR * u), breaks: true },
];

// What runs. Frames of each role are kept, so that one can go back.
const sim = {
  preset: 0, initial: presets[0].field, drawn: false, viscosity: page.viscosity, rung: null, speed: two ? 5 : 10,
  playing: false, shown: 0, frames: { truth: [], model: [], equal: [] }, errors: { model: [], equal: [] },
  ms: { truth: [], model: [], equal: [] }, calibration: {}, ready: false, brush: 1, diverged: false,
};
const LADDER = {
  ks: [[32, 1], [32, 2], [64, 2], [64, 4], [64, 8], [128, 4], [128, 8], [128, 16], [256, 8], [256, 16], [512, 10]].map(([points, steps]) => ({ points, steps })),
  burgers: [64, 128, 256, 512].map((points) => ({ points, cfl: page.truth.cfl })),
  torus: [[16, 0.2], [16, 0.1], [32, 0.1], [32, 0.05], [32, 0.02], [64, 0.1], [64, 0.05], [128, 0.05]].map(([points, step]) => ({ points, step, courant: 2.4 })),
}[page.equation].filter((rung) => rung.points <= page.truth.points);
LADDER.push(page.truth);
let engine, truth, equal, work = null;

function timed(role, piece) {
  const began = performance.now(), result = piece();
  sim.spent[role] = (sim.spent[role] ?? 0) + performance.now() - began;
  return result;
}
function* pieces(role, solver) {
  const all = solver.frame();
  while (!timed(role, () => all.next()).done) yield;
  return timed(role, () => solver.field());
}
// One more frame of each role, in pieces of a few milliseconds.
function* nextFrame() {
  const { frames, errors } = sim, number = frames.truth.length;
  sim.spent = {};
  let exact = sim.initial, forecast = exact, cheap = exact;
  if (number > 0) exact = yield* pieces("truth", truth);
  forecast = cheap = exact;
  if (number >= K) {
    if (number === K) { engine.start(frames.truth); equal.load(frames.truth[K - 1]); }
    forecast = timed("model", () => engine.step());
    yield;
    cheap = yield* pieces("equal", equal);
  }
  for (const [role, ms] of Object.entries(sim.spent)) { sim.ms[role].push(ms); if (sim.ms[role].length > 30) sim.ms[role].shift(); }
  frames.truth.push(exact); frames.model.push(forecast); frames.equal.push(cheap);
  errors.model.push(relativeError(forecast, exact)); errors.equal.push(relativeError(cheap, exact));
}
function restart() {
  sim.frames = { truth: [], model: [], equal: [] };
  sim.errors = { model: [], equal: [] };
  sim.shown = 0;
  truth = engine.solver("truth", page.truth, sim.viscosity);
  equal = engine.solver("equal", LADDER[sim.rung], sim.viscosity);
  truth.load(sim.initial);
  work = null;
  for (const _ of nextFrame()) ;
  dirty = true;
}
function computeTo(frame) {
  while (sim.frames.truth.length <= Math.min(frame, LAST)) {
    work ??= nextFrame();
    while (!work.next().done) ;
    work = null;
  }
}
// Milliseconds per frame of the model and of every rung of the ladder; the finest that costs no more than the model.
function calibrate() {
  const best = (run) => { // of three tries, each long enough for a clock that counts tenths of a millisecond
    let low = Infinity, repeats = 1;
    for (let tries = 0; tries < 3;) {
      const began = performance.now();
      for (let i = 0; i < repeats; i++) run();
      const spent = performance.now() - began;
      if (spent < 2 && repeats < 64) { repeats *= 4; continue; }
      low = Math.min(low, spent / repeats); tries++;
    }
    return low;
  };
  engine.start(Array.from({ length: K }, () => samples[0]));
  const own = best(() => { engine.step(); engine.encode(samples[0]); }), costs = [];
  for (const rung of LADDER) {
    const solver = engine.solver("equal", rung, page.viscosity);
    solver.load(samples[0]);
    costs.push(best(() => { for (const _ of solver.frame()) ; solver.field(); }));
    if (costs[costs.length - 1] > 3 * own) break;
  }
  sim.calibration = { model: own, rungs: costs };
  return Math.max(0, costs.findLastIndex((ms) => ms <= own));
}
function words(rung) {
  if (page.equation === "burgers") return `finite volumes, ${rung.points} cells`;
  const grid = two ? `${rung.points} × ${rung.points}` : rung.points;
  const steps = two ? `steps of at most ${rung.step}` : `${rung.steps} step${rung.steps > 1 ? "s" : ""} per frame`;
  return `spectral, ${grid} points, ${steps}`;
}

// Colours: blue to red through white on light paper, blue to orange through black on dark; both safe for colour-blind eyes.
const dark = matchMedia("(prefers-color-scheme: dark)");
const STOPS = {
  light: ["#053061", "#2f79b5", "#a7cfe4", "#f7f7f7", "#f9bf9f", "#cf5246", "#67001f"],
  dark: ["#9adcff", "#3f9bdc", "#1c4a73", "#0d0f13", "#76421b", "#dd7e3a", "#ffd2a6"],
};
let table, dirty = true, css = {};
function colours() {
  const stops = STOPS[dark.matches ? "dark" : "light"].map((text) => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16)));
  table = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const x = i / 255 * (stops.length - 1), k = Math.min(stops.length - 2, Math.floor(x)), t = x - k;
    const [r, g, b] = [0, 1, 2].map((c) => Math.round(stops[k][c] + t * (stops[k + 1][c] - stops[k][c])));
    table[i] = (255 << 24 | b << 16 | g << 8 | r) >>> 0;
  }
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "soft", "line", "model", "equal", "shade"]) css[name] = style.getPropertyValue(`--${name}`).trim();
  css.truth = css.ink;
  dirty = true;
}
const colour = (value, limit) => (Number.isFinite(value) ? table[Math.max(0, Math.min(255, Math.round(127.5 + 127.5 * value / limit)))] : 0xff808080);

function scale() { // of the picture: the training range, or more if the truth needs it
  return Math.max(0.6 * Math.max(-LOW, HIGH), ...[0, sim.shown].map((i) => Math.min(4 * HIGH, most(sim.frames.truth[i]))));
}
function drawPanels() {
  for (const role of ROLES) {
    const canvas = $(role), rows = two ? N : LAST + 1, limit = two ? scale() : sim.limit;
    if (canvas.width !== N || canvas.height !== rows) { canvas.width = N; canvas.height = rows; }
    const context = canvas.getContext("2d"), image = context.createImageData(N, rows), pixels = new Uint32Array(image.data.buffer);
    if (two) {
      const field = sim.frames[role][sim.shown];
      for (let x = 0; x < N; x++) for (let y = 0; y < N; y++) pixels[(N - 1 - y) * N + x] = colour(field[x * N + y], limit);
    } else {
      for (let row = 0; row <= sim.shown; row++) { const field = sim.frames[role][row]; for (let x = 0; x < N; x++) pixels[row * N + x] = colour(field[x], limit); }
    }
    context.putImageData(image, 0, 0);
  }
}
// A canvas with sharp lines, in CSS pixels.
function sharp(canvas) {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  context.lineJoin = "round";
  return [context, width, height];
}
function polyline(context, points, stroke, width, dash = []) {
  context.beginPath();
  let open = false;
  for (const [x, y] of points) { if (!Number.isFinite(x + y)) { open = false; continue; } if (open) context.lineTo(x, y); else context.moveTo(x, y); open = true; }
  context.strokeStyle = stroke; context.lineWidth = width; context.setLineDash(dash); context.stroke(); context.setLineDash([]);
}
function curveTo(value, height) { return height / 2 - value / sim.limit * (height / 2 - 12); }
function drawCurve() {
  const [context, width, height] = sharp($("curve"));
  polyline(context, [[0, height / 2], [width, height / 2]], css.line, 1);
  const line = (role, thick, dash) => {
    const given = sim.frames[role][sim.shown], waves = page.equation === "ks" && most(given) < Infinity;
    const field = waves ? engine.resampled(given, N, 4 * N) : given, count = field.length; // waves as smooth as they are
    polyline(context, Array.from({ length: count + 1 }, (_, i) => [i / count * width, Math.max(-20, Math.min(height + 20, curveTo(field[i % count], height)))]), css[role], thick, dash);
  };
  line("truth", 5); line("equal", 2, [2, 4]); line("model", 2);
  context.fillStyle = css.soft;
  context.fillText(`${page.field}, ±${number(sim.limit)}`, 6, 14);
  let right = width - 6;
  context.textAlign = "right";
  for (const [role, text] of [["equal", "equal cost"], ["model", "SS-NO"], ["truth", "truth"]]) { context.fillStyle = css[role]; context.fillText(text, right, 14); right -= context.measureText(text).width + 14; }
  context.textAlign = "left";
}
function axes(context, width, height, { low, high, labels, across }) {
  const left = 44, bottom = height - 20, top = 8, right = width - 8;
  const y = (value) => bottom - (Math.log10(Math.max(value, 1e-30)) - low) / (high - low) * (bottom - top);
  context.fillStyle = css.soft; context.textAlign = "right";
  for (let power = Math.ceil(low); power <= high; power += Math.max(1, Math.ceil((high - low) / 5))) {
    polyline(context, [[left, y(10 ** power)], [right, y(10 ** power)]], css.line, 1);
    context.fillText(labels(power), left - 6, y(10 ** power) + 4);
  }
  context.textAlign = "right"; context.fillText(across, right, height - 5); context.textAlign = "left";
  return { left, right, top, bottom, y };
}
function drawErrors() {
  const [context, width, height] = sharp($("errors"));
  const { left, right, top, bottom, y } = axes(context, width, height, { low: -4, high: 1, labels: (p) => (p < 0 ? `1e${p}` : 10 ** p), across: "time" });
  const x = (frame) => left + frame / LAST * (right - left), clip = (e) => Math.max(1e-4, Math.min(10, Number.isFinite(e) ? e : 10));
  context.fillStyle = css.shade;
  context.fillRect(left, top, x(K - 1) - left, bottom - top);
  context.fillRect(x(HORIZON - 1), top, right - x(HORIZON - 1), bottom - top);
  context.fillStyle = css.soft;
  context.fillText("input", left + 3, top + 11); context.fillText("beyond training", x(HORIZON - 1) + 5, top + 11);
  for (const role of ["equal", "model"]) {
    polyline(context, sim.errors[role].slice(0, sim.shown + 1).map((e, i) => [x(i), i < K ? NaN : y(clip(e))]), css[role], 2, role === "equal" ? [2, 4] : []);
  }
}
function drawSpectrum() {
  const [context, width, height] = sharp($("spectrum"));
  const curves = ROLES.map((role) => [role, engine.spectrum(sim.frames[role][sim.shown])]);
  const peak = Math.max(...curves[0][1]), high = Math.ceil(Math.log10(Math.max(peak, 1e-20)) + 0.3), low = high - (two ? 8 : 10);
  const { left, right, y, bottom } = axes(context, width, height, { low, high, labels: (p) => `1e${p}`, across: "wavenumber" });
  const x = (k) => left + Math.log(k) / Math.log(N / 2) * (right - left);
  curves.forEach(([role, power]) => polyline(context, Array.from({ length: N / 2 - 1 }, (_, i) => [x(i + 1), Math.min(bottom, y(power[i + 1]))]), css[role], role === "truth" ? 4 : 2, role === "equal" ? [2, 4] : []));
}
function note() {
  const large = Math.max(...sim.frames.truth.slice(0, sim.shown + 1).map(most)), lost = most(sim.frames.model[sim.shown]) > 10 * Math.max(HIGH, -LOW);
  const range = `${number(Math.abs(LOW)) === "0" ? "" : "−"}${number(Math.abs(LOW))} to ${number(HIGH)}`, parts = [];
  if (sim.viscosity !== page.viscosity) parts.push(`The solver has viscosity ${sim.viscosity.toPrecision(2)}; the model knows only ${page.viscosity} and cannot follow.`);
  if (lost) parts.push("The model has diverged.");
  if (large > 1.05 * Math.max(HIGH, -LOW)) parts.push(`Values reach ${number(large)}, but training saw ${range}: a network has no reason to be right outside of what it saw.`);
  else if (!sim.drawn && presets[sim.preset].breaks) parts.push(`This start is ${FACTOR} times stronger than the data: outside of what the model saw, nothing makes it right.`);
  if (sim.shown >= HORIZON) parts.push(`Beyond the training horizon (t > ${number(page.first_time + (HORIZON - 1) * page.dt)}): the model never saw what comes here.`);
  const warn = parts.length > 0;
  if (!warn) parts.push(sim.shown < K ? `Input: the first ${K} frames come from the solver.` : "The model runs on its own frames, the solver beside it.");
  $("note").className = warn ? "warn" : "";
  if ($("note").textContent !== parts.join(" ")) $("note").textContent = parts.join(" ");
}
function draw() {
  if (!two) { sim.limit = Math.max(sim.shown ? sim.limit ?? 0 : 0, 1.15 * most(sim.frames.truth[sim.shown]), 0.25 * HIGH); drawCurve(); }
  drawPanels(); drawErrors(); drawSpectrum(); note();
  const t = page.first_time + sim.shown * page.dt;
  $("time").textContent = `t = ${t.toFixed(page.dt < 1 ? 2 : 0)} · frame ${sim.shown} of ${LAST}`;
  const alone = sim.shown >= K;
  for (const role of ["model", "equal"]) {
    const text = alone ? percent(sim.errors[role][sim.shown]) : "";
    $(`${role}-error`).textContent = alone ? `error ${text}` : "input"; $(`${role}-now`).textContent = alone ? text : "–";
  }
  $("truth-now").textContent = "–";
  for (const role of ROLES) $(`${role}-ms`).textContent = sim.ms[role].length ? number(median(sim.ms[role])) : "–";
  $("play").textContent = sim.playing ? "❚❚" : "▶";
  $("play").setAttribute("aria-label", sim.playing ? "Pause" : "Play");
  document.querySelectorAll("#presets button").forEach((button, i) => button.setAttribute("aria-pressed", String(!sim.drawn && i === sim.preset)));
  $("speed-text").textContent = `${sim.speed} frames/s`;
  $("viscosity-text").textContent = `${Number(sim.viscosity.toPrecision(3))}${sim.viscosity === page.viscosity ? " (as trained)" : ""}`;
}
function explain() {
  $("truth-how").textContent = words(page.truth);
  $("model-how").textContent = `${page.model.before + page.model.after} blocks, ${page.model.h} channels, ${two ? `${N} × ${N}` : N} points, ${page.dt} time units per frame`;
  $("equal-how").textContent = words(LADDER[sim.rung]);
  $("verdict").textContent = sim.rung === LADDER.length - 1
    ? "Here the solver that made the data costs no more than the model. So the third panel is that same solver, started from the model's newest input frame: for this equation and grid the network saves no time, and what you see is how well it learned the dynamics."
    : "Both clocks are medians of what was measured in this page, on one core; the solver is ours and runs in the same WebAssembly as the model.";
}

// Time: frames are computed ahead in pieces, and shown when they are due.
let due = 0, seen = 0, since = 0, held = 0;
function tick(now) {
  requestAnimationFrame(tick);
  if (sim.playing) {
    const until = performance.now() + BUDGET, ahead = Math.min(LAST, sim.shown + Math.max(2, Math.ceil(sim.speed / 30)));
    while (sim.frames.truth.length <= ahead && performance.now() < until) { work ??= nextFrame(); if (work.next().done) work = null; }
    if (now >= due) {
      if (sim.shown < LAST && sim.frames.truth.length > sim.shown + 1) { sim.shown++; seen++; due = Math.max(due + 1000 / sim.speed, now - 50); dirty = true; held = now; }
      else if (sim.shown === LAST && now - held > 2500) { if (!sim.drawn && sim.preset < samples.length) choose((sim.preset + 1) % samples.length); else restart(); }
    }
  }
  if (now - since > 500) { $("rate").textContent = !sim.playing ? "paused" : sim.shown === LAST ? "end; begins again" : `${(seen * 1000 / (now - since)).toFixed(0)} frames/s`; seen = 0; since = now; }
  if (dirty) { dirty = false; draw(); }
}
function setPlaying(playing) { sim.playing = playing; dirty = true; due = performance.now(); if (!playing) remember(); }
function choose(index) { sim.preset = index; sim.drawn = false; sim.initial = presets[index].field; sim.limit = 0; restart(); remember(); }
function go(frame) { if (sim.playing) setPlaying(false); computeTo(frame); sim.shown = Math.max(0, Math.min(LAST, frame)); dirty = true; remember(); }

// Drawing: the initial state changes under the finger; all of it is kept as whole multiples of UNIT, as in the link.
const snapped = (field) => field.map((u) => Math.round(Math.max(-LIMIT, Math.min(LIMIT, u)) / UNIT) * UNIT);
function stroke(canvas, event, from) {
  const box = canvas.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * N, y = (event.clientY - box.top) / box.height;
  const field = Float64Array.from(sim.initial), circle = (a, b) => { const d = Math.abs(a - b) % N; return Math.min(d, N - d); };
  const steps = from ? Math.max(1, Math.ceil(Math.abs(x - from[0]))) : 1;
  for (let s = 1; s <= steps; s++) {
    const at = from ? from[0] + (x - from[0]) * s / steps : x, level = from ? from[1] + (y - from[1]) * s / steps : y;
    for (let i = 0; i < P; i++) {
      if (two) field[i] += sim.brush * 0.12 * HIGH / steps * Math.exp(-(circle(Math.floor(i / N), at) ** 2 + circle(i % N, N * (1 - level)) ** 2) / 18);
      else { const wanted = (box.height / 2 - level * box.height) / (box.height / 2 - 12) * sim.limit; field[i] += (wanted - field[i]) * Math.exp(-(circle(i, at) ** 2) / 6); }
    }
  }
  if (two) { const mean = field.reduce((a, b) => a + b) / P; for (let i = 0; i < P; i++) field[i] -= mean; }
  sim.initial = Float32Array.from(snapped(field));
  sim.drawn = true;
  restart();
  return [x, y];
}
function drawable(canvas) {
  let from = null, resume = false;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    document.querySelectorAll(".hint").forEach((hint) => hint.classList.add("gone"));
    resume = sim.playing || !STILL.matches; sim.playing = false;
    from = stroke(canvas, event, null);
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => { if (from) from = stroke(canvas, event, from); });
  const end = () => { if (from) { from = null; setPlaying(resume); remember(); } };
  canvas.addEventListener("pointerup", end); canvas.addEventListener("pointercancel", end);
}

// The link: preset or drawn state, viscosity, frame, and which solver raced, so that it shows the same numbers again.
const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
async function packed(field) {
  const whole = Int16Array.from(field, (u) => Math.round(u / UNIT)), changes = new Uint8Array(2 * P);
  for (let i = 0, before = 0; i < P; before = whole[i], i++) { const c = (whole[i] - before) & 65535; changes[i] = c & 255; changes[P + i] = c >> 8; }
  const small = await through(changes, new CompressionStream("deflate-raw"));
  return btoa(Array.from(small, (b) => String.fromCharCode(b)).join("")).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
}
async function unpacked(text) {
  const changes = await through(decoded(text.replace(/-/g, "+").replace(/_/g, "/")), new DecompressionStream("deflate-raw"));
  if (changes.length !== 2 * P) throw new Error("The state in the link does not fit this page.");
  const field = new Float32Array(P);
  for (let i = 0, value = 0; i < P; i++) { value = (value + (changes[i] | changes[P + i] << 8)) << 16 >> 16; field[i] = value * UNIT; }
  return field;
}
let latest = 0, written = "";
async function remember() {
  const turn = ++latest, parts = [sim.drawn ? `d=${await packed(sim.initial)}` : `p=${sim.preset + 1}`];
  if (sim.viscosity !== page.viscosity) parts.push(`v=${sim.viscosity}`);
  if (!sim.playing) parts.push(`f=${sim.shown}`, `e=${sim.rung}`);
  if (turn === latest) { written = `#${parts.join("&")}`; history.replaceState(null, "", written); }
}
async function recall() {
  const given = new URLSearchParams(location.hash.slice(1)), preset = parseInt(given.get("p"), 10) - 1, rung = parseInt(given.get("e"), 10);
  const frame = parseInt(given.get("f"), 10), viscosity = parseFloat(given.get("v"));
  if (preset >= 0 && preset < presets.length) Object.assign(sim, { preset, drawn: false, initial: presets[preset].field });
  if (given.has("d")) {
    try { sim.initial = await unpacked(given.get("d")); sim.drawn = true; } catch { sim.drawn = false; }
  }
  sim.viscosity = viscosity > page.viscosity / 8 && viscosity < page.viscosity * 8 ? viscosity : page.viscosity;
  $("viscosity").value = Math.log2(sim.viscosity / page.viscosity);
  if (rung >= 0 && rung < LADDER.length) sim.rung = rung;
  sim.limit = 0;
  restart(); explain();
  if (frame >= 0) { for (let i = 0; i <= Math.min(frame, LAST); i++) { computeTo(i); sim.shown = i; if (!two) sim.limit = Math.max(sim.limit, 1.15 * most(sim.frames.truth[i]), 0.25 * HIGH); } sim.playing = false; }
  else sim.playing = !STILL.matches;
  dirty = true;
}
async function copyLink() {
  await remember();
  const button = $("link"), address = location.href;
  try { await navigator.clipboard.writeText(address); button.textContent = "Copied"; } catch { button.textContent = "In the address bar"; }
  setTimeout(() => { button.textContent = "Copy link"; }, 1500);
}

function listen() {
  presets.forEach((preset, i) => { const button = document.createElement("button"); button.textContent = preset.name; button.onclick = () => { choose(i); setPlaying(!STILL.matches || sim.playing); }; $("presets").append(button); });
  $("play").onclick = () => setPlaying(!sim.playing);
  $("restart").onclick = () => { restart(); setPlaying(true); };
  $("blank").onclick = () => { sim.initial = new Float32Array(P); sim.drawn = true; sim.limit = 0; restart(); setPlaying(false); };
  $("link").onclick = copyLink;
  if (two) $("sign").onclick = () => { sim.brush = -sim.brush; $("sign").textContent = `Brush: ${sim.brush > 0 ? "+" : "−"}`; $("sign").setAttribute("aria-pressed", String(sim.brush < 0)); };
  $("speed").max = two ? 20 : 60; $("speed").value = sim.speed;
  $("speed").oninput = () => { sim.speed = Number($("speed").value); dirty = true; };
  $("viscosity").oninput = () => { const power = Number($("viscosity").value); sim.viscosity = power === 0 ? page.viscosity : page.viscosity * 2 ** power; restart(); remember(); };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const slider = event.target.type === "range", key = event.key;
    if (key === " " && event.target.tagName !== "BUTTON") setPlaying(!sim.playing);
    else if (key === "ArrowRight" && !slider) go(sim.shown + 1);
    else if (key === "ArrowLeft" && !slider) go(sim.shown - 1);
    else if (key === "r") { restart(); setPlaying(true); }
    else if (key === "c") copyLink();
    else if (key >= "1" && key <= String(presets.length)) choose(Number(key) - 1);
    else return;
    event.preventDefault();
  });
  (two ? ROLES.map($) : [$("curve")]).forEach(drawable);
  dark.addEventListener("change", colours);
  addEventListener("resize", () => { dirty = true; });
  addEventListener("hashchange", () => { if (location.hash !== written) recall(); });
}

(async () => {
  try {
    engine = await Engine.create(page);
    colours();
    sim.rung = calibrate();
    listen();
    await recall();
    sim.ready = true;
    document.body.dataset.ready = "true";
    due = performance.now();
    requestAnimationFrame(tick);
  } catch (error) { $("note").className = "warn"; $("note").textContent = `This page cannot run here: ${error.message}`; throw error; }
})();
window.ssno = { page, sim, presets, computeTo, get engine() { return engine; }, recall, remember };
