// Signs in with a key file, as ZITADEL's older client for Node.js does it.
import { ServiceAccount } from "@zitadel/node/dist/credentials/index.js";

/** Return the token that the service gives for a key. */
export async function callThem(job) {
  return { token: await ServiceAccount.fromJsonString(job.key).authenticate(job.address) };
}
