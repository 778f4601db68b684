// Reads a job from stdin, and writes what came of it.
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { callThem } from "./calls.js";

const job = JSON.parse(await text(process.stdin));
const result = await callThem(job, new Uint8Array(await readFile(job.descriptors)));
process.stdout.write(JSON.stringify(result));
