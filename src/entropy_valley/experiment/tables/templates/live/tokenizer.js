// The checkpoint's tokenizer, a byte-level BPE: text is cut into words, each word's bytes are joined into tokens.

// GPT-2's pattern. What JavaScript calls \s is not quite what Unicode calls white space.
const WORDS = new RegExp(
  String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+` +
    String.raw`|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+`,
  "gu",
);

/** The character that stands for each byte in the vocabulary: itself where it can be seen, else one from U+0100 on. */
function charactersOfBytes() {
  const visible = (byte) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(visible(byte) ? byte : next++));
}

class Tokenizer {
  /** `json` is the content of tokenizer.json. */
  constructor(json) {
    this.ids = json.model.vocab;
    this.tokens = Object.keys(this.ids).sort((one, other) => this.ids[one] - this.ids[other]);
    this.special = new Set(json.added_tokens.map((token) => token.id));
    this.ranks = new Map(json.model.merges.map((pair, rank) => [pair.join(" "), rank]));
    this.characters = charactersOfBytes();
    this.bytes = new Map(this.characters.map((character, byte) => [character, byte]));
  }

  /** Token ids of a text. Names of special tokens in it are text. */
  encode(text) {
    return (text.match(WORDS) ?? []).flatMap((word) => this.#joined(word).map((token) => this.ids[token]));
  }

  #joined(word) {
    let parts = Array.from(new TextEncoder().encode(word), (byte) => this.characters[byte]);
    const rank = (at) => this.ranks.get(`${parts[at]} ${parts[at + 1]}`) ?? Infinity;
    for (;;) {
      let first = 0;
      for (let at = 1; at + 1 < parts.length; at++) if (rank(at) < rank(first)) first = at;
      if (rank(first) === Infinity) return parts;
      parts.splice(first, 2, parts[first] + parts[first + 1]);
    }
  }

  /** The text of tokens, without special ones. */
  decode(ids) {
    const characters = ids.filter((id) => !this.special.has(id)).flatMap((id) => [...this.tokens[id]]);
    const bytes = Uint8Array.from(characters, (character) => this.bytes.get(character));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }

  /** A token as it is shown alone: a blank before it becomes visible, and parts of a character become "…". */
  word(id) {
    return this.decode([id])
      .replace(/^ /, "·")
      .replace(/\uFFFD+/g, "…");
  }
}
