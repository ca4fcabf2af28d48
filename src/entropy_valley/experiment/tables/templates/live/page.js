"use strict";
// What is seen: it sends texts to the worker, and draws the probes and the canvases that come back.

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const UNSURE = 2; // nats that have the last colour of the scale
const PACE = 450; // milliseconds of a step while it plays
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

const directions = new Map(data.directions.map((direction) => [direction.name, direction]));
const languages = new Intl.DisplayNames(["en"], { type: "language" });

let request = 0; // the number of the last one
let shown = null; // what has come back of it: { direction, sourceTokens, probes, choices, runs, steps, done }
let timer = null;

function element(tag, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// --- What is translated.

const worker = new Worker(URL.createObjectURL(new Blob([$("worker").textContent, "serve(self);"])));
worker.postMessage({ data });

/** Gives the worker the part of a file that the browser has just read; an empty one is the end of its file. */
function send() {
  const part = document.currentScript.previousElementSibling;
  worker.postMessage({ file: part.dataset.file, part: part.textContent });
  part.remove();
}

function fillForm() {
  for (const { name, source, target } of directions.values()) {
    $("direction").append(new Option(`${languages.of(source)} → ${languages.of(target)}`, name));
  }
  fillSentences();
}

function fillSentences() {
  const { source, sentences } = directions.get($("direction").value);
  const own = new Option("your own text", "");
  $("sentence").replaceChildren(...sentences.map((text, number) => new Option(text, number)), own);
  $("sentence").lang = $("source").lang = source;
  takeSentence();
}

function takeSentence() {
  const { sentences } = directions.get($("direction").value);
  const sentence = sentences[$("sentence").value];
  if (sentence) $("source").value = sentence;
  if (sentence) translate();
  else $("source").select();
}

function translate() {
  const direction = directions.get($("direction").value);
  const source = $("source").value.trim();
  const number = direction.sentences.indexOf(source);
  $("sentence").value = number < 0 ? "" : number;
  if (!source) return say("Write a text to translate.", true);
  pause();
  shown = { direction, runs: new Map(), steps: 0, done: false };
  request += 1;
  worker.postMessage({ request, direction: direction.name, source });
  $("play").disabled = $("step").disabled = true;
  say("Computing …");
}

worker.onmessage = ({ data: { request: answered, ...part } }) => {
  if (part.parameters) $("size").textContent = `${(part.parameters / 1e6).toFixed(1)} million`;
  if (answered !== request) return;
  if (part.error) {
    $("probes").replaceChildren();
    $("canvases").replaceChildren();
    return say(part.error, true);
  }
  Object.assign(shown, part);
  if (part.probes) {
    drawProbes();
    drawCanvases();
  }
  if (part.frames) addStep(part.frames);
  if (part.done) {
    const slots = shown.choices.map(({ method, length }) => `${method} ${length}`).join(", ");
    say(`${shown.sourceTokens} source tokens. Slots: ${slots}.`);
  }
};
worker.onerror = (event) => say(`The computation failed: ${event.message}`, true);

function say(text, isError = false) {
  $("status").textContent = text;
  $("status").className = isError ? "error" : "";
}

// --- The probes.

function drawProbes() {
  const rows = shown.probes.map((probe) => {
    const names = shown.choices.filter(({ length }) => length === probe.length).map(({ method }) => method);
    const kind = names.includes("EV") ? "chosen" : "";
    const badges = names.map((text) => element("span", { class: `badge ${text === "EV" ? "" : "usual"}`, text }));
    const slots = element("span", { class: "unit", text: " slots " });
    return element(
      "div",
      { role: "row", class: `probe ${kind}` },
      element("div", { role: "rowheader", class: "length", text: probe.length }, slots, ...badges),
      strip(probe),
      element("div", { role: "cell", class: "number", text: probe.mean.toFixed(3) }),
    );
  });
  const titles = [
    ["length", "canvas"],
    ["slots", "slots"],
    ["number", "mean entropy (nats)"],
  ];
  const head = titles.map(([name, text]) => element("div", { role: "columnheader", class: name, text }));
  $("probes").style.setProperty("--slots", Math.max(...shown.probes.map((probe) => probe.length)));
  $("probes").replaceChildren(element("div", { role: "row", class: "probe head" }, ...head), ...rows, curve());
}

const shade = (entropy) => `--entropy: ${Math.min(1, (entropy ?? 0) / UNSURE).toFixed(3)}`;

function strip({ entropies, words }) {
  const slots = entropies.map((entropy, slot) => {
    const text = words[slot] ?? "EOS";
    return element("span", { text, style: shade(entropy), title: `${text}: ${entropy.toFixed(2)} nats` });
  });
  const nats = entropies.map((entropy) => entropy.toFixed(2)).join(", ");
  const drawing = element("div", { class: "strip", "aria-hidden": "true", lang: shown.direction.target }, ...slots);
  return element("div", { role: "cell", class: "slots", "aria-label": `entropies: ${nats} nats` }, drawing);
}

/** Mean entropy by length, turned: each point lies in the row of its length, further left the surer the model is. */
function curve() {
  const svg = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const means = shown.probes.map((probe) => probe.mean);
  const ev = shown.choices.find(({ method }) => method === "EV");
  const [low, high] = [Math.min(...means), Math.max(...means)];
  const x = means.map((mean) => `${10 + (80 * (mean - low)) / (high - low || 1)}%`);
  const y = means.map((_, row) => `${((row + 0.5) / means.length) * 100}%`);
  const drawing = svg("svg", { id: "curve", "aria-hidden": "true" });
  for (let row = 1; row < means.length; row++) {
    drawing.append(svg("line", { x1: x[row - 1], y1: y[row - 1], x2: x[row], y2: y[row] }));
  }
  shown.probes.forEach(({ length }, row) => {
    const kind = length === ev.length ? { r: 7, class: "valley" } : { r: 5 };
    drawing.append(svg("circle", { cx: x[row], cy: y[row], ...kind }));
  });
  drawing.style.setProperty("--rows", means.length);
  return drawing;
}

// --- The canvases, at a step.

function drawCanvases() {
  const canvases = shown.choices.map(({ method, length }) => {
    shown.runs.set(method, { words: Array(length), revealedAt: Array(length).fill(Infinity), entropies: [], text: null });
    const title = element("h3", { text: method }, element("small", { text: `${length} slots` }));
    const { target } = shown.direction;
    const slots = Array.from({ length }, () => element("span", { lang: target }));
    const row = element("div", { class: "tokens", "aria-hidden": "true" }, ...slots);
    const text = element("p", { class: "text", lang: target }, element("bdi"));
    return element("div", { class: "canvas", "data-method": method }, title, row, text);
  });
  $("canvases").replaceChildren(...canvases);
  show(0);
}

const canvasOf = (method) => $("canvases").querySelector(`[data-method="${method}"]`);

/** Takes a step that has been computed, and begins to play with the first. */
function addStep(frames) {
  for (const { method, words, entropies, text } of frames) {
    const run = shown.runs.get(method);
    const slots = canvasOf(method).querySelectorAll(".tokens span");
    for (const { slot, word } of words) {
      run.words[slot] = word;
      run.revealedAt[slot] = shown.steps;
      slots[slot].textContent = word ?? "EOS";
      slots[slot].classList.toggle("eos", word === null);
    }
    run.entropies.push(entropies);
    if (text === undefined) continue;
    run.text = text;
    canvasOf(method).querySelector("bdi").textContent = text || "(no text)";
  }
  shown.steps += 1;
  $("step").max = shown.steps;
  $("play").disabled = $("step").disabled = false;
  if (still) return show(shown.steps);
  if (shown.steps > 1) return;
  play();
  show(1);
}

/** Shows every canvas after a step; 0 is before the first. A canvas that is done earlier waits. */
function show(step) {
  $("step").value = step;
  $("at").textContent = `step ${step} of ${shown.steps}`;
  $("step").setAttribute("aria-valuetext", $("at").textContent);
  for (const [method, { words, revealedAt, entropies, text }] of shown.runs) {
    const next = entropies[Math.min(step, entropies.length - 1)] ?? [];
    const end = words.indexOf(null);
    canvasOf(method)
      .querySelectorAll(".tokens span")
      .forEach((slot, number) => {
        slot.classList.toggle("masked", revealedAt[number] >= step);
        slot.classList.toggle("fresh", revealedAt[number] === step - 1);
        slot.classList.toggle("after", revealedAt[number] < step && end >= 0 && number > end);
        slot.style = shade(next[number]);
      });
    const isDone = text !== null && step >= entropies.length;
    canvasOf(method).querySelector(".text").classList.toggle("waiting", !isDone);
  }
}

function play() {
  pause();
  if (Number($("step").value) >= shown.steps) show(0);
  $("play").textContent = "Pause";
  timer = setInterval(() => {
    // It waits for a step that is not computed yet.
    if (Number($("step").value) < shown.steps) show(Number($("step").value) + 1);
    else if (shown.done) pause();
  }, PACE);
}

function pause() {
  clearInterval(timer);
  timer = null;
  $("play").textContent = "Play";
}

// --- Controls.

$("direction").addEventListener("change", fillSentences);
$("sentence").addEventListener("change", takeSentence);
$("next").addEventListener("click", () => {
  const { sentences } = directions.get($("direction").value);
  $("sentence").value = ($("sentence").value === "" ? 0 : Number($("sentence").value) + 1) % sentences.length;
  takeSentence();
});
$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  translate();
});
$("play").addEventListener("click", () => {
  if (timer) pause();
  else play();
});
$("step").addEventListener("input", () => {
  pause();
  show(Number($("step").value));
});

$("digests").textContent = Object.entries(data.digests)
  .map(([name, digest]) => `${name} ${digest}`)
  .join(", ");
fillForm();
