// The numbers of the page: WebAssembly (engine.c), the model in it, the solvers in it. Nothing here touches the page.
function sha256(bytes) {
  const roots = [], primes = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
  const fraction = (x) => ((x - Math.floor(x)) * 4294967296) >>> 0;
  for (const p of primes) roots.push(fraction(Math.cbrt(p)));
  const hash = primes.slice(0, 8).map((p) => fraction(Math.sqrt(p)));
  const padded = new Uint8Array(((bytes.length + 8 >> 6) + 1) << 6), view = new DataView(padded.buffer);
  padded.set(bytes); padded[bytes.length] = 128;
  view.setUint32(padded.length - 4, bytes.length << 3); view.setUint32(padded.length - 8, bytes.length / 536870912);
  const w = new Uint32Array(64), turn = (x, n) => (x >>> n) | (x << (32 - n));
  for (let start = 0; start < padded.length; start += 64) {
    for (let i = 0; i < 64; i++) {
      if (i < 16) { w[i] = view.getUint32(start + 4 * i); continue; }
      const a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >>> 3) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >>> 10);
    }
    let [a, b, c, d, e, f, g, h] = hash;
    for (let i = 0; i < 64; i++) {
      const t = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (e & f ^ ~e & g) + roots[i] + w[i]) | 0;
      const u = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + (a & b ^ a & c ^ b & c)) | 0;
      h = g; g = f; f = e; e = (d + t) | 0; d = c; c = b; b = a; a = (t + u) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((x, i) => { hash[i] = (hash[i] + x) >>> 0; });
  }
  return hash.map((x) => x.toString(16).padStart(8, "0")).join("");
}

const decoded = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

class Engine {
  static async create(page) {
    const bytes = decoded(page.wasm);
    if (sha256(bytes) !== page.wasm_sha256) throw new Error("The WebAssembly in this page is damaged: its SHA-256 differs.");
    return new Engine(page, (await WebAssembly.instantiate(bytes)).instance.exports);
  }
  constructor(page, wasm) {
    this.wasm = wasm;
    this.page = page;
    this.grid = page.grid;
    this.points = page.grid.reduce((a, b) => a * b, 1);
    this.transforms = new Map();
    this.solvers = new Map();
    this.loadModel();
  }
  f32(at, count) { return new Float32Array(this.wasm.memory.buffer, at, count); }
  f64(at, count) { return new Float64Array(this.wasm.memory.buffer, at, count); }
  room32(values) {
    const count = values.length ?? values, at = this.wasm.room(4 * count);
    if (values.length !== undefined) this.f32(at, count).set(values);
    return at;
  }
  room64(values) {
    const count = values.length ?? values, at = this.wasm.room(8 * count);
    if (values.length !== undefined) this.f64(at, count).set(values);
    return at;
  }
  struct(values) {
    const at = this.wasm.room(4 * values.length);
    new Int32Array(this.wasm.memory.buffer, at, values.length).set(values);
    return at;
  }

