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

/** The key of the lowest score; the shorter length on a tie. */
function lowest(scores) {
  return Number(Object.keys(scores).reduce((best, length) => (scores[length] < scores[best] ? length : best)));
}

// By the class of a method: the lengths it probes, and the scores of these; the lowest is taken. A method without
// probes proposes one length.
const LENGTH_METHODS = {
  ratio: {
    propose: (settings, sourceTokens) => [candidateLength(settings.ratios, sourceTokens, settings.reserve_eos_slot)],
  },
  ev: {
    propose: (settings, sourceTokens) => settings.ratios.map((ratio) => candidateLength(ratio, sourceTokens, true)),
    score: (settings, sourceTokens, slots) => meanEntropy(slots),
  },
};

/** The choice of a method: `{ length, candidates, scores }`, candidates ascending. `probe` reads an all-mask canvas of
 * a length. */
function choose(method, sourceTokens, probe) {
  const { propose, score } = LENGTH_METHODS[method.class];
  const candidates = [...new Set(propose(method.settings, sourceTokens))].sort((one, other) => one - other);
  if (!score) return { length: candidates[0], candidates, scores: [] };
  const scores = {};
  for (const length of candidates) scores[length] = score(method.settings, sourceTokens, probe(length), length);
  return { length: lowest(scores), candidates, scores: candidates.map((length) => scores[length]) };
}
