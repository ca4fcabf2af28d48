// Algorithm 1 of the paper: T steps, each reveals the slots whose distributions have the lowest entropy (MED).

const STEPS = 32; // T

/** How many slots each step reveals: as equal as possible, the earlier ones more. */
function revealCounts(length, steps) {
  return Array.from({ length: steps }, (_, step) => Math.floor(length / steps) + (step < length % steps ? 1 : 0));
}

/** Fills masks behind a prompt; `slots` is the model's reading of all of them. Yields a frame for each step that reveals
 * anything: the canvas after it, the slots it revealed, and the entropies of the masked slots before it. */
function* denoise(model, prompt, slots) {
  const canvas = Array(slots.length).fill(model.mask);
  for (const count of revealCounts(canvas.length, STEPS).filter(Boolean)) {
    const masked = canvas.flatMap((token, slot) => (token === model.mask ? [slot] : []));
    masked.sort((one, other) => slots[one].entropy - slots[other].entropy || one - other);
    const revealed = masked.slice(0, count);
    for (const slot of revealed) canvas[slot] = slots[slot].token;
    yield { canvas: [...canvas], revealed, entropies: slots.map((slot) => slot?.entropy) };
    if (canvas.includes(model.mask)) slots = model.read(prompt, canvas);
  }
}
