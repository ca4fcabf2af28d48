// LLaDA as a forward pass: RMS norms, rotary positions, attention of every row to every other, SwiGLU.
//
// All sums are of 64-bit numbers. So this is the plain version of what the workflow computes in 32 bits, and its
// entropies differ from the workflow's by the rounding of 32 bits alone.

// --- Weights: the checkpoint's and the adapters' own safetensors files.

/** The tensors of a safetensors file by name, each `{ shape, data }`; they are in 32 or 16 bits (float32, bfloat16). */
function readSafetensors(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const tensors = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const [first, end] = entry.data_offsets;
    tensors[name] = {
      shape: entry.shape,
      data: numbers(bytes.slice(8 + length + first, 8 + length + end), entry.dtype),
    };
  }
  return tensors;
}

function numbers(bytes, type) {
  if (type === "F32") return new Float64Array(new Float32Array(bytes.buffer));
  if (type !== "BF16") throw new Error(`weights of type ${type}: this page reads F32 and BF16`);
  // bfloat16 is the upper half of a float32.
  const halves = new Uint16Array(bytes.buffer);
  const whole = new Uint32Array(halves.length);
  for (let at = 0; at < halves.length; at++) whole[at] = halves[at] << 16;
  return new Float64Array(new Float32Array(whole.buffer));
}

// LLaDA's names of the linear layers that adapters call by the names of transformers' Llama.
const LINEAR_LAYERS = {
  "self_attn.q_proj": "q_proj",
  "self_attn.k_proj": "k_proj",
  "self_attn.v_proj": "v_proj",
  "self_attn.o_proj": "attn_out",
  "mlp.gate_proj": "ff_proj",
  "mlp.up_proj": "up_proj",
  "mlp.down_proj": "ff_out",
};

/** The weights of `base` with a LoRA adapter in them: W + scaling · B A. Layers without an adapter are shared. */
function withAdapter(base, adapter, scaling) {
  const merged = { ...base };
  for (const [name, down] of Object.entries(adapter)) {
    const found = name.match(/layers\.(\d+)\.(\w+\.\w+)\.lora_A\.weight$/);
    if (!found) continue;
    const target = `model.transformer.blocks.${found[1]}.${LINEAR_LAYERS[found[2]]}.weight`;
    const up = adapter[name.replace("lora_A", "lora_B")];
    merged[target] = { shape: base[target].shape, data: sumWithProduct(base[target].data, up, down, scaling) };
  }
  return merged;
}

function sumWithProduct(weight, up, down, scaling) {
  const [rank, columns] = down.shape;
  const sum = new Float64Array(weight);
  for (let row = 0; row < up.shape[0]; row++) {
    for (let one = 0; one < rank; one++) {
      const factor = scaling * up.data[row * rank + one];
      for (let column = 0; column < columns; column++) {
        sum[row * columns + column] += factor * down.data[one * columns + column];
      }
    }
  }
  return sum;
}

// --- Parts of a layer. Rows of `width` numbers lie one behind the other in one array.

/** Each row times the transpose of a weight of shape (outputs, inputs). Two rows and four outputs, of which there are a
 * multiple of four, grow at once: this takes half the time, as each number that is read is used more than once. */
function linear(rows, weight) {
  const [outputs, inputs] = weight.shape;
  const matrix = weight.data;
  const count = rows.length / inputs;
  const result = new Float64Array(count * outputs);
  for (let output = 0; output < outputs; output += 4) {
    const first = output * inputs;
    const second = first + inputs;
    const third = second + inputs;
    const fourth = third + inputs;
    for (let row = 0; row < count; row += 2) {
      const one = row * inputs;
      const other = Math.min(row + 1, count - 1) * inputs; // the last row of an odd number is computed twice
      let [a, b, c, d, e, f, g, h] = [0, 0, 0, 0, 0, 0, 0, 0];
      for (let input = 0; input < inputs; input++) {
        const x = rows[one + input];
        const y = rows[other + input];
        a += x * matrix[first + input];
        b += x * matrix[second + input];
        c += x * matrix[third + input];
        d += x * matrix[fourth + input];
        e += y * matrix[first + input];
        f += y * matrix[second + input];
        g += y * matrix[third + input];
        h += y * matrix[fourth + input];
      }
      result.set([a, b, c, d], row * outputs + output);
      result.set([e, f, g, h], (other / inputs) * outputs + output);
    }
  }
  return result;
}

/** Each row over its root mean square, times the weight. */
function rmsNorm(rows, weight, epsilon) {
  const width = weight.data.length;
  const result = new Float64Array(rows.length);
  for (let start = 0; start < rows.length; start += width) {
    let squares = 0;
    for (let at = start; at < start + width; at++) squares += rows[at] * rows[at];
    const scale = 1 / Math.sqrt(squares / width + epsilon);
    for (let at = 0; at < width; at++) result[start + at] = rows[start + at] * scale * weight.data[at];
  }
  return result;
}

