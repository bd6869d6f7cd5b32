# frozen_string_literal: true

# Runs Ruby's own tests of fiber schedulers, each in a process of its own, with the scheduler of Ruby's sources
# and with Minder::Scheduler.
#
#   ruby -Ilib test/conformance/run.rb SOURCES
#
# SOURCES is a directory with `test` and `tool` of Ruby's sources. Fails if a test that passes with the former
# does not pass with the latter. It also prints how long both take; a slow machine is no failure.

require "fileutils"
require "rbconfig"
require "tmpdir"

LIMIT = 12
sources = File.expand_path(ARGV.fetch(0))
tests = Dir[File.join(sources, "test/fiber/test_*.rb")].sort.flat_map do |file|
  File.read(file).scan(/^  def (test_\w+)/).flatten.map { |name| [File.basename(file), name] }
end
abort "no tests in #{sources}" if tests.empty?

# Runs one test. Returns "pass", "fail" or "hang", and what it printed.
def run_test(sources, directory, file, name)
  libraries = [File.join(sources, "tool/lib"), directory] + $LOAD_PATH
  environment = { "RUBYLIB" => $LOAD_PATH.join(File::PATH_SEPARATOR) }
  log = File.join(directory, "log")
  pid = spawn(environment, RbConfig.ruby, "-W0", *libraries.map { |path| "-I#{path}" },
              File.join(directory, file), "-n", name, in: File::NULL, out: log, err: log, pgroup: true)
  waiter = Process.detach(pid)
  unless waiter.join(LIMIT)
    Process.kill("KILL", -pid)
    waiter.join
    return ["hang", ""]
  end
  text = File.read(log)
  ran = text[/(\d+) tests, \d+ assertions, 0 failures, 0 errors/, 1]
  [waiter.value.success? && ran == "1" ? "pass" : "fail", text]
end

outcome = %w[reference minder].to_h do |who|
  Dir.mktmpdir do |directory|
    FileUtils.cp_r(Dir[File.join(sources, "test/fiber/*.rb")], directory)
    FileUtils.cp(File.join(__dir__, "scheduler.rb"), directory) if who == "minder"
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    results = tests.to_h { |file, name| [[file, name], run_test(sources, directory, file, name)] }
    seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
    counts = results.values.map(&:first).tally
    puts format("%-10s %3d pass, %d fail, %d hang, %.1f s", who, *%w[pass fail hang].map { |kind| counts.fetch(kind, 0) }, seconds)
    [who, [results, seconds]]
  end
end
reference, minder = outcome.values_at("reference", "minder")
lost = tests.select { |test| reference[0][test][0] == "pass" && minder[0][test][0] != "pass" }
lost.each { |test| puts "#{test.join(" ")}: #{minder[0][test].join("\n")}" }
puts format("minder took %.2f of the time of the reference", minder[1] / reference[1])
exit(lost.empty?)
