// The three operations of the source, called by a public gRPC-web client. Runs under Node and in
// a browser: both import this file, and hand over what they alone know how to get.
import { createClient, ConnectError, Code } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema, anyUnpack } from "@bufbuild/protobuf/wkt";

const MANAGEMENT = "zitadel.management.v1.ManagementService";
const ADMIN = "zitadel.admin.v1.AdminService";

/**
 * Call, and return what came of it, as JSON can carry it.
 *
 * `job` has the server's address, a token, and ids of a project and an identity provider;
 * `descriptors` are the bytes of the descriptor set.
 */
export async function callThem(job, descriptors) {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptors));
  const transport = createGrpcWebTransport({ baseUrl: job.address, useBinaryFormat: true });
  const management = createClient(registry.getService(MANAGEMENT), transport);
  const admin = createClient(registry.getService(ADMIN), transport);
  const headers = { authorization: `Bearer ${job.token}`, "x-service-orgid": job.organization };
  const config = {
    idpId: job.idp,
    jwtEndpoint: "https://login.example.com/jwt",
    issuer: `https://${job.name}.example.com`,
    keysEndpoint: "https://login.example.com/keys",
    headerName: "x-token",
  };
  const app = {
    projectId: job.project,
    name: job.name,
    redirectUris: [`https://${job.name}.example.com/cb`],
    clockSkew: { seconds: 1n, nanos: 500000000 },
  };
  const action = { name: job.name, script: "function f(ctx, api) {}", timeout: { seconds: 5n } };
  const updated = await management.updateOrgIDPJWTConfig(config, { headers });
  const again = await admin.updateIDPJWTConfig(config, { headers });
  const made = await management.addOIDCApp(app, { headers });
  const created = await management.createAction(action, { headers });
  const listed = await management.listActions({}, { headers });
  return {
    updated: String(updated.details.sequence),
    again: String(again.details.sequence),
    app: { id: made.appId, clientId: made.clientId, secret: made.clientSecret.length },
    action: created.id,
    owner: created.details.resourceOwner,
    names: listed.result.map((found) => found.name),
    taken: await refusal(registry, () => management.createAction(action, { headers })),
    nobody: await refusal(registry, () => management.createAction(action)),
    stale: await refusal(registry, () =>
      management.deleteAction({ id: created.id }, { headers: { ...headers, "if-match": '"1"' } }),
    ),
    late: await refusal(registry, () => management.listActions({}, { headers, timeoutMs: 1 })),
  };
}

/** Return code, message and detail of a call that must be refused. */
async function refusal(registry, call) {
  try {
    await call();
  } catch (error) {
    const found = ConnectError.from(error);
    const schema = registry.getMessage("zitadel.v1.ErrorDetail");
    const details = found.findDetails(schema).map((detail) => detail.id);
    return { code: Code[found.code], message: found.rawMessage, details };
  }
  return { code: "none" };
}