/** Turns the two halves of each head by angles that grow with the row's position (in place). */
function rotate(rows, width, heads, theta) {
  const size = width / heads;
  const half = size / 2;
  for (let start = 0, position = 0; start < rows.length; start += width, position++) {
    for (let pair = 0; pair < half; pair++) {
      const angle = position / theta ** ((2 * pair) / size);
      const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
      for (let first = start + pair; first < start + width; first += size) {
        const [one, other] = [rows[first], rows[first + half]];
        rows[first] = one * cosine - other * sine;
        rows[first + half] = other * cosine + one * sine;
      }
    }
  }
  return rows;
}

/** What every row reads from all rows, by the softmax of its products with their keys, head by head. */
function attend(queries, keys, values, width, heads) {
  const size = width / heads;
  const result = new Float64Array(queries.length);
  const shares = new Float64Array(keys.length / width);
  for (let query = 0; query < queries.length; query += width) {
    for (let head = 0; head < width; head += size) {
      for (let row = 0; row < shares.length; row++) {
        let sum = 0;
        for (let at = head; at < head + size; at++) sum += queries[query + at] * keys[row * width + at];
        shares[row] = sum / Math.sqrt(size);
      }
      softmax(shares);
      for (let row = 0; row < shares.length; row++) {
        for (let at = head; at < head + size; at++) result[query + at] += shares[row] * values[row * width + at];
      }
    }
  }
  return result;
}

/** Logits become probabilities (in place). */
function softmax(logits) {
  let [largest, sum] = [-Infinity, 0];
  for (const logit of logits) if (logit > largest) largest = logit;
  for (let at = 0; at < logits.length; at++) sum += logits[at] = Math.exp(logits[at] - largest);
  for (let at = 0; at < logits.length; at++) logits[at] /= sum;
}

/** SiLU of the gate times the other, in the place of the gate. */
function gated(gate, other) {
  for (let at = 0; at < gate.length; at++) gate[at] = (gate[at] / (1 + Math.exp(-gate[at]))) * other[at];
  return gate;
}

function add(rows, others) {
  for (let at = 0; at < rows.length; at++) rows[at] += others[at];
}

// --- The model.

class Model {
  /** `config` is the checkpoint's config.json; `weights` are tensors by LLaDA's names. */
  constructor(config, weights) {
    this.config = config;
    this.weights = weights;
    this.mask = config.mask_token_id;
    this.eos = config.eos_token_id;
  }

  #weight(name) {
    return this.weights[`model.transformer.${name}.weight`];
  }

  /** The last layer's normed states of the tokens in some places, and of these one behind the other. */
  states(tokens, places) {
    const { d_model: width, n_heads: heads, rms_norm_eps: epsilon, rope_theta: theta } = this.config;
    const embeddings = this.#weight("wte").data;
    const rows = new Float64Array(tokens.length * width);
    tokens.forEach((token, row) => rows.set(embeddings.subarray(token * width, (token + 1) * width), row * width));
    for (let block = 0; block < this.config.n_layers; block++) {
      const weight = (name) => this.#weight(`blocks.${block}.${name}`);
      const read = rmsNorm(rows, weight("attn_norm"), epsilon);
      const queries = rotate(linear(read, weight("q_proj")), width, heads, theta);
      const keys = rotate(linear(read, weight("k_proj")), width, heads, theta);
      const values = linear(read, weight("v_proj"));
      add(rows, linear(attend(queries, keys, values, width, heads), weight("attn_out")));
      const normed = rmsNorm(rows, weight("ff_norm"), epsilon);
      add(rows, linear(gated(linear(normed, weight("ff_proj")), linear(normed, weight("up_proj"))), weight("ff_out")));
    }
    const wanted = new Float64Array(places.length * width);
    places.forEach((place, at) => wanted.set(rows.subarray(place * width, (place + 1) * width), at * width));
    return rmsNorm(wanted, this.#weight("ln_f"), epsilon);
  }

  /** What the model says of each masked slot of a canvas behind a prompt: `{ entropy, token }`, the entropy (nats) of
   * its distribution and the most probable token; null for a slot that is revealed. The mask cannot be predicted. */
  read(prompt, canvas) {
    const masked = canvas.flatMap((token, slot) => (token === this.mask ? [slot] : []));
    const states = this.states(
      [...prompt, ...canvas],
      masked.map((slot) => prompt.length + slot),
    );
    const logits = linear(states, this.#weight("ff_out"));
    const size = logits.length / masked.length;
    const said = Array(canvas.length).fill(null);
    masked.forEach((slot, row) => (said[slot] = this.#summary(logits.subarray(row * size, (row + 1) * size))));
    return said;
  }

  #summary(logits) {
    logits[this.mask] = -Infinity;
    let token = 0;
    for (let one = 1; one < logits.length; one++) if (logits[one] > logits[token]) token = one;
    softmax(logits);
    let entropy = 0;
    for (const probability of logits) if (probability > 0) entropy -= probability * Math.log(probability);
    return { entropy, token };
  }
}
