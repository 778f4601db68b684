// gRPC's own client for Node.js, whose stubs are made of the protos.
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { exercise, statusReader } from "./exercise.js";

const MANAGEMENT = "zitadel.management.v1.ManagementService";

/** Exercise unary calls, and both methods that stream. */
export async function callThem(job, descriptors) {
  const loaded = loadSync(
    [
      "zitadel/management.proto",
      "grpc/health/v1/health.proto",
      "grpc/reflection/v1/reflection.proto",
    ],
    { includeDirs: [job.protos], longs: String, enums: String, defaults: true },
  );
  const packages = grpc.loadPackageDefinition(loaded);
  const credentials = job.certificate
    ? grpc.credentials.createSsl(readFileSync(job.certificate))
    : grpc.credentials.createInsecure();
  const options = job.compression
    ? { "grpc.default_compression_algorithm": grpc.compressionAlgorithms[job.compression] }
    : {};
  const management = new packages.zitadel.management.v1.ManagementService(
    job.target,
    credentials,
    options,
  );
  const channelOverride = management.getChannel();
  const health = new packages.grpc.health.v1.Health(job.target, credentials, { channelOverride });
  const reflection = new packages.grpc.reflection.v1.ServerReflection(job.target, credentials, {
    channelOverride,
  });
  const detailsOf = statusReader(descriptors);
  const refusal = (error) => ({
    code: error.code,
    message: error.details,
    details: error.metadata.get("grpc-status-details-bin").flatMap(detailsOf),
  });
  const watch = health.watch({ service: MANAGEMENT });
  const [first] = await once(watch, "data");
  const result = await exercise(job, (...words) => call(management, job, ...words), refusal);
  const streamed = {
    watched: [first.status, await codeAfter(watch, () => watch.cancel())],
    lateWatch: await codeAfter(health.watch({ service: "" }, { deadline: Date.now() + 300 })),
    reflected: await reflected(reflection),
  };
  management.close();
  return { ...result, ...streamed };
}

/** Call a method by its name in JavaScript. */
function call(stub, job, name, fields, { isAnonymous, timeoutMs, signal } = {}) {
  const metadata = new grpc.Metadata();
  metadata.set("x-zitadel-orgid", job.organization);
  if (!isAnonymous) metadata.set("authorization", `Bearer ${job.token}`);
  const options = timeoutMs ? { deadline: Date.now() + timeoutMs } : {};
  return new Promise((resolve, reject) => {
    const method = name[0].toUpperCase() + name.slice(1);
    const made = stub[method](fields, metadata, options, (error, answer) =>
      error ? reject(error) : resolve(answer),
    );
    signal?.addEventListener("abort", () => made.cancel());
  });
}

/** Return the code that a stream ends with, after a step. */
async function codeAfter(stream, step = () => {}) {
  const ended = new Promise((resolve) => stream.once("error", resolve));
  stream.resume();
  step();
  return (await ended).code;
}

/** Ask for services, then for a file, on one stream; return their number, and that of the files. */
async function reflected(reflection) {
  const stream = reflection.serverReflectionInfo();
  stream.write({ listServices: "" });
  const [listed] = await once(stream, "data");
  stream.write({ fileContainingSymbol: MANAGEMENT });
  const [files] = await once(stream, "data");
  stream.end();
  const [status] = await once(stream.resume(), "status");
  return {
    names: listed.listServicesResponse.service.map((found) => found.name),
    files: files.fileDescriptorResponse.fileDescriptorProto.length,
    code: status.code,
  };
}
