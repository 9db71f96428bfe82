// Prints the numbers of all policies, as they are in this engine. Arguments: the module, and how many policies.
import { readFile } from "node:fs/promises";

const [, , path, count] = process.argv;
const { instance } = await WebAssembly.instantiate(await readFile(path));
const lines = [];
for (let number = 0; number < Number(count); number++) {
  const digest = BigInt.asUintN(64, instance.exports.digest(number));
  lines.push(`${number} ${digest.toString(16).padStart(16, "0")}`);
}
console.log(lines.join("\n"));
