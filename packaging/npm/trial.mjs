// Installs packed packages into an empty directory, without the network, runs them there and removes them.
//
// usage: node trial.mjs PACKAGE.tgz...

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const packages = process.argv.slice(2).map((file) => path.resolve(file));
const home = mkdtempSync(path.join(os.tmpdir(), "minder npm "));
const directory = home;
// The records of the runs, and the files of npm, are below this directory, too.
const env = { ...process.env, HOME: home, XDG_STATE_HOME: path.join(home, "state"), TERM: "dumb" };
for (const name of Object.keys(env)) {
  if (/^(npm_|MINDER_|XDG_(CONFIG|DATA|CACHE))/.test(name)) {
    delete env[name];
  }
}

function run(program, args) {
  const done = spawnSync(program, args, { cwd: directory, env, encoding: "utf8" });
  return { status: done.status, signal: done.signal, out: done.stdout, err: done.stderr };
}

function npm(...args) {
  const done = run("npm", [...args, "--offline", "--no-audit", "--no-fund"]);
  assert.equal(done.status, 0, done.err);
}

/** A job that ends in its own time when it is asked to, and says so. `sleep` finds it. */
const SECONDS = `1${process.pid}.5`;
const JOB = `trap 'echo asked; sleep 0.5; echo done; exit 0' INT TERM HUP; sleep ${SECONDS} & echo ready >ready; wait; : {}`;

/** Returns the processes of the job, and of the program. */
function remaining() {
  const listed = spawnSync("ps", ["-e", "-o", "pid=,args="], { encoding: "utf8" }).stdout;
  return listed.split("\n").filter((line) => line.includes(SECONDS) || line.includes(home));
}

async function ends(what) {
  for (let round = 0; round < 50; round++) {
    if (remaining().length === 0) {
      return;
    }
    await sleep(100);
  }
  assert.fail(`${what} left:\n${remaining().join("\n")}`);
}

/** Waits until the job runs. */
async function isReady(child) {
  const file = path.join(directory, "ready");
  for (let round = 0; round < 200; round++) {
    try {
      readFileSync(file);
      rmSync(file);
      return;
    } catch {
      assert.equal(child.exitCode, null, "the run ended before its job began");
      await sleep(50);
    }
  }
  assert.fail("the job did not begin");
}

/** Starts a run, calls `act` while its job runs, and returns how it ended. */
async function interrupted(program, args, act) {
  // In its own process group.
  const child = spawn(program, args, { cwd: directory, env, stdio: "pipe", detached: true });
  let out = "";
  child.stdout.on("data", (text) => (out += text));
  child.stderr.on("data", (text) => (out += text));
  const end = new Promise((resolve) => child.on("close", (status, signal) => resolve({ status, signal })));
  await isReady(child);
  await act(child);
  return { ...(await end), out };
}

const script = path.join("node_modules", "minder", "bin", "minder.js");
const RUN = ["run", "--no-record", JOB, ":::", "x"];

const checks = {
  "is installed"() {
    writeFileSync(path.join(directory, "package.json"), "{}");
    npm("install", ...packages);
  },
  "runs jobs"() {
    writeFileSync(path.join(directory, "a b"), "12345");
    const done = run("npx", ["minder", "run", "wc -c {}", ":::", "a b", "package.json"]);
    assert.equal(done.status, 0, done.err);
    assert.match(done.out, /^5 a b$/m);
  },
  "has the exit status of the program"() {
    assert.equal(run("npx", ["minder", "run", "exit {}", ":::", "0", "7", "3"]).status, 2);
    assert.equal(run("npx", ["minder", "--no-such-flag"]).status, run(
      path.join("node_modules", "minder-linux-x64", "bin", "minder"), ["--no-such-flag"]).status);
  },
  async "ends its jobs when npx is signalled"() {
    for (const signal of ["SIGINT", "SIGTERM"]) {
      const end = await interrupted("npx", ["minder", ...RUN], (child) => process.kill(-child.pid, signal));
      assert.notEqual(end.status, 0, signal);
      assert.match(end.out, /asked\ndone/, `${signal}: the job was not asked once`);
      await ends(signal);
    }
    // Its shell dies of this one.
    const end = await interrupted("npx", ["minder", ...RUN], (child) => child.kill("SIGTERM"));
    assert.match(end.out, /asked\ndone/, "the job was not asked once");
    await ends("SIGTERM for npx alone");
  },
  async "dies by the signal that the program died by"() {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      const end = await interrupted("node", [script, ...RUN], (child) => child.kill(signal));
      assert.equal(end.signal, signal, `status ${end.status}`);
      assert.match(end.out, /asked\ndone/, `${signal}: the job was not asked once`);
      await ends(signal);
    }
    const killed = await interrupted("node", [script, ...RUN], (child) => {
      const pids = spawnSync("ps", ["--ppid", String(child.pid), "-o", "pid="], { encoding: "utf8" });
      process.kill(Number(pids.stdout), "SIGKILL");
    });
    assert.equal(killed.signal, "SIGKILL");
    await ends("SIGKILL");
  },
  async "passes a Ctrl-C of the terminal on once"() {
    for (const program of ["npx minder", `node ${script}`]) {
      const line = [program, ...RUN.map((word) => `'${word.replaceAll("'", "'\\''")}'`)].join(" ");
      // `script` gives it a terminal, whose keys are its standard input.
      const end = await interrupted("script", ["-qec", line, "/dev/null"], (child) => {
        child.stdin.write("\x03");
      });
      assert.match(end.out, /asked\r?\n(.*\n)*done/, `${program}: the job was not asked once:\n${end.out}`);
      await ends("Ctrl-C");
    }
  },
  "names the package that is missing"() {
    rmSync(path.join(directory, "node_modules", "minder-linux-x64"), { recursive: true });
    const done = run("npx", ["minder", "--version"]);
    assert.equal(done.status, 127);
    assert.match(done.err, /^minder: the package minder-linux-x64 is not installed; hint: npm install .*\n$/);
    npm("install", ...packages);
  },
  "leaves nothing"() {
    npm("uninstall", "minder", "minder-linux-x64");
    const left = readdirSync(path.join(directory, "node_modules"), { recursive: true });
    assert.deepEqual(left.filter((name) => /minder/.test(name)), []);
    assert.deepEqual(remaining(), []);
  },
};

try {
  for (const [name, check] of Object.entries(checks)) {
    await check();
    console.log(`ok  ${name}`);
  }
} finally {
  rmSync(home, { recursive: true });
}
