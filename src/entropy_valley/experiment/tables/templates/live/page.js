"use strict";
// What is seen: it sends texts to the worker, and draws the probes and the canvases that come back.

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const UNSURE = 2; // nats that have the last colour of the scale
const PACE = 450; // milliseconds of a step while it plays
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

const directions = new Map(data.files.directions.map((direction) => [direction.name, direction]));
const languages = new Intl.DisplayNames(["en"], { type: "language" });

let request = 0; // the number of the last one
let shown = null; // what has come back of it: { direction, reference, probes, choices, runs, … }
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
worker.postMessage({ files: data.files });

function fillForm() {
  for (const { name, source, target } of directions.values()) {
    $("direction").append(new Option(`${languages.of(source)} → ${languages.of(target)}`, name));
  }
  fillSentences();
}

function fillSentences() {
  const { source, sentences } = directions.get($("direction").value);
  const own = new Option("your own text", "");
  $("sentence").replaceChildren(...sentences.map(([text], number) => new Option(text, number)), own);
  $("sentence").lang = $("source").lang = source;
  takeSentence();
}

function takeSentence() {
  const { sentences } = directions.get($("direction").value);
  const sentence = sentences[$("sentence").value];
  if (sentence) $("source").value = sentence[0];
  if (sentence) translate();
  else $("source").select();
}

function translate() {
  const direction = directions.get($("direction").value);
  const source = $("source").value.trim();
  const number = direction.sentences.findIndex(([text]) => text === source);
  $("sentence").value = number < 0 ? "" : number;
  if (!source) return say("Write a text to translate.", true);
  pause();
  shown = { direction, reference: direction.sentences[number], runs: new Map() };
  request += 1;
  worker.postMessage({ request, direction: direction.name, source, reference: shown.reference?.[1] });
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
  if (part.probes) {
    Object.assign(shown, part);
    drawProbes();
  }
  if (part.method) shown.runs.set(part.method, part);
  if (part.done) {
    drawCanvases();
    const slots = shown.choices.map(({ method, length }) => `${label(method)} ${length}`).join(", ");
    say(`${shown.sourceTokens} source tokens. Slots: ${slots}.`);
    if (still) show(last());
    else play();
  }
};
worker.onerror = (event) => say(`The computation failed: ${event.message}`, true);

function say(text, isError = false) {
  $("status").textContent = text;
  $("status").className = isError ? "error" : "";
}

const label = (method) => shown.direction.methods.find(({ name }) => name === method).label;

/** Slots of the reference with its EOS; undefined for a text of the user's own. */
const referenceLength = () => shown.referenceTokens && shown.referenceTokens + 1;

// --- The probes.

function drawProbes() {
  const { candidates } = shown.choices.find(({ method }) => method === "ev");
  const rows = shown.probes.map((probe) => {
    const names = chosenBy(probe.length);
    const kind = names.length ? "chosen" : candidates.includes(probe.length) ? "" : "outside";
    const badges = names.map((text) => element("span", { class: "badge", text }));
    if (probe.length === referenceLength())
      badges.push(element("span", { class: "badge reference", text: "reference" }));
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

/** The printed names of the methods with probes that have taken a length. */
const chosenBy = (length) =>
  shown.choices.filter((one) => one.scores.length && one.length === length).map((one) => label(one.method));

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
  const ev = shown.choices.find(({ method }) => method === "ev");
  const [low, high] = [Math.min(...means), Math.max(...means)];
  const x = means.map((mean) => `${10 + (80 * (mean - low)) / (high - low || 1)}%`);
  const y = means.map((_, row) => `${((row + 0.5) / means.length) * 100}%`);
  const drawing = svg("svg", { id: "curve", "aria-hidden": "true" });
  for (let row = 1; row < means.length; row++) {
    drawing.append(svg("line", { x1: x[row - 1], y1: y[row - 1], x2: x[row], y2: y[row] }));
  }
  shown.probes.forEach(({ length }, row) => {
    // Lengths that EV does not probe are small.
    const isCandidate = ev.candidates.includes(length);
    const kind = length === ev.length ? { r: 7, class: "valley" } : { r: isCandidate ? 5 : 3 };
    drawing.append(svg("circle", { cx: x[row], cy: y[row], ...kind }));
  });
  drawing.style.setProperty("--rows", means.length);
  return drawing;
}

// --- The canvases, at a step.

const last = () => Math.max(...[...shown.runs.values()].map((run) => run.entropies.length));

function drawCanvases() {
  const canvases = shown.choices.map(({ method, length }) => {
    const { words, text } = shown.runs.get(method);
    const says = element("p", { class: "text", lang: shown.direction.target });
    says.append(element("bdi", { text: text || "(no text)" }), " ");
    if (text === shown.reference?.[1])
      says.append(element("span", { class: "same", text: "the reference", lang: "en" }));
    return canvas(label(method), `${length} slots`, method, words, says);
  });
  if (shown.reference) {
    const says = element("p", { class: "text", lang: shown.direction.target, text: shown.reference[1] });
    canvases.push(canvas("Reference", `${referenceLength()} slots with its EOS`, "", [], says));
  }
  $("canvases").replaceChildren(...canvases);
  $("play").disabled = $("step").disabled = false;
  $("step").max = last();
  show(0);
}

function canvas(name, length, method, words, text) {
  const title = element("h3", { text: name }, element("small", { text: length }));
  const slots = words.map((word) =>
    element("span", { text: word ?? "EOS", class: word === null ? "eos" : "", lang: shown.direction.target }),
  );
  const row = element("div", { class: "tokens", "aria-hidden": "true" }, ...slots);
  return element("div", { class: "canvas", "data-method": method }, title, ...(method ? [row] : []), text);
}

/** Shows every canvas after a step; 0 is before the first. A canvas that is done earlier waits. */
function show(step) {
  $("step").value = step;
  $("at").textContent = `step ${step} of ${last()}`;
  $("step").setAttribute("aria-valuetext", $("at").textContent);
  for (const [method, { words, revealedAt, entropies }] of shown.runs) {
    const canvas = $("canvases").querySelector(`[data-method="${method}"]`);
    const next = entropies[Math.min(step, entropies.length - 1)];
    const end = words.indexOf(null);
    canvas.querySelectorAll(".tokens span").forEach((slot, number) => {
      slot.classList.toggle("masked", revealedAt[number] >= step);
      slot.classList.toggle("fresh", revealedAt[number] === step - 1);
      slot.classList.toggle("after", revealedAt[number] < step && end >= 0 && number > end);
      slot.style = shade(next[number]);
    });
    canvas.querySelector(".text").classList.toggle("waiting", step < entropies.length);
  }
}

function play() {
  pause();
  if (Number($("step").value) >= last()) show(0);
  $("play").textContent = "Pause";
  timer = setInterval(() => {
    show(Number($("step").value) + 1);
    if (Number($("step").value) >= last()) pause();
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

const adapters = [...directions.values()].map(({ name, adapter_digest: digest }) => `${name} ${digest}`);
$("model").textContent = data.model;
$("origin").textContent =
  `${data.model}, seed ${data.seed}: checkpoint ${data.checkpoint}, adapters ${adapters.join(", ")}.`;
fillForm();
