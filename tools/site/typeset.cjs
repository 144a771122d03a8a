// Typesets formulas with KaTeX: on standard input an object of lists of TeX, on
// standard output the same with HTML. The argument is the folder node_modules.
const fs = require("fs");
const katex = require(process.argv[2] + "/katex");

const formulas = JSON.parse(fs.readFileSync(0, "utf8"));
for (const [name, lines] of Object.entries(formulas)) {
  formulas[name] = lines.map((tex) => {
    try {
      return katex.renderToString(tex, { displayMode: true, strict: "error" });
    } catch (error) {
      console.error(`${name}: ${error.message}`);
      process.exit(1);
    }
  });
}
console.log(JSON.stringify(formulas));
