# frozen_string_literal: true

require_relative "children_helper"

# Guardians: their options, and what they do when they are late or missing.
class TestGuardian < Test::Unit::TestCase
  include ChildrenHelper

  limited("guardians") do
    guardian = Minder::Guardian.new(tag: true, restart: true, grace: 0.01)
    assert_true running?(guardian.pid)
    assert_same Minder::Guardian.default, Minder::Guardian.default
    open(guardian: guardian) do |children|
      pid = guardian.pid
      guardian.close
      assert_raise(Minder::ClosedError) { guardian.pid }
      assert_nil guardian.close
      assert_true running?(pid)
      child = children.spawn("env")
      assert_match(/MINDER_GUARDIAN_ID=/, child.read)
    end
    assert_raise(Minder::ClosedError) { open(guardian: guardian) }
    assert_raise(ArgumentError) { Minder::Guardian.new(nonsense: 1) }
  end

  limited("a start waits for a guardian that does not keep up") do
    guardian = Minder::Guardian.new
    open(guardian: guardian) do |children|
      Process.kill("STOP", guardian.pid)
      starting = Thread.new { Array.new(1000) { children.spawn("true", stdout: :null, stderr: :null) } }
      Minder.run("sleep", "0.5")
      assert_true starting.alive?
      Process.kill("CONT", guardian.pid)
      assert_true starting.value.all? { |child| child.wait.success? }
    end
  end

  limited("a guardian takes other processes") do
    program = <<~'RUBY'
      guardian = Minder::Guardian.new
      pids = Array.new(2) { fork { [$stdout, $stderr].each { |io| io.reopen(File::NULL) }; sleep } }
      guarded = pids.map { |pid| guardian.guard(pid) }
      2.times { guarded.last.release }
      begin; guardian.guard(1); rescue Minder::ClosedError; puts pids; end
      $stdout.flush
      Process.kill("KILL", $$)
    RUBY
    pids = ruby(program).first.split.map(&:to_i)
    wait_for_end(pids.first)
    assert_true running?(pids.last)
    Process.kill("KILL", pids.last)
  end

  limited("a guardian that cannot start is an error") do
    error = assert_raise(Errno::ENOENT) { Minder::Guardian.new(program: "/no/such/guardian") }
    assert_match(%r{/no/such/guardian}, error.message)
    env = { "MINDER_GUARDIAN" => "/no/such/guardian" }
    output, = ruby("begin; Minder.run('true'); rescue SystemCallError; print $!.class, $!.message; end", env: env)
    assert_match(%r{Errno::ENOENT.*/no/such/guardian}, output)
    output, = ruby("Minder::Children.open(guardian: false) { |set| print set.spawn('echo', 'x').read }", env: env)
    assert_equal "x\n", output
  end
end
