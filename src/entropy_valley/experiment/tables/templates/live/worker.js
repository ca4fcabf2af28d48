// The computations of the page, in a thread of their own: the page stays quick, and draws what has arrived.
//
// The page sends `{ data }` once, and is told how many `parameters` the model has; `{ file, part }` for each part of a file;
// and `{ request, direction, source }` for each text. The answers are the parts that `translation` yields, each with the
// number of its request.

const EOS = null; // what stands for it among words, which are texts

const files = new Map(); // of the page, by name: `{ writer, bytes }`; `bytes` are promised

function file(name) {
  if (!files.has(name)) {
    const { writable, readable } = new DecompressionStream("gzip");
    files.set(name, { writer: writable.getWriter(), bytes: new Response(readable).arrayBuffer() });
  }
  return files.get(name);
}

/** Takes the next part of a file, base64 of gzip, while the page is still being read; an empty part ends the file. */
function receive(name, part) {
  const { writer } = file(name);
  if (!part) return writer.close();
  const binary = atob(part);
  const packed = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) packed[at] = binary.charCodeAt(at);
  return writer.write(packed);
}

/** The tokenizer, the number of parameters, and `model`, which gets the model of a direction ready: with its adapter,
 * its prompt and its ratios. It waits for the files. */
async function load({ config, directions }) {
  const bytes = async (name) => new Uint8Array(await file(name).bytes);
  const json = JSON.parse(new TextDecoder().decode(await bytes("tokenizer")));
  const base = readSafetensors(await bytes("weights"));
  const parameters = Object.values(base).reduce((sum, tensor) => sum + tensor.data.length, 0);
  const models = {};
  const model = async (name) => {
    const { scaling, prompt, ratios } = directions.find((direction) => direction.name === name);
    models[name] ??= new Model(config, withAdapter(base, readSafetensors(await bytes(name)), scaling));
    return { model: models[name], prompt, ratios };
  };
  return { tokenizer: new Tokenizer(json), parameters, model };
}

/** Translates a source by all length methods, and yields what there is to show: first `{ sourceTokens, probes, choices }`,
 * then, for each step, `{ frames }` of the methods that have not finished; the last of a method has its text. Throws an
 * Error for a text that is too long. */
function* translation(tokenizer, { model, prompt: template, ratios }, source) {
  const prompt = tokenizer.encode(template.replace("{src}", () => source));
  const sourceTokens = tokenizer.encode(source).length;
  const word = (token) => (token === model.eos ? EOS : tokenizer.word(token));
  const longest = candidateLength(Math.max(...ratios), sourceTokens, true);
  if (prompt.length + longest > model.config.max_sequence_length) {
    throw new Error(`The text has ${sourceTokens} tokens, too many for this model. Shorten it.`);
  }
  const readings = new Map();
  const probe = (length) => {
    if (!readings.has(length)) readings.set(length, model.read(prompt, Array(length).fill(model.mask)));
    return readings.get(length);
  };
  const { choices, candidates } = choose(ratios, sourceTokens, probe);
  yield {
    sourceTokens,
    choices,
    probes: candidates.map(({ length, slots, mean }) => ({
      length,
      mean,
      entropies: slots.map(({ entropy }) => entropy),
      words: slots.map(({ token }) => word(token)),
    })),
  };
  // All methods step by step, so that each shows its first word early.
  const runs = choices.map(({ method, length }) => ({ method, steps: denoise(model, prompt, probe(length)) }));
  for (;;) {
    const frames = [];
    for (const { method, steps } of runs) {
      const { value: frame, done } = steps.next();
      if (done) continue;
      const { canvas, revealed, entropies } = frame;
      const words = revealed.map((slot) => ({ slot, word: word(canvas[slot]) }));
      const text = canvas.includes(model.mask) ? undefined : textOf(tokenizer, canvas, model.eos);
      frames.push({ method, words, entropies, text });
    }
    if (!frames.length) return;
    yield { frames };
  }
}

/** The text of the tokens before the first EOS. */
function textOf(tokenizer, canvas, eos) {
  const end = canvas.indexOf(eos);
  return tokenizer.decode(end < 0 ? canvas : canvas.slice(0, end)).trim();
}

/** Answers the page. A request that a later one has overtaken is given up between two parts. */
function serve(scope) {
  let loading;
  let latest;
  scope.onmessage = async ({ data: { file, part, data, request, direction, source } }) => {
    if (file) return receive(file, part);
    if (data) {
      loading = load(data);
      scope.postMessage({ parameters: (await loading).parameters });
      return;
    }
    latest = request;
    try {
      const { tokenizer, model } = await loading;
      for (const part of translation(tokenizer, await model(direction), source)) {
        if (request !== latest) return;
        scope.postMessage({ request, ...part });
        await new Promise((resume) => setTimeout(resume));
      }
      scope.postMessage({ request, done: true });
    } catch (error) {
      scope.postMessage({ request, error: error.message });
    }
  };
}
