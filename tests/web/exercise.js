// What each client of gRPC over HTTP/2 is made to do, and what an error of it says. All calls of a
// client go over one connection.
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema, anyUnpack } from "@bufbuild/protobuf/wkt";
import { setMaxListeners } from "node:events";

const AT_ONCE = 200; // more than the calls that a server takes on one connection at one time
const LARGE_AT_ONCE = 20;
const ALL = { query: { limit: 1000 } };

/**
 * Call, and return what came of it, as JSON can carry it.
 *
 * `call` takes the name of a method, the fields of its request, and options: `isAnonymous` without
 * a token, `timeoutMs`, and `signal` to cancel. `refusal` makes an error a code, a message and
 * details.
 */
export async function exercise(job, call, refusal) {
  const refused = (calling) => calling.then(() => ({ code: 0 }), refusal);
  const together = (count, make) => Promise.all(Array.from({ length: count }, make));
  const action = { name: job.name, script: "function f(ctx, api) {}" };

  const unknown = await together(AT_ONCE, () =>
    refused(call("getIAM", {}, { isAnonymous: true })),
  );
  const instances = await together(AT_ONCE, () => call("getIAM", {}));
  const created = await call("createAction", action);
  const listed = await call("listActions", ALL);
  const late = await refused(call("listActions", ALL, { timeoutMs: 1 }));
  const cancelled = await together(5, () => cancelAfterTheFirst(call, refused));
  const read = await together(AT_ONCE, () => call("getAction", { id: created.id }));
  return {
    unknown: unknown.map((found) => found.code),
    instances: instances.map((found) => found.iamProjectId !== ""),
    owner: created.details.resourceOwner,
    lengths: listed.result.map((found) => found.script.length),
    taken: await refused(call("createAction", action)),
    nobody: unknown.at(-1),
    late: late.code,
    cancelled: cancelled.flat(),
    names: read.map((found) => found.action.name),
  };
}

/** Ask for large answers at once, cancel once one of them came, and return what came of all. */
async function cancelAfterTheFirst(call, refused) {
  const controller = new AbortController();
  setMaxListeners(LARGE_AT_ONCE, controller.signal);
  const calls = Array.from({ length: LARGE_AT_ONCE }, () =>
    call("listActions", ALL, { signal: controller.signal }),
  );
  const codes = Promise.all(calls.map((calling) => refused(calling).then(({ code }) => code)));
  await Promise.race(calls);
  controller.abort();
  return codes;
}

/** Return a function that reads the bytes of a google.rpc.Status. */
export function statusReader(descriptors) {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptors));
  return (bytes) =>
    fromBinary(registry.getMessage("google.rpc.Status"), bytes).details.map(
      (detail) => anyUnpack(detail, registry).id,
    );
}
