# frozen_string_literal: true

require_relative "children_helper"
require "tmpdir"

# One child: its end, its input and output, and the requests that it accepts.
class TestChild < Test::Unit::TestCase
  include ChildrenHelper

  anywhere("status says how a child ended") do
    status = Minder.run("true").status
    assert_equal [0, nil], [status.code, status.signal]
    assert_equal [true, true, false], [status.success?, status.exited?, status.signaled?]
    assert_equal [false, false, false], [status.core_dumped?, status.timed_out?, status.killed?]
    assert_equal [false, false], [status.leaked?, status.left_running?]
    assert_operator status.user_time + status.system_time, :>, 0
    assert_operator status.max_rss, :>, 100_000
    assert_equal [0, 0.0], [status.dropped, status.suspended_time]
    assert_equal ["exit 0", "#<Minder::Status exit 0>"], [status.to_s, status.inspect]
    status = Minder.run("sh", "-c", "kill -SEGV $$").status
    assert_equal [nil, Signal.list["SEGV"], false], [status.code, status.signal, status.success?]
    assert_match(/\ASIGSEGV/, status.to_s)
    assert_true status.frozen?
  end

  anywhere("a child names itself") do
    open do |children|
      child = children.spawn({ "A" => "1" }, "cat", "-", stdin: :pipe)
      assert_equal ["cat", "-"], child.command
      assert_true running?(child.pid)
      assert_equal 1, children.instance_eval { running_count }
      assert_match(/#<Minder::Child cat pid \d+>/, child.inspect)
      assert_kind_of Integer, child.id
      child.close_stdin
      child.wait
      assert_match(/#<Minder::Child cat exit 0>/, child.inspect)
      assert_match(/0 running/, children.inspect)
      assert_raise(NoMethodError) { Minder::Child.new }
      assert_raise(RuntimeError) { Minder::Child.allocate.pid }
      assert_raise(NoMethodError) { child.dup.nonsense }
    end
  end

  anywhere("input arrives whole") do
    open do |children|
      child = children.spawn("cat", stdin: :pipe)
      data = Random.new(1).bytes(3 * MIB)
      Thread.new do
        assert_equal data.bytesize, child.write(data)
        child << "e" << "nd"
        child.close_stdin
        child.close_stdin
      end
      assert_equal data + "end", child.read(encoding: "BINARY")
      assert_raise(IOError) { child.write("x") }
    end
  end

  limited("writes of several fibers do not mix") do
    in_scheduler do
      child = Minder.spawn("cat", stdin: :pipe)
      left = 4
      4.times do |number|
        Fiber.schedule do
          child.write(number.to_s * MIB)
          child.close_stdin if (left -= 1).zero?
        end
      end
      assert_equal (0..3).map { |number| number.to_s * MIB }.sort, child.read.scan(/0+|1+|2+|3+/).sort
    end
  end

  limited("write_nonblock reports room") do
    open(input_memory: 1000) do |children|
      child = children.spawn("sleep", "60", stdin: :pipe, stdout: :null)
      assert_equal 1000, child.write_nonblock("x" * 5000)
      # The child reads nothing, so the pipe and the queue get full.
      nil until child.write_nonblock("y" * 1000).zero?
      child.kill
      children.each { |event| assert_not_equal :output, event.kind }
      assert_raise(Errno::EPIPE) { child.write_nonblock("x") }
    end
    open(input_memory: 1000) do |children|
      child = children.spawn("cat", stdin: :pipe, stdout: :null)
      nil until child.write_nonblock("z" * 1000) < 1000
      assert_equal :writable, children.next_event.kind
      assert_operator child.write_nonblock("x"), :>, 0
    end
  end

  limited("errors of the input") do
    open do |children|
      assert_raise(IOError) { children.spawn("sleep", "60").write("x") }
      child = shell(children, "exec <&-; echo closed; sleep 60", stdin: :pipe)
      assert_equal "closed\n", child.read_chunk.first
      assert_raise(Errno::EPIPE) { loop { child.write("x" * 100_000) } }
      child.kill
      child = children.spawn("true", stdin: :pipe)
      child.wait
      assert_raise(Errno::EPIPE) { child.write("x") }
      child.close_stdin
      child = children.spawn("sleep", "60", stdin: :pipe)
      writing = Thread.new do
        Thread.current.report_on_exception = false
        child.write("x" * MIB)
      end
      Thread.pass until writing.status == "sleep"
      child.kill
      assert_raise(Errno::EPIPE) { writing.value }
      assert_raise(NoMethodError) { child.write(BasicObject.new) }
    end
  end

  anywhere("chunks and lines") do
    open do |children|
      line = "printf 'a\\nb'; printf 'c\\r\\n\\n'; printf 'last'; printf 'x\\ny' >&2"
      child = shell(children, line)
      lines = Hash.new { |hash, key| hash[key] = [] }
      assert_same child, child.each_line { |text, stream| lines[stream] << text }
      assert_equal({ stdout: ["a\n", "bc\r\n", "\n", "last"], stderr: ["x\n", "y"] }, lines)
      first = ->(data, _) { data }
      assert_equal ["a", "bc", "", "last"], shell(children, line).each_line(:stdout, chomp: true).map(&first)
      assert_equal %W[12 34 5\n 67 8], shell(children, "printf '12345\\n678'").each_line(limit: 2).map(&first)
      assert_equal "a\nbc\r\n\nlast", shell(children, line).each_chunk(:stdout).map(&first).join
      assert_equal %w[x y], shell(children, line).tap(&:read).each_line(:stderr, chomp: true).map(&first)
      assert_equal Encoding.default_external, shell(children, line).each_line.first.first.encoding
      assert_raise(ArgumentError) { child.each_line(limit: 0) {} }
      assert_nil child.read_chunk
    end
  end

  anywhere("each stream may have its reader") do
    open do |children|
      size = 5 * MIB
      child = shell(children, "head -c #{size} /dev/zero & head -c #{size} /dev/zero >&2; wait")
      threads = %i[stdout stderr].map { |stream| Thread.new { child.read(stream).bytesize } }
      assert_equal [size, size], threads.map(&:value)
      # Without one, the other stream is kept.
      child = shell(children, "head -c #{size} /dev/zero >&2; head -c #{size} /dev/zero")
      assert_equal [size, size], [child.read.bytesize, child.read(:stderr).bytesize]
    end
  end

  anywhere("kill ends the tree") do
    open do |children|
      child = shell(children, "sleep 600 & echo $!; setsid sleep 601 & echo $!; sleep 602; true")
      pids = [child.read_chunk.first]
      pids << child.read_chunk.first while pids.join.lines.size < 2
      pids = pids.join.split.map(&:to_i) << child.pid
      assert_true pids.all? { |pid| running?(pid) }
      # The second one leaves the group of the child. A kill at this very moment may miss it.
      Thread.pass while Process.getpgid(pids[1]) == Process.getpgid(child.pid)
      assert_true child.kill(grace: 5)
      status = child.wait
      assert_equal [Signal.list["TERM"], true], [status.signal, status.killed?]
      pids.each { |pid| wait_for_end(pid) }
      assert_false child.kill
      assert_false child.suspend
      assert_false child.resume
    end
  end

  anywhere("kill may ask first and by other signals") do
    open do |children|
      trapping = "trap 'echo int' INT; trap 'echo term' TERM; echo ready; while :; do sleep 0.05; done"
      child = shell(children, trapping)
      child.read_chunk
      child.kill(signals: [["INT", 0.2], [15, 0.2]])
      assert_equal "int\nterm\n", child.read
      assert_equal Signal.list["KILL"], child.wait.signal
      child = shell(children, "trap 'exit 5' HUP; echo ready; while :; do sleep 0.05; done")
      child.read_chunk
      child.kill(signals: { SIGHUP: 10 })
      assert_equal 5, child.wait.code
      assert_raise(ArgumentError) { child.kill(signals: [["NOPE", 1]]) }
      assert_raise(ArgumentError) { child.kill(signals: [["INT", 1]] * 9) }
    end
  end

  anywhere("a time-out kills") do
    open do |children|
      child = shell(children, "trap '' TERM; while :; do sleep 0.05; done", timeout: 0.1, kill: 0.1)
      assert_operator time { child.wait }, :>=, 0.15
      assert_equal [true, Signal.list["KILL"]], [child.status.timed_out?, child.status.signal]
      assert_match(/SIGKILL, timed out/, child.status.to_s)
      assert_true children.spawn("sleep", "60", timeout: 0, kill: nil).wait.timed_out?
      assert_false children.spawn("true", timeout: 60).wait.timed_out?
      line = "trap 'exit 6' INT; while :; do sleep 0.05; done"
      assert_equal 6, shell(children, line, timeout: 0.3, kill: [["INT", 9]]).wait.code
    end
  end

  anywhere("suspend and resume") do
    open do |children|
      child = shell(children, "while :; do echo x; done", timeout: 60)
      child.read_chunk
      assert_true child.suspend
      Thread.pass until File.read("/proc/#{child.pid}/stat").split(") ").last[0] == "T"
      assert_true child.resume
      3.times { child.read_chunk }
      child.kill
      assert_operator child.wait.suspended_time, :>, 0
    end
  end

  anywhere("restarts") do
    open do |children|
      child = shell(children, "echo run; exit 3", restart: :on_failure, restart_delay: 0.01,
                                                  restart_max_delay: 0.02, restart_max: 2,
                                                  restart_stable_after: 60)
      pid = child.pid
      events = children.each.to_a
      assert_equal %w[run run run], events.filter_map(&:data).map(&:chomp)
      restarting = events.select { |event| event.kind == :restarting }
      assert_equal [1, 2], restarting.map(&:restarts)
      assert_equal [3, 3], restarting.map { |event| event.status.code }
      assert_true restarting.all? { |event| event.delay.between?(0.001, 0.1) }
      assert_equal [2, 3], [child.restarts, child.status.code]
      assert_equal child.pid, events.select { |event| event.kind == :restarted }.last.pid
      assert_not_equal pid, child.pid
      # A reader of the child reads all runs.
      child = shell(children, "echo run; exit 3", restart: :always, restart_delay: 0.001, restart_max: 3)
      assert_equal "run\n" * 4, child.read
      assert_equal 3, child.wait.code
    end
  end

  anywhere("restart by a call") do
    open do |children|
      child = shell(children, "cat; sleep 60", stdin: :pipe, restart: :on_failure, restart_delay: 0.001)
      child.write("one")
      assert_equal "one", child.read_chunk.first
      assert_true child.restart
      child.wait(timeout: 0.01) until child.restarts == 1 && restarted?(child)
      assert_equal "two", child.read_chunk.first
      assert_true child.kill
      assert_equal Signal.list["KILL"], child.wait.signal
      assert_false child.restart
      assert_raise(ArgumentError) { children.spawn("sleep", "60").restart }
    end
  end

  def restarted?(child)
    child.write("two") > 0
  rescue Errno::EPIPE
    false
  end

  limited("a restart that fails is reported") do
    Dir.mktmpdir do |directory|
      program = File.join(directory, "program")
      File.write(program, "#!/bin/sh\nrm '#{program}'; exit 1\n", perm: 0o755)
      open do |children|
        children.spawn(program, restart: :on_failure, restart_delay: 0.001, restart_max: 1)
        failed = children.each.find { |event| event.kind == :restart_failed }
        assert_match(/no such file/, failed.error)
      end
    end
  end

  anywhere("a terminal and its size") do
    open do |children|
      line = "trap 'stty size; exit' WINCH; tty; stty size; while :; do sleep 0.01; done"
      child = shell(children, line, terminal: [24, 80])
      text = +""
      text << child.read_chunk.first until text.include?("24 80")
      assert_match(%r{/dev/pts/}, text)
      assert_true child.resize(50, 132)
      assert_match(/50 132/, child.read)
      assert_true child.wait.success?
      child = children.spawn("cat", terminal: [24, 80])
      child.write("echo\n")
      text = +""
      text << child.read_chunk.first until text.scan("echo").size == 2
      child.kill
      assert_raise(ArgumentError) { children.spawn("sleep", "60").resize(1, 1) }
      assert_raise(IOError) { child.read(:stderr) }
    end
  end
end
