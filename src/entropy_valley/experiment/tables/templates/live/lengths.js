// The length methods: which canvas lengths are probed, and which one is taken.

/** max{1, floor(r · |x|)} slots, and one more for the EOS where `eosSlot` says so. Ratios have at most six decimals:
 * the product is that of the decimals, not of their nearest binary numbers. */
function candidateLength(ratio, sourceTokens, eosSlot) {
  const product = Math.floor((Math.round(ratio * 1e6) * sourceTokens) / 1e6);
  return Math.max(1, product) + (eosSlot ? 1 : 0);
}

/** Mean entropy (nats) over all slots but the last, the one of the EOS; six decimals. */
function meanEntropy(slots) {
  const content = slots.slice(0, -1);
  return Math.round((content.reduce((sum, slot) => sum + slot.entropy, 0) / content.length) * 1e6) / 1e6;
}

/** How many adjacent slots have the same most probable token: on a canvas that is too long, two slots share a word. */
function repeats(slots) {
  return slots.filter((slot, at) => at > 0 && slot.token === slots[at - 1].token).length;
}

// --- EV fit: entropy, prior and repeats, weighed by a conditional logit.

/** How many slots are expected by the length line, and how many lie within a standard deviation of it. */
function lengthLine({ intercept, slope, variance }, sourceTokens) {
  return { expected: intercept + slope * sourceTokens, deviation: Math.sqrt(variance * Math.max(1, sourceTokens)) };
}

/** The `count` lengths nearest to the expected one; of two at one distance the shorter. Two slots are the least. */
function nearest(expected, count) {
  const first = Math.max(2, Math.round(expected) - count);
  const near = Array.from({ length: 2 * count + 1 }, (_, more) => first + more);
  const distance = (length) => Math.abs(length - expected);
  return near.sort((one, other) => distance(one) - distance(other) || one - other).slice(0, count);
}

/** -log P of each length, P being the conditional logit's probability; six decimals. */
function fittedScores(candidates, { line, weights }, sourceTokens) {
  const { expected, deviation } = lengthLine(line, sourceTokens);
  const costs = candidates.map(({ length, slots }) => {
    const z = deviation ? (length - expected) / deviation : 0;
    const features = { entropy: meanEntropy(slots), z, z_squared: z ** 2, repeats: repeats(slots) };
    return Object.entries(weights).reduce((sum, [name, weight]) => sum + weight * features[name], 0);
  });
  const least = Math.min(...costs);
  const sum = costs.reduce((shares, cost) => shares + Math.exp(least - cost), 0);
  return costs.map((cost) => Math.round((cost - least + Math.log(sum)) * 1e6) / 1e6);
}

// --- By the class of a method: the lengths that it probes, and a score of each of these; the lowest is taken. A method
// without scores proposes one length, and reads nothing.
const LENGTH_METHODS = {
  ratio: {
    propose: ({ settings }, sourceTokens) => [
      candidateLength(settings.ratios, sourceTokens, settings.reserve_eos_slot),
    ],
  },
  ev: {
    propose: ({ settings }, sourceTokens) => settings.ratios.map((ratio) => candidateLength(ratio, sourceTokens, true)),
    scores: (method, sourceTokens, candidates) => candidates.map(({ slots }) => meanEntropy(slots)),
  },
  ev_fit: {
    propose: ({ settings, fit }, sourceTokens) =>
      nearest(lengthLine(fit.line, sourceTokens).expected, settings.candidates),
    scores: ({ fit }, sourceTokens, candidates) => fittedScores(candidates, fit, sourceTokens),
  },
};

/** The choice of a method: `{ length, candidates, scores }`, candidates ascending; of equal scores the shorter length.
 * `probe` reads an all-mask canvas of a length. */
function choose(method, sourceTokens, probe) {
  const { propose, scores: score } = LENGTH_METHODS[method.class];
  const candidates = [...new Set(propose(method, sourceTokens))].sort((one, other) => one - other);
  if (!score) return { length: candidates[0], candidates, scores: [] };
  const readings = candidates.map((length) => ({ length, slots: probe(length) }));
  const scores = score(method, sourceTokens, readings);
  return { length: candidates[scores.indexOf(Math.min(...scores))], candidates, scores };
}