  // The model: frames in and out are in physical units, between them everything is normalised.
  loadModel() {
    const m = this.page.model, all = new Float32Array(decoded(this.page.weights).buffer);
    let at = 0;
    const next = (count) => all.subarray(at, at += count);
    const [nx, ny = 1] = this.grid, h = m.h, axes = this.grid, blocks = m.before + m.after, P = this.points;
    const lift = [next(h * m.inputs), next(h)], taps = [], mix = [], bias = [], warp = [];
    const kernels = m.product ? h : 2 * h; // of a product: both directions in one
    for (let block = 0; block < blocks; block++) {
      for (const [axis, length] of axes.entries()) {
        const given = next(kernels * length), twice = new Float32Array(2 * kernels * length);
        for (let line = 0; line < kernels; line++) {
          for (let i = 0; i < 2 * length; i++) { // backwards: the same distances on the other side
            const distance = line < h ? i % length : (2 * length - i) % length;
            twice[2 * line * length + i] = given[line * length + distance];
          }
        }
        taps.push(twice);
        if (!m.product) { mix.push(next(4 * h * h)); bias.push(next(4 * h)); }
        else if (axis === 0) { mix.push(next(2 * h * h)); bias.push(next(2 * h)); }
      }
      if (m.heads) warp.push(next(h * (2 * h + 1) + m.heads * axes.length * (h + 1)));
    }
    const flat = (parts) => { const out = new Float32Array(parts.reduce((a, b) => a + b.length, 0)); let i = 0; for (const p of parts) { out.set(p, i); i += p.length; } return out; };
    const memory = m.window ? [next(h * m.window), next(2 * h * h), next(2 * h)] : [[0], [0], [0]];
    const head = [next(m.head * h), next(m.head), next(m.head), next(1)];
    if (at !== all.length) throw new Error("The weights in this page are damaged: their number differs.");
    const weights = [...lift, flat(taps), flat(mix), flat(bias), flat(warp), ...memory, ...head].map((w) => this.room32(w));
    const work = [h * P, h * P, 2 * h * P, 64 * (2 * h + m.heads * axes.length), Math.max(1, m.window) * h * P].map((count) => this.room32(count));
    this.model = this.struct([h, nx, ny, m.inputs, m.before, m.after, m.window, m.head, m.product, m.heads, 0, ...weights, ...work, 0]);
    this.f32(this.model + 40, 1)[0] = m.residual;
    this.input = this.room32(m.inputs * P);
    this.answer = this.room32(P);
    m.coordinates.forEach((axis, number) => {
      const plane = this.f32(this.input + 4 * (number + 1) * P, P), inner = axis === 0 ? ny : 1;
      for (let i = 0; i < P; i++) plane[i] = Math.floor(i / inner) % this.grid[axis] / this.grid[axis];
    });
  }
  // Begin a forecast from input frames, oldest first; the newest is taken by the first step.
  start(frames) {
    this.wasm.model_start(this.model);
    frames.slice(0, -1).forEach((frame) => { this.encode(frame); this.wasm.model_take(this.model, this.input); });
    this.encode(frames[frames.length - 1]);
  }
  encode(frame) {
    const { shift, scale } = this.page.units, room = this.f32(this.input, this.points);
    for (let i = 0; i < room.length; i++) room[i] = (frame[i] - shift) / scale;
  }
  step() {
    const { shift, scale, increment, conserve_mean } = this.page.units;
    this.wasm.model_step(this.model, this.input, this.answer);
    const state = this.f32(this.input, this.points), answer = this.f32(this.answer, this.points), out = new Float32Array(this.points);
    const following = (i) => (increment === null ? answer[i] : state[i] + increment * answer[i]);
    let drift = 0;
    if (conserve_mean) for (let i = 0; i < out.length; i++) drift += (following(i) - state[i]) / out.length;
    for (let i = 0; i < out.length; i++) {
      state[i] = following(i) - drift;
      out[i] = state[i] * scale + shift;
    }
    return out;
  }

  // Fourier transforms in float64, for other grids and for spectra: {re, im}, each of n (or n x n) numbers.
  transform(n, lines) {
    const key = `${n} ${lines}`;
    if (!this.transforms.has(key)) {
      const table = new Float64Array(2 * n);
      for (let k = 0; k < n; k++) { table[k] = Math.cos(2 * Math.PI * k / n); table[n + k] = -Math.sin(2 * Math.PI * k / n); }
      this.transforms.set(key, { table: this.room64(table), work: [0, 0, 0, 0].map(() => this.room64(n * lines)) });
    }
    return this.transforms.get(key);
  }
  fft({ re, im }, n, lines, inverse = false) {
    const { table, work } = this.transform(n, lines), [a, b, c, d] = work;
    this.f64(a, n * lines).set(re); this.f64(b, n * lines).set(im);
    if (inverse) this.wasm.fft(b, a, d, c, table, n, lines); else this.wasm.fft(a, b, c, d, table, n, lines);
    return { re: this.f64(a, n * lines).slice(), im: this.f64(b, n * lines).slice() };
  }
  modes(field, n, inverse = false) {
    const given = inverse ? field : { re: field, im: new Float64Array(field.length) };
    if (this.grid.length === 1) return this.fft(given, n, 1, inverse);
    const turned = (x) => { const y = new Float64Array(n * n); for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) y[j * n + i] = x[i * n + j]; return y; };
    const first = this.fft(given, n, n, inverse);
    return this.fft({ re: turned(first.re), im: turned(first.im) }, n, n, inverse);
  }
  // The same periodic field on n points per axis: every k-th point of a finer grid, or the waves of a coarser one.
  resampled(field, from, to) {
    if (from === to) return Float64Array.from(field);
    const two = this.grid.length === 2;
    if (from > to) {
      const every = from / to, out = new Float64Array(two ? to * to : to);
      for (let i = 0; i < out.length; i++) out[i] = two ? field[Math.floor(i / to) * every * from + (i % to) * every] : field[i * every];
      return out;
    }
    const { re, im } = this.modes(field, from), size = two ? to * to : to, wide = { re: new Float64Array(size), im: new Float64Array(size) };
    const scale = 1 / (two ? from * from : from), half = from / 2, place = (m) => (m < 0 ? m + to : m), old = (m) => (m < 0 ? m + from : m);
    for (let a = two ? 1 - half : 0; a < (two ? half : 1); a++) { // the Nyquist wave has no partner and is left out
      for (let b = 1 - half; b < half; b++) {
        const i = place(a) * (two ? to : 0) + place(b), j = old(a) * (two ? from : 0) + old(b);
        wide.re[i] = re[j] * scale; wide.im[i] = im[j] * scale;
      }
    }
    return this.modes(wide, to, true).re;
  }
  // Power per wavenumber 1 ... n/2 - 1, summed over directions.
  spectrum(field) {
    const n = this.grid[0], { re, im } = this.modes(Float64Array.from(field), n), power = new Float64Array(n / 2);
    const number = (i) => (i > n / 2 ? i - n : i);
    for (let i = 0; i < re.length; i++) {
      const k = Math.round(Math.hypot(number(i % n), number(Math.floor(i / n))));
      if (k > 0 && k < n / 2) power[k] += (re[i] ** 2 + im[i] ** 2) / re.length ** 2;
    }
    return power;
  }

  // A solver with its own memory: load(field on the model's grid), *frame() in pieces, field() on the model's grid.
  solver(role, options, viscosity) {
    const key = [role, options.points, this.page.equation].join(" ");
    if (!this.solvers.has(key)) {
      const kind = { ks: KS, burgers: Burgers, torus: Torus }[this.page.equation];
      this.solvers.set(key, new kind(this, options.points));
    }
    const found = this.solvers.get(key);
    found.set(options, viscosity);
    return found;
  }
}

