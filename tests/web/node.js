// Reads a job from stdin, has the program named by the argument do it, and writes what came of it.
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";

const { callThem } = await import(process.argv[2]);
const job = JSON.parse(await text(process.stdin));
const result = await callThem(job, new Uint8Array(await readFile(job.descriptors)));
process.stdout.write(JSON.stringify(result));
