// Calls the module: node run.mjs MODULE CHECKSUM
import { readFileSync } from "node:fs";

const [module, expected] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(module), {});
const { checksum, refuses_to_make_a_key } = instance.exports;
if (refuses_to_make_a_key() !== 1) {
  throw new Error("a filter got a key where there are no random numbers");
}
const found = checksum() >>> 0;
if (found !== Number(expected) || found === 0) {
  throw new Error(`the bytes of the filters have the checksum ${found}, not ${expected}`);
}
