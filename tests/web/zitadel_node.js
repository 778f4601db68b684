// ZITADEL's older client for Node.js, which calls by the package nice-grpc, and that by grpc-js.
// It trusts the certificates of the file that GRPC_DEFAULT_SSL_ROOTS_FILE_PATH names.
import {
  createAccessTokenInterceptor,
  createManagementClient,
} from "@zitadel/node/dist/api/index.js";
import { exercise, statusReader } from "./exercise.js";

/** Exercise unary calls. */
export async function callThem(job, descriptors) {
  const management = createManagementClient(
    job.address,
    headerInterceptor(job.organization),
    createAccessTokenInterceptor(job.token),
  );
  const detailsOf = statusReader(descriptors);
  const call = (name, fields, options = {}) => {
    let trailers;
    const onTrailer = (found) => (trailers = found);
    return management[name](fields, { ...options, onTrailer }).catch((error) => {
      const details = trailers?.getAll("grpc-status-details-bin").flatMap(detailsOf);
      throw Object.assign(error, { found: details });
    });
  };
  return exercise(job, call, refusal);
}

/** Return what adds headers to a call, after the token. The client has no deadlines of its own. */
function headerInterceptor(organization) {
  return async function* (call, { isAnonymous, timeoutMs, ...options }) {
    options.metadata.set("x-zitadel-orgid", organization);
    if (isAnonymous) options.metadata.delete("authorization");
    if (timeoutMs) options.metadata.set("grpc-timeout", `${timeoutMs}m`);
    return yield* call.next(call.request, options);
  };
}

function refusal(error) {
  const code = error.name === "AbortError" ? 1 : error.code;
  return { code, message: error.details, details: error.found };
}
