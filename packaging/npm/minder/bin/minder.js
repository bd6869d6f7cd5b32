#!/usr/bin/env node
"use strict";

// Runs the program of the package for this platform, with the same streams, signals and exit status.

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const path = require("node:path");

const { optionalDependencies } = require("../package.json");

function fail(reason) {
  process.stderr.write(`minder: ${reason}\n`);
  process.exit(127);
}

/** Returns the path of the program. */
function findProgram() {
  const platform = `${process.platform}-${process.arch}`;
  const name = `minder-${platform}`;
  if (!(name in optionalDependencies)) {
    fail(`no package has the program for ${platform}; hint: build it with cargo install minder-cli`);
  }
  let manifest;
  try {
    manifest = require.resolve(`${name}/package.json`);
  } catch {
    const version = optionalDependencies[name];
    fail(`the package ${name} is not installed; hint: npm install minder ${name}@${version}`);
  }
  const file = process.platform === "win32" ? "minder.exe" : "minder";
  return path.join(path.dirname(manifest), "bin", file);
}

const parent = process.ppid;
const child = spawn(findProgram(), process.argv.slice(2), { stdio: "inherit" });

// A key of the terminal and a signal to the process group reach the program, too, and npm may pass on
// a further copy. The program takes copies within 200 ms for one request.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => {
    // On Windows kill() would end the program at once, and the console has told it already.
    if (process.platform !== "win32") {
      child.kill(signal);
    }
  });
}

// `kill` of npx ends its shell, which tells this process nothing. A run in the background of another
// shell outlives that shell, as it should.
if (process.env.npm_command === "exec" && process.platform !== "win32") {
  const watch = setInterval(() => {
    if (process.ppid !== parent) {
      clearInterval(watch);
      child.kill("SIGTERM");
    }
  }, 200);
}

child.on("error", (error) => fail(`cannot run ${child.spawnfile}: ${error.message}`));
child.on("exit", (status, signal) => {
  if (signal === null) {
    process.exit(status);
  }
  // This process ends as the program did. A shell then stops its script after Ctrl-C.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // Reached only if the signal is ignored here.
  setTimeout(() => process.exit(128 + constants.signals[signal]), 1000);
});
