// Records what BullMQ tells a processor, a backoff strategy and a `failed` handler, and how long Redis then holds the
// job, in several versions.
//
//     node record.mjs PORT_OF_REDIS DELAYS_AS_JSON > recording.tsv
import { readFileSync } from "node:fs";

import { Redis } from "ioredis";

const [port, delays] = process.argv.slice(2).map((argument) => JSON.parse(argument));
const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
const redis = new Redis(connection);

const custom = { type: "custom" };
const scenarios = {
  policy: { job: { attempts: 3, backoff: custom }, strategy: (attemptsMade) => delays[attemptsMade - 1] },
  // The formula of a site that took the callback's counter for the attempts before this one.
  "site-1": { job: { attempts: 3, backoff: custom }, strategy: (attemptsMade) => 2 ** attemptsMade * 250 },
  exponential: { job: { attempts: 3, backoff: { type: "exponential", delay: 250 } } },
  "exponential-jitter": { job: { attempts: 3, backoff: { type: "exponential", delay: 125, jitter: 0.2 } }, draw: 0.25 },
  "no-attempts": { job: { backoff: custom }, strategy: () => 250 },
  "minus-one": { job: { attempts: 3, backoff: custom }, strategy: () => -1 },
};

async function record({ Queue, Worker }, version, name, { job: options, strategy }) {
  const seen = { processor: [], callback: [], failed: [], held: [] };
  const queue = new Queue(`${name}-${version.replaceAll(".", "-")}`, { connection });
  const settings = strategy && {
    backoffStrategy: (attemptsMade) => {
      seen.callback.push(attemptsMade);
      return strategy(attemptsMade);
    },
  };
  const processor = async (job) => {
    seen.processor.push(job.attemptsMade);
    throw new Error("always");
  };
  const worker = new Worker(queue.name, processor, { connection, settings });
  const ended = new Promise((resolve, reject) => {
    worker.on("error", reject);
    worker.on("failed", async (job) => {
      seen.failed.push(job.attemptsMade);
      if (await redis.zscore(queue.toKey("failed"), job.id)) return resolve();
      // Version 3 keeps only the time at which the job is due, and its `delay` stays 0.
      const delay = await redis.hget(queue.toKey(job.id), "delay");
      if (delay !== "0") seen.held.push(delay);
    });
  });
  await queue.add("job", {}, options);
  await ended;
  await Promise.all([worker.close(), queue.close()]);
  return [version, name, ...Object.values(seen).map((values) => values.join(",") || "-")].join("\t");
}

const versions = await Promise.all(
  ["bullmq3", "bullmq4", "bullmq5", "bullmq6"].map(async (alias) => {
    const manifest = new URL(`node_modules/${alias}/package.json`, import.meta.url);
    return { version: JSON.parse(readFileSync(manifest)).version, bullmq: await import(alias) };
  }),
);
const lines = [];
for (const [name, scenario] of Object.entries(scenarios)) {
  const random = Math.random;
  if (scenario.draw !== undefined) Math.random = () => scenario.draw;
  lines.push(...(await Promise.all(versions.map(({ version, bullmq }) => record(bullmq, version, name, scenario)))));
  Math.random = random;
}
redis.disconnect();
console.log(["version\tscenario\tprocessor\tcallback\tfailed\theld", ...lines.sort()].join("\n"));
