// The page's side of the worker: starts it, sends one job at a time, and drops jobs that a newer one replaces.

export class Engine {
  #worker;
  #isReady = false;
  #running = null;
  #waiting = new Map();
  #timer;
  #on;

  // `on` has the functions ready(description), result(job, result), expired(job), failed(message) and busy(command or null).
  constructor(on) {
    this.#on = on;
    this.restart();
  }

  // Ends the running job, forgets all others, and starts Python again.
  restart() {
    this.#end();
    // A worker from a blob inherits the Content-Security-Policy of the page, so it cannot reach other hosts either.
    // A worker from a file would have no policy.
    const script = `import ${JSON.stringify(new URL("worker.js", import.meta.url).href)};`;
    const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    this.#worker = new Worker(url, { type: "module" });
    this.#worker.onmessage = ({ data }) => this.#receive(data);
    this.#worker.onerror = (event) => this.#fail(event.message || "a file of the playground is missing");
  }

  // If a job has `seconds` and takes longer, the engine restarts.
  run(job) {
    this.#waiting.set(job.command, job);
    this.#next();
  }

  #next() {
    if (!this.#isReady || this.#running) return;
    const [job] = this.#waiting.values();
    this.#on.busy(job?.command ?? null);
    if (!job) return;
    this.#waiting.delete(job.command);
    this.#running = job;
    this.#worker.postMessage(job);
    if (job.seconds) this.#timer = setTimeout(() => this.#expire(job), job.seconds * 1000);
  }

  #expire(job) {
    this.restart();
    this.#on.expired(job);
  }

  #receive(data) {
    if (data.type === "failed") return this.#fail(data.message);
    if (data.type === "ready") {
      this.#isReady = true;
      this.#on.ready(data);
    } else {
      const job = this.#running;
      this.#running = null;
      clearTimeout(this.#timer);
      this.#on.result(job, data);
    }
    this.#next();
  }

  #fail(message) {
    this.#end();
    this.#on.failed(message);
  }

  #end() {
    this.#worker?.terminate();
    clearTimeout(this.#timer);
    this.#isReady = false;
    this.#running = null;
    this.#waiting.clear();
  }
}
