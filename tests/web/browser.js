// Gets its job from the server of the page, and sends it what came of it.
const report = (result) =>
  fetch("/result", { method: "POST", body: JSON.stringify(result) }).then(() => {
    document.getElementById("result").textContent = "done";
  });

try {
  const { callThem } = await import("./calls.js");
  const job = await (await fetch("/job")).json();
  const descriptors = new Uint8Array(await (await fetch("/descriptors")).arrayBuffer());
  await report({ origin: location.origin, result: await callThem(job, descriptors) });
} catch (error) {
  await report({ origin: location.origin, failure: String(error?.stack ?? error) });
}
