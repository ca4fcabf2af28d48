// The computations of the page, in a thread of their own: the page stays quick, and draws what has arrived.
//
// The page sends `{ files }` once, and is told how many `parameters` the model has; then `{ request, direction, source,
// reference }` for each text. The answers are the parts that `translation` yields, each with the number of its request.

const EOS = null; // what stands for it among words, which are texts

/** The bytes of a file that is in the page as base64 of gzip. */
async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The tokenizer, and for each direction its settings with the model that has its adapter. */
async function load(files) {
  const json = JSON.parse(new TextDecoder().decode(await unpacked(files.tokenizer)));
  const base = readSafetensors(await unpacked(files.weights));
  const directions = {};
  for (const { adapter, scaling, ...settings } of files.directions) {
    const weights = withAdapter(base, readSafetensors(await unpacked(adapter)), scaling);
    directions[settings.name] = { ...settings, model: new Model(files.config, weights) };
  }
  const parameters = Object.values(base).reduce((sum, tensor) => sum + tensor.data.length, 0);
  return { tokenizer: new Tokenizer(json), directions, parameters };
}

/** Translates a source by all length methods of a direction, and yields what there is to show: first `{ sourceTokens,
 * probes, choices, … }`, then the denoised canvas of each method. Of the reference, if there is one, only the number of
 * tokens is told. Throws an Error for a text that is too long. */
function* translation({ tokenizer, directions }, name, source, reference) {
  const { model, prompt: template, steps, methods } = directions[name];
  const prompt = tokenizer.encode(template.replace("{src}", () => source));
  const sourceTokens = tokenizer.encode(source).length;
  const probes = new Map();
  const probe = (length) => {
    if (prompt.length + length > model.config.max_sequence_length) {
      throw new Error(`The text has ${sourceTokens} tokens, too many for this model. Shorten it.`);
    }
    if (!probes.has(length)) probes.set(length, model.read(prompt, Array(length).fill(model.mask)));
    return probes.get(length);
  };
  const choices = methods.map((method) => ({ method: method.name, ...choose(method, sourceTokens, probe) }));
  const readings = [...probes.entries()].sort(([one], [other]) => one - other);
  yield {
    sourceTokens,
    referenceTokens: reference && tokenizer.encode(reference).length,
    choices,
    probes: readings.map(([length, slots]) => ({
      length,
      mean: meanEntropy(slots),
      entropies: slots.map((slot) => slot.entropy),
      words: slots.map(({ token }) => (token === model.eos ? EOS : tokenizer.word(token))),
    })),
  };
  for (const { method, length } of choices) {
    const { tokens, frames } = denoise(model, prompt, length, steps);
    const words = frames.at(-1).canvas.map((token) => (token === model.eos ? EOS : tokenizer.word(token)));
    const revealedAt = Array(length);
    frames.forEach((frame, step) => frame.revealed.forEach((slot) => (revealedAt[slot] = step)));
    const text = tokenizer.decode(tokens).trim();
    yield { method, tokens, text, words, revealedAt, entropies: frames.map((frame) => frame.entropies) };
  }
}

/** Answers the page. A request that a later one has overtaken is given up between two parts. */
function serve(scope) {
  let loaded;
  let latest;
  scope.onmessage = async ({ data: { files, request, direction, source, reference } }) => {
    if (files) {
      loaded = load(files);
      scope.postMessage({ parameters: (await loaded).parameters });
      return;
    }
    latest = request;
    try {
      for (const part of translation(await loaded, direction, source, reference)) {
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
