// ZITADEL's client for Node.js of today, which calls by the package connect-node.
import { ConnectError } from "@connectrpc/connect";
import { createServerTransport } from "@zitadel/client/node";
import { createManagementServiceClient } from "@zitadel/client/v1";
import { ErrorDetailSchema } from "@zitadel/proto/zitadel/message_pb.js";
import { readFileSync } from "node:fs";
import { exercise } from "./exercise.js";

/** Exercise unary calls. */
export async function callThem(job) {
  const more = {
    baseUrl: job.address,
    nodeOptions: job.certificate ? { ca: readFileSync(job.certificate) } : {},
  };
  const known = createManagementServiceClient(createServerTransport(job.token, more));
  const headers = { "x-zitadel-orgid": job.organization };
  // The transport adds its token to each call that has none.
  const nobody = { ...headers, authorization: "Bearer nothing" };
  const call = (name, fields, { isAnonymous, ...options } = {}) =>
    known[name](fields, { headers: isAnonymous ? nobody : headers, ...options });
  return exercise(job, call, refusal);
}

function refusal(error) {
  const found = ConnectError.from(error);
  const details = found.findDetails(ErrorDetailSchema);
  return { code: found.code, message: found.rawMessage, details: details.map(({ id }) => id) };
}