class KS {
  constructor(engine, n) {
    const m = n / 2, count = m + 1, turn = new Float64Array(2 * count);
    for (let k = 0; k < count; k++) { turn[k] = Math.cos(2 * Math.PI * k / n); turn[count + k] = -Math.sin(2 * Math.PI * k / n); }
    Object.assign(this, { engine, n, count });
    this.coefficients = [0, 1, 2, 3, 4, 5, 6].map(() => engine.room64(count));
    this.buffer = engine.room64(n);
    const table = engine.transform(m, 1).table, kept = Math.floor((n - 1) / 3), modes = [engine.room64(count), engine.room64(count)];
    this.kept = kept;
    this.at = engine.struct([n, kept, table, engine.room64(turn), ...this.coefficients, ...modes, engine.room64(4 * n + 12 * count)]);
  }
  set({ steps }, viscosity) {
    const { engine, count } = this, { dt, length } = engine.page, h = dt / steps;
    this.steps = steps;
    const rows = this.coefficients.map((at) => engine.f64(at, count));
    for (let k = 0; k < count; k++) {
      const wave = 2 * Math.PI * k / length, z = h * (wave ** 2 - viscosity * wave ** 4), sums = [0, 0, 0, 0], circle = 32;
      for (let j = 0; j < circle; j++) { // means over a circle around z (Kassam and Trefethen); z is real, so half of it
        const angle = Math.PI * (j + 0.5) / circle, w = [z + Math.cos(angle), Math.sin(angle)];
        const times = (a, b) => [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]];
        const over = (a, b) => { const s = b[0] ** 2 + b[1] ** 2; return [(a[0] * b[0] + a[1] * b[1]) / s, (a[1] * b[0] - a[0] * b[1]) / s]; };
        const exp = (a) => [Math.exp(a[0]) * Math.cos(a[1]), Math.exp(a[0]) * Math.sin(a[1])];
        const e = exp(w), half = exp([w[0] / 2, w[1] / 2]), square = times(w, w), cube = times(square, w);
        const poly = (a, b, c, d, x) => { // a + b w + c w^2 + e (d + x w + y w^2)
          const [y0, y1, y2] = d, inner = times(e, [y0 + y1 * w[0] + y2 * square[0], y1 * w[1] + y2 * square[1]]);
          return over([a + b * w[0] + c * square[0] + inner[0], b * w[1] + c * square[1] + inner[1]], x);
        };
        sums[0] += over([half[0] - 1, half[1]], w)[0];
        sums[1] += poly(-4, -1, 0, [4, -3, 1], cube)[0];
        sums[2] += poly(2, 1, 0, [-2, 1, 0], cube)[0];
        sums[3] += poly(-4, -3, -1, [4, -1, 0], cube)[0];
      }
      const [q, f1, f2, f3] = sums.map((s) => h * s / circle);
      [Math.exp(z), Math.exp(z / 2), q, f1, f2, f3, k <= this.kept ? -wave / 2 : 0].forEach((x, i) => { rows[i][k] = x; });
    }
  }
  load(field) {
    const { engine, n } = this;
    const own = engine.resampled(field, engine.grid[0], n); // first: it may take memory, which moves the views
    engine.f64(this.buffer, n).set(own);
    engine.wasm.ks_load(this.at, this.buffer);
  }
  *frame() { this.engine.wasm.ks_steps(this.at, this.steps); }
  field() {
    this.engine.wasm.ks_field(this.at, this.buffer);
    return Float32Array.from(this.engine.resampled(this.engine.f64(this.buffer, this.n).slice(), this.n, this.engine.grid[0]));
  }
}

