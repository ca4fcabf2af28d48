// Answers requests by the code and the data of a live page, without a browser: node translate_by_page.js live.html
//
// Each line of the input is a request in JSON, and each line of the output its answer: of `{ direction, source }` what the
// page's worker says of the lengths, and `texts` by method; of `{ text }` its tokens, and the text that these are.
"use strict";
const fs = require("node:fs");
const vm = require("node:vm");

const page = fs.readFileSync(process.argv[2], "utf8");
const script = (id) => page.match(new RegExp(`id="${id}">(.*?)</script>`, "s"))[1];
const data = JSON.parse(script("data"));
const { load, receive, translation } = vm.runInThisContext(
  `(() => { ${script("worker")}; return { load, receive, translation }; })()`,
);
for (const [, file, part] of page.matchAll(/data-file="(.*?)">(.*?)<\/script>/g)) receive(file, part);

(async () => {
  const { tokenizer, model } = await load(data);
  for (const line of fs.readFileSync(0, "utf8").trim().split("\n")) {
    const { direction, source, text } = JSON.parse(line);
    if (text !== undefined) {
      const tokens = tokenizer.encode(text);
      console.log(JSON.stringify({ tokens, text: tokenizer.decode(tokens) }));
    } else {
      const [lengths, ...steps] = translation(tokenizer, await model(direction), source);
      const ends = steps.flatMap(({ frames }) => frames.filter((frame) => frame.text !== undefined));
      const texts = Object.fromEntries(ends.map(({ method, text }) => [method, text]));
      console.log(JSON.stringify({ ...lengths, texts }));
    }
  }
})();
