"use strict";
// Players: decode the numbers that travel in the page, colour them, draw them, move through time.
(() => {
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const NOT_FINITE = 65535;
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const short = (value) => (Math.abs(value) >= 1e4 || (value !== 0 && Math.abs(value) < 1e-3))
    ? value.toExponential(1) : String(Number(value.toPrecision(3)));
  const measured = (text, unit) => (unit ? text + " " + unit : text);

  function unpack(text, low, high) {
    const codes = new Uint16Array(bytes(text).buffer);
    return Float32Array.from(codes, (code) => code === NOT_FINITE ? NaN : low + (high - low) * code / (NOT_FINITE - 1));
  }

  function paint(canvas, width, height, value, table, bottom, top) {
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d"), image = context.createImageData(width, height);
    for (let row = 0, at = 0; row < height; row++) {
      for (let column = 0; column < width; column++, at += 4) {
        const number = value(column, row);
        const level = Math.max(0, Math.min(255, Math.round(255 * (number - bottom) / (top - bottom))));
        const known = Number.isFinite(number);
        for (let part = 0; part < 3; part++) image.data[at + part] = known ? table[3 * level + part] : 128;
        image.data[at + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
  }

  function build(root) {
    const data = JSON.parse(document.getElementById(root.id + "-data").textContent);
    const find = (selector) => root.querySelector(selector);
    const slider = find("input"), button = find(".play"), output = find("output"), lines = find(".lines");
    const trajectory = find(".trajectory"), field = find(".field");
    const panels = [...root.querySelectorAll(".panel")];
    const flat = data.grid.length === 1, points = data.grid.reduce((a, b) => a * b), frames = data.times.length;
    const differences = bytes(data.differences);
    let truth, forecast, set, timer = null;

    function choose() {
      set = data.values[field.value];
      set.colours = bytes(set.map);
      truth = unpack(set.truth[trajectory.value], set.low, set.high);
      forecast = unpack(set.forecast[trajectory.value], set.low, set.high);
      const worst = set.worst[trajectory.value], range = [set.bottom, set.top];
      const captions = { truth: range, forecast: range, difference: [-worst, worst] };
      for (const panel of panels) {
        const words = measured(captions[panel.dataset.panel].map(short).join(" to "), data.units.fields[field.value]);
        panel.closest("figure").querySelector("figcaption span").textContent = words;
      }
      if (flat) spacetime();
      show();
    }

    const kinds = {
      truth: () => [(at) => truth[at], set.colours, set.bottom, set.top],
      forecast: () => [(at) => forecast[at], set.colours, set.bottom, set.top],
      difference: () => {
        const worst = set.worst[trajectory.value];
        return [(at) => forecast[at] - truth[at], differences, -worst, worst];
      },
    };

    function spacetime() {
      for (const panel of panels) {
        const [value, ...scale] = kinds[panel.dataset.panel]();
        panel.style.aspectRatio = "1.25";
        paint(panel, points, frames, (x, t) => value(t * points + x), ...scale);
      }
    }

    function cursor(frame) {
      for (const panel of panels) {
        const line = panel.nextElementSibling;
        line.hidden = false;
        line.style.top = 100 * (frame + 0.5) / frames + "%";
      }
    }

    function planes(frame) {
      const [width, height] = data.grid;
      for (const panel of panels) {
        const [value, ...scale] = kinds[panel.dataset.panel]();
        panel.style.aspectRatio = String(data.lengths[0] / data.lengths[1]);
        const begin = frame * points;
        paint(panel, width, height, (x, y) => value(begin + x * height + (height - 1 - y)), ...scale);
      }
    }

    function curves(frame) {
      const ratio = window.devicePixelRatio || 1, box = lines.getBoundingClientRect();
      lines.width = Math.max(1, box.width * ratio);
      lines.height = Math.max(1, box.height * ratio);
      const context = lines.getContext("2d");
      context.scale(ratio, ratio);
      const left = 46, bottom = box.height - 22, width = box.width - left - 8, height = bottom - 8;
      const span = set.top - set.bottom || 1, low = set.bottom - 0.08 * span, high = set.top + 0.08 * span;
      const place = (value) => 8 + height * (high - Math.max(low, Math.min(high, value))) / (high - low);
      context.font = "11px system-ui, sans-serif";
      context.fillStyle = ink("--soft");
      context.strokeStyle = ink("--line");
      context.lineWidth = 1;
      context.textAlign = "right";
      for (const value of [set.bottom, (set.bottom + set.top) / 2, set.top]) {
        context.beginPath();
        context.moveTo(left, place(value));
        context.lineTo(left + width, place(value));
        context.stroke();
        context.fillText(short(value), left - 6, place(value) + 4);
      }
      context.textAlign = "left";
      context.fillText("0", left, bottom + 14);
      context.textAlign = "right";
      context.fillText(measured(`${data.axis} = ${short(data.lengths[0])}`, data.units.axis), left + width, bottom + 14);
      const draw = (values, colour, thickness) => {
        context.strokeStyle = colour;
        context.lineWidth = thickness;
        context.beginPath();
        let pen = false;
        for (let x = 0; x < points; x++) {
          const value = values[frame * points + x];
          if (!Number.isFinite(value)) { pen = false; continue; }
          context[pen ? "lineTo" : "moveTo"](left + width * x / Math.max(1, points - 1), place(value));
          pen = true;
        }
        context.stroke();
      };
      draw(truth, ink("--truth"), 1.4);
      if (frame >= data.input_frames) draw(forecast, ink("--forecast"), 2);
      context.textAlign = "left";
      [["truth", "--truth"], ["forecast", "--forecast"]].forEach(([name, colour], row) => {
        context.fillStyle = ink(colour);
        context.fillText("\u2014 " + name, left + 8, 20 + 14 * row);
      });
    }

    function show() {
      const frame = Number(slider.value);
      if (flat) { curves(frame); cursor(frame); } else planes(frame);
      const error = data.errors[trajectory.value][frame];
      const state = frame < data.input_frames ? "input" : error === null ? "not finite" : "error " + short(error);
      output.textContent = measured("t = " + short(data.times[frame]), data.units.time) + ", " + state;
      slider.setAttribute("aria-valuetext", output.textContent);
    }

    function stop() {
      clearInterval(timer);
      timer = null;
      button.textContent = "\u25b6";
      button.setAttribute("aria-label", "Play");
    }

    function play() {
      if (Number(slider.value) >= frames - 1) slider.value = 0;
      button.textContent = "\u275a\u275a";
      button.setAttribute("aria-label", "Pause");
      timer = setInterval(() => {
        slider.value = Number(slider.value) + 1;
        show();
        if (Number(slider.value) >= frames - 1) stop();
      }, Math.max(60, Math.min(250, 5000 / frames)));
    }

    button.addEventListener("click", () => (timer === null ? play() : stop()));
    slider.addEventListener("input", () => { stop(); show(); });
    for (const menu of [trajectory, field]) menu.addEventListener("change", choose);
    window.addEventListener("resize", show);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
    choose();
    root.dataset.ready = "true";
  }

  document.querySelectorAll(".player").forEach(build);
  const folds = document.querySelectorAll("details");
  window.addEventListener("beforeprint", () => folds.forEach((fold) => { fold.wasOpen = fold.open; fold.open = true; }));
  window.addEventListener("afterprint", () => folds.forEach((fold) => { fold.open = fold.wasOpen; }));
})();
