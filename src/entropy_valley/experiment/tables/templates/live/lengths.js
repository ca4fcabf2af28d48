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

/** The choice of each length method, from top to bottom, and the canvases that EV has compared, ascending:
 * `{ choices: [{ method, length }], candidates: [{ length, slots, mean }] }`. Of equal entropies EV takes the shorter
 * canvas. `probe` reads an all-mask canvas of a length. */
function choose(ratios, sourceTokens, probe) {
  const lengths = new Set(ratios.map((ratio) => candidateLength(ratio, sourceTokens, true)));
  const candidates = [...lengths]
    .sort((one, other) => one - other)
    .map((length) => ({ length, slots: probe(length), mean: meanEntropy(probe(length)) }));
  const valley = candidates.reduce((best, one) => (one.mean < best.mean ? one : best));
  // EV's ratios are percentiles of the training pairs; the one in the middle is the median, which is Ratio's.
  const median = ratios[(ratios.length - 1) / 2];
  const choices = [
    { method: "Ratio", length: candidateLength(median, sourceTokens, false) },
    { method: "Ratio + EOS", length: candidateLength(median, sourceTokens, true) },
    { method: "EV", length: valley.length },
  ];
  return { choices, candidates };
}
