# frozen_string_literal: true

require_relative "children_helper"
require "timeout"
require "tmpdir"

# Minder.run and Minder.spawn.
class TestRun < Test::Unit::TestCase
  include ChildrenHelper

  anywhere("run passes input and returns both outputs") do
    data = "line\n" * 500_000
    output = Minder.run("sh", "-c", "tee /dev/stderr", input: data)
    assert_equal [data, data], [output.stdout, output.stderr]
    assert_true output.success?
    assert_equal ["", ""], Minder.run("cat", input: "").to_a.first(2)
    # A child that reads no input is no error.
    assert_equal "x\n", Minder.run("echo", "x", input: data).stdout
    assert_equal Encoding.default_external, output.stdout.encoding
    assert_equal "\xFF".b, Minder.run("printf", "\\377", encoding: Encoding::BINARY).stdout
    assert_equal ["ab", ""], Minder.run("sh", "-c", "printf a; printf b >&2", stderr: :stdout).to_a.first(2)
    assert_equal ["", ""], Minder.run("echo", "x", stdout: :null).to_a.first(2)
    assert_raise(Errno::ENOENT) { Minder.run("no-such-program-here") }
    assert_raise(ArgumentError) { Minder.run("cat", input: "x", stdin: :null) }
    assert_raise(ArgumentError) { Minder.run("cat", restart: :always) }
  end

  anywhere("run has limits") do
    output = Minder.run("sh", "-c", "echo before; sleep 60", timeout: 0.2)
    assert_equal ["before\n", true, false], [output.stdout, output.status.timed_out?, output.success?]
    error = assert_raise(Minder::LimitError) { Minder.run("yes", max_bytes: 100_000) }
    assert_equal "`yes` wrote more than 100000 bytes", error.message
    pid = nil
    assert_raise(Timeout::Error) do
      Timeout.timeout(0.2) { Minder.run("sh", "-c", "echo $$ > #{Dir.tmpdir}/minder-#{$$}; sleep 60") }
    end
    pid = File.read("#{Dir.tmpdir}/minder-#{$$}").to_i
    wait_for_end(pid)
  ensure
    File.unlink("#{Dir.tmpdir}/minder-#{$$}") if pid
  end

  limited("the set of the process serves threads at once") do
    assert_equal ["x\n"] * 20, Array.new(20) { Thread.new { Minder.run("echo", "x").stdout } }.map(&:value)
  end

  limited("other code may wait for its processes") do
    child = Minder.spawn("sleep", "0.1")
    assert_equal 3, Process.wait2(spawn("exit 3")).last.exitstatus
    assert_equal "x\n", `echo x`
    assert_true child.wait.success?
  end
end
