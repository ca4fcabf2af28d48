// Algorithm 1 of the paper: T steps, each reveals the slots whose distributions have the lowest entropy (MED).

/** How many slots each step reveals: as equal as possible, the earlier ones more. */
function revealCounts(length, steps) {
  return Array.from({ length: steps }, (_, step) => Math.floor(length / steps) + (step < length % steps ? 1 : 0));
}

/** Fills `length` masks behind a prompt. Returns the tokens before the first EOS, and a frame for each step that
 * reveals anything: the canvas after it, the slots it revealed, and the entropies of the masked slots before it. */
function denoise(model, prompt, length, steps) {
  let canvas = Array(length).fill(model.mask);
  const frames = [];
  for (const count of revealCounts(length, steps).filter(Boolean)) {
    const slots = model.read(prompt, canvas);
    const masked = canvas.flatMap((token, slot) => (token === model.mask ? [slot] : []));
    masked.sort((one, other) => slots[one].entropy - slots[other].entropy || one - other);
    const revealed = masked.slice(0, count);
    canvas = canvas.map((token, slot) => (revealed.includes(slot) ? slots[slot].token : token));
    frames.push({ canvas, revealed, entropies: slots.map((slot) => slot?.entropy) });
  }
  const end = canvas.indexOf(model.eos);
  return { tokens: end < 0 ? canvas : canvas.slice(0, end), frames };
}