class Burgers {
  constructor(engine, n) {
    Object.assign(this, { engine, n, at: engine.room64(n + 4), work: engine.room64(5 * n + 40) });
  }
  set({ cfl }, viscosity) { this.cfl = cfl; this.diffusivity = viscosity / Math.PI; }
  load(field) { // cubic interpolation: the waves of a coarse grid would overshoot at a shock
    const { engine, n } = this, from = engine.grid[0], u = engine.f64(this.at, n + 4), value = (i) => field[(i + from) % from];
    for (let j = 0; j < n; j++) {
      const x = j * from / n, i = Math.floor(x), t = x - i, [a, b, c, d] = [value(i - 1), value(i), value(i + 1), value(i + 2)];
      u[j + 2] = b + t / 2 * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
    }
  }
  *frame() {
    const { page, wasm } = this.engine, pieces = 8;
    for (let i = 0; i < pieces; i++) {
      if (wasm.burgers(this.at, this.work, this.n, page.length / this.n, this.diffusivity, this.cfl, page.dt / pieces) < 0) this.engine.f64(this.at, this.n + 4).fill(NaN);
      yield;
    }
  }
  field() {
    const to = this.engine.grid[0], u = this.engine.f64(this.at + 16, this.n).slice();
    if (this.n < to) { const out = new Float32Array(to); for (let i = 0; i < to; i++) { const x = i * this.n / to, k = Math.floor(x); out[i] = u[k] + (x - k) * (u[(k + 1) % this.n] - u[k]); } return out; }
    return Float32Array.from(this.engine.resampled(u, this.n, to));
  }
}

class Torus {
  constructor(engine, n) {
    const size = n * n, table = new Float32Array(2 * n), kept = Math.floor((n - 1) / 3), square = new Float32Array(size);
    for (let k = 0; k < n; k++) { table[k] = Math.cos(2 * Math.PI * k / n); table[n + k] = -Math.sin(2 * Math.PI * k / n); }
    this.squared = new Float64Array(size);
    const number = (i) => (i > n / 2 ? i - n : i);
    for (let i = 0; i < size; i++) {
      this.squared[i] = 4 * Math.PI ** 2 * (number(i % n) ** 2 + number(Math.floor(i / n)) ** 2);
      square[i] = i ? 1 / this.squared[i] : 0;
    }
    const force = [new Float32Array(size), new Float32Array(size)];
    for (const [mx, my, sine, cosine] of engine.page.force) {
      for (const sign of [1, -1]) {
        const i = ((sign * my + n) % n) * n + (sign * mx + n) % n;
        force[0][i] += cosine / 2; force[1][i] -= sign * sine / 2;
      }
    }
    Object.assign(this, { engine, n, kept, half: engine.room32(size), buffer: engine.room32(size) });
    const rows = [engine.room32(table), engine.room32(square), this.half, ...force.map((f) => engine.room32(f))];
    this.at = engine.struct([n, kept, ...rows, engine.room32(size), engine.room32(size), engine.room32(12 * size), 0]);
  }
  set({ step, courant }, viscosity) { Object.assign(this, { step, courant, viscosity, dt: 0 }); }
  load(field) {
    const { engine, n } = this;
    const own = engine.resampled(field, engine.grid[0], n); // first, as above
    engine.f32(this.buffer, n * n).set(own);
    engine.wasm.torus_load(this.at, this.buffer);
  }
  *frame() {
    const { engine, n } = this, interval = engine.page.dt, fastest = engine.wasm.torus_speed(this.at);
    let steps = Math.ceil(interval / this.step - 1e-9);
    if (!Number.isFinite(fastest)) return;
    while (interval / steps * 2 * Math.PI * this.kept * fastest > this.courant && steps < 4096) steps *= 2;
    const dt = interval / steps;
    if (dt !== this.dt) {
      const half = engine.f32(this.half, n * n);
      for (let i = 0; i < half.length; i++) half[i] = Math.exp(-this.viscosity * this.squared[i] * dt / 2);
      engine.f32(this.at + 40, 1)[0] = this.dt = dt;
    }
    this.steps = steps;
    for (let i = 0; i < steps; i++) { engine.wasm.torus_steps(this.at, 1); yield; }
  }
  field() {
    this.engine.wasm.torus_field(this.at, this.buffer);
    return Float32Array.from(this.engine.resampled(this.engine.f32(this.buffer, this.n ** 2).slice(), this.n, this.engine.grid[0]));
  }
}

const relativeError = (a, b) => {
  let difference = 0, size = 0;
  for (let i = 0; i < a.length; i++) { difference += (a[i] - b[i]) ** 2; size += b[i] ** 2; }
  return Math.sqrt(difference / Math.max(size, 1e-12));
};
