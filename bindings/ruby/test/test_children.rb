# frozen_string_literal: true

require_relative "helper"
require "pathname"
require "timeout"
require "tmpdir"

# Children: each method and option, and what they promise about memory, time and other fibers.
class TestChildren < Test::Unit::TestCase
  include Helper

  MIB = 1 << 20

  # Defines a test that fails after Helper::LIMIT seconds.
  def self.limited(name, &block)
    define_method("test_#{name.tr(" ", "_")}") { in_time { instance_exec(&block) } }
  end

  # Defines a test that runs in a thread, and again in a fiber of a scheduler.
  def self.anywhere(name, &block)
    limited("#{name} in a thread", &block)
    define_method("test_#{name.tr(" ", "_")}_in_a_fiber") { in_scheduler { instance_exec(&block) } }
  end

  def open(**options, &block)
    Minder::Children.open(**options, &block)
  end

  def shell(children, line, **options)
    children.spawn("sh", "-c", line, **options)
  end

  def resident_bytes
    File.read("/proc/self/statm").split[1].to_i * 4096
  end

  # Returns whether a process exists and is not a zombie.
  def running?(pid)
    File.read("/proc/#{pid}/stat").split(") ").last[0] != "Z"
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end

  # Waits until a process has ended that is not a child.
  def wait_for_end(pid)
    Thread.pass while running?(pid)
  end

  def kinds(events, child)
    events.select { |event| event.child.equal?(child) }.map(&:kind)
  end

  #
  # Commands
  #

  limited("arguments are passed unchanged") do
    odd = ["", " ", "a b", "\"'`$HOME\\", "line\nline", "*", "-n", "\xFF\xFE".b, "é", "%s\t"]
    program = "ARGV.each { |word| print word, 0.chr }"
    output = Minder.run(RbConfig.ruby, "-e", program, "--", *odd, encoding: "BINARY").stdout
    assert_equal odd.map(&:b), output.split("\0", -1)[0..-2]
  end

  limited("a program may have an odd name") do
    Dir.mktmpdir do |directory|
      ["a b", "quote\"'", "new\nline", "caf\xE9".b].each do |name|
        path = File.join(directory, name)
        File.write(path, "#!/bin/sh\necho \"$1\"\n", perm: 0o755)
        assert_equal "text\n", Minder.run(path, "text").stdout
      end
    end
  end

  limited("one string is a program and not a line") do
    assert_raise(Errno::ENOENT) { Minder.spawn("echo text") }
    assert_equal "a b\n", Minder.run(["echo", "a b"]).stdout
    assert_equal "x\n", Minder.run("echo", Pathname("x")).stdout
  end

  limited("errors of a start have their class") do
    open(guardian: false) do |children|
      error = assert_raise(Errno::ENOENT) { children.spawn("no-such-program-here") }
      assert_match(/no-such-program-here/, error.message)
      assert_raise(Errno::ENOENT) { children.spawn("true", chdir: "/no/such/directory") }
      assert_raise(Errno::EACCES) { children.spawn("/etc/passwd") }
      assert_raise(Errno::ENOENT) { children.spawn("true", stdin: "/no/such/file") }
      assert_raise(Errno::E2BIG) { children.spawn("true", "x" * (8 * MIB)) }
      assert_raise(ArgumentError) { children.spawn }
      assert_raise(ArgumentError) { children.spawn("a\0b") }
      assert_raise(ArgumentError) { children.spawn("true", "a\0b") }
      assert_raise(ArgumentError) { children.spawn("true", nonsense: 1) }
      assert_raise(ArgumentError) { children.spawn("true", stdout: :stdout) }
      assert_raise(ArgumentError) { children.spawn("true", overflow: :nonsense) }
      assert_raise(ArgumentError) { children.spawn("true", stdin: 99_999) }
      assert_raise(ArgumentError) { children.spawn("true", kill: [["NONSENSE", 1]]) }
      assert_raise(ArgumentError) { children.spawn("true", terminal: [24, 80], group: :session) }
      assert_raise(TypeError) { children.spawn("true", 1) }
      assert_raise(TypeError) { children.spawn("true", terminal: %w[a b]) }
      assert_raise(RangeError) { children.spawn("true", terminal: [1 << 20, 80]) }
      assert_equal 0, children.size
      assert_true children.empty?
    end
  end

  limited("environment and directory") do
    line = "echo \"$A-$B-$C\"; pwd"
    ENV["B"] = "inherited"
    text = Minder.run({ "A" => "1", "B" => nil }, "sh", "-c", line, env: { "C" => "3" }, chdir: "/usr").stdout
    assert_equal "1--3\n/usr\n", text
    assert_equal "-inherited-\n", Minder.run("sh", "-c", "echo \"$A-$B-$C\"").stdout
    text = Minder.run({ "A" => "\xFF" }, "/usr/bin/env", unsetenv_others: true, encoding: "BINARY").stdout
    assert_equal "A=\xFF\n".b, text
  ensure
    ENV.delete("B")
  end

  limited("streams are connected as the options say") do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "file")
      open do |children|
        assert_true shell(children, "echo one; echo two >&2", stdout: path, stderr: :null).wait.success?
        assert_equal "one\n", File.read(path)
        assert_true shell(children, "echo three >&2", stderr: [path, "a"]).wait.success?
        assert_equal "one\nthree\n", File.read(path)
        assert_true shell(children, "cat; echo four", stdin: path, stdout: [path, "a"]).wait.success?
        assert_match(/\Aone\nthree\n.*four\n\z/m, File.read(path))
        reader, writer = IO.pipe
        child = shell(children, "echo five; echo six >&2", stdout: writer, stderr: writer.fileno)
        assert_true child.wait.success?
        writer.close
        assert_equal "five\nsix\n", reader.read
        merged = shell(children, "echo a; echo b >&2; echo c", stderr: :stdout)
        assert_equal "a\nb\nc\n", merged.read
        assert_raise(IOError) { merged.read(:stderr) }
        assert_raise(IOError) { children.spawn("true", stdout: :null, stderr: :null).each_chunk {} }
        assert_raise(ArgumentError) { merged.read(:nonsense) }
        assert_equal "", shell(children, "cat").read
      end
    end
    assert_equal "inherited\n", ruby("Minder.spawn('echo', 'inherited', stdout: :inherit).wait").first
  end

  limited("groups and niceness") do
    ids = lambda do |**options|
      stat = Minder.run("sh", "-c", "cat /proc/$$/stat", **options).stdout
      [stat.to_i, *stat.split(") ").last.split.values_at(2, 3, 16).map(&:to_i)]
    end
    pid, group, session, nice = ids.call(nice: 3)
    assert_equal [pid, Process.getsid], [group, session]
    assert_equal Process.getpriority(Process::PRIO_PROCESS, 0) + 3, nice
    pid, group, session, = ids.call(group: :session)
    assert_equal [pid, pid], [group, session]
    assert_equal Process.getpgrp, ids.call(group: :inherit)[1]
  end

  limited("no descriptor is inherited") do
    reader, writer = IO.pipe
    [reader, writer].each { |io| io.close_on_exec = false }
    assert_equal %w[0 1 2 3], Minder.run("ls", "/proc/self/fd").stdout.split
  end

  #
  # Events
  #

  anywhere("events come in order and each ends") do
    open do |children|
      child = shell(children, "echo text; echo message >&2; exit 3")
      silent = children.spawn("true", stdout: :null, stderr: :null)
      events = children.each.to_a
      assert_true children.empty?
      assert_equal %i[exited done], kinds(events, silent)
      assert_equal [%i[output eof].sort * 2, %i[exited done]].flatten.sort, kinds(events, child).sort
      assert_equal %i[exited done], kinds(events, child).last(2)
      mine = events.select { |event| event.child.equal?(child) }
      texts = mine.select(&:data).to_h { |event| [event.stream, event.data] }
      assert_equal({ stdout: "text\n", stderr: "message\n" }, texts)
      assert_match(/#<Minder::Event output #<Minder::Child sh .*> stream=:std/, mine.find(&:data).inspect)
      assert_true events.all?(&:frozen?)
      assert_equal [3, 3], mine.last(2).map { |event| event.status.code }
      assert_equal Encoding::BINARY, mine.find(&:data).data.encoding
      assert_nil children.next_event
      assert_equal [0, 3], [silent.status.code, child.status.code]
    end
  end

  anywhere("waits end with their time-out and not before") do
    open do |children|
      assert_nil children.next_event
      child = children.spawn("sleep", "60")
      assert_operator time { assert_nil children.next_event(timeout: 0.05) }, :>=, 0.05
      assert_operator time { assert_nil children.each(timeout: 0.05) { flunk } }, :>=, 0.05
      assert_operator time { assert_nil child.wait(timeout: 0.05) }, :>=, 0.05
      assert_nil child.wait(timeout: 0)
      assert_nil child.status
      assert_true child.alive?
      assert_equal 1, children.size
      assert_true child.kill
      assert_same children, children.each(timeout: 15) {}
      assert_false child.alive?
      assert_equal 0, children.size
    end
  end

  limited("a claimed child has no events") do
    open do |children|
      claimed = shell(children, "echo a; echo b >&2")
      other = children.spawn("echo", "c")
      assert_equal "a\n", claimed.read
      events = children.each.to_a
      assert_equal [other], events.map(&:child).uniq
      assert_equal "b\n", claimed.read(:stderr)
      assert_equal "", claimed.read
      # What waited before the claim is for its own methods, too.
      child = children.spawn("echo", "d")
      child.wait
      assert_equal "d\n", child.read
      assert_nil children.next_event
    end
    open(events: false) do |children|
      child = children.spawn("echo", "e")
      assert_raise(Minder::Error) { children.next_event }
      assert_equal "e\n", child.read
    end
  end

  limited("a claim ends the wait for events that will not come") do
    open do |children|
      child = children.spawn("sleep", "60")
      waiting = Thread.new { children.next_event }
      Thread.pass until waiting.status == "sleep"
      reading = Thread.new { child.read }
      assert_nil waiting.value
      child.kill
      assert_equal "", reading.value
    end
  end

  limited("the most children") do
    open(max_children: 2) do |children|
      2.times { children.spawn("true") }
      error = assert_raise(Minder::LimitError) { 100.times { children.spawn("sleep", "60") } }
      assert_match(/children/, error.message)
      children.each { |event| break if event.kind == :done }
      assert_equal "x\n", children.spawn("echo", "x").read
    end
    open(max_children: 2, events: false) do |children|
      20.times { |number| assert_true children.spawn("true").wait.success?, number.to_s }
    end
  end

  limited("options of a set are checked") do
    assert_raise(ArgumentError) { open(backend: "nonsense") }
    assert_raise(ArgumentError) { open(memory: 0) }
    assert_raise(ArgumentError) { open(max_children: -1) }
    assert_raise(TypeError) { open(memory: "many") }
    assert_raise(TypeError) { open(guardian: 1) }
    options = { backend: "poll", coalesce: 0.001, leak_timeout: 1, spill_dir: Dir.tmpdir, stop_poll: 1 }
    assert_equal 7, open(**options) { 7 }
    Minder::Scheduler.available_backends.each do |name|
      open(backend: name) { |children| assert_equal "x\n", children.spawn("echo", "x").read }
    end
  end

  limited("a child that is stopped by a signal is reported") do
    open(stop_poll: 0.01) do |children|
      child = shell(children, "kill -STOP $$; exit 4")
      event = children.next_event
      assert_equal [:stopped, Signal.list["STOP"]], [event.kind, event.signal]
      Process.kill("CONT", child.pid)
      assert_equal 4, children.each.to_a.last.status.code
    end
  end

  limited("an output that a daemon holds is closed") do
    open(leak_timeout: 0.05) do |children|
      child = shell(children, "sleep 600 & echo $!")
      pid = child.read.to_i
      assert_true child.wait.leaked?
      assert_true child.status.left_running?
      Process.kill("KILL", pid)
    end
  end

  #
  # One child
  #

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

  #
  # Memory
  #

  anywhere("a slow reader holds its child back") do
    open do |children|
      size = 64 * MIB
      child = children.spawn("head", "-c", size.to_s, "/dev/zero", stderr: :null)
      child.read_chunk
      # The child cannot write more than the limit and its pipe, however long this takes.
      assert_nil child.wait(timeout: 0.2)
      before = resident_bytes
      read = 0
      peak = 0
      count = 0
      child.each_chunk do |data|
        read += data.bytesize
        GC.start if (count += 1) % 50 == 0
        peak = [peak, resident_bytes].max
      end
      assert_operator read, :>, size - MIB
      assert_operator peak - before, :<, 24 * MIB
      assert_true child.wait.success?
    end
  end

  anywhere("children that nothing reads do not stop the others") do
    open(memory: 4 * MIB, child_memory: MIB) do |children|
      stuck = Array.new(8) { children.spawn("cat", "/dev/zero", stderr: :null) }
      small = Array.new(2) { shell(children, "while :; do echo x; done", stderr: :null) }
      # All memory is taken by the others, and this one still gets through.
      child = children.spawn("head", "-c", (16 * MIB).to_s, "/dev/zero")
      assert_equal 16 * MIB, child.read.bytesize
      assert_true child.wait.success?
      before = resident_bytes
      assert_nil stuck.first.wait(timeout: 0.3)
      assert_operator resident_bytes - before, :<, 32 * MIB
      assert_operator small.first.read_chunk.first.bytesize, :>, 1
      assert_equal 10, children.size
    end
  end

  anywhere("a wait ends although output is left") do
    open(memory: 200_000, child_memory: 100_000, leak_timeout: Float::INFINITY) do |children|
      killed = Array.new(8) { children.spawn("cat", "/dev/zero", stderr: :null) }
      killed.each(&:read_chunk).each(&:kill)
      assert_equal [Signal.list["KILL"]] * 8, killed.map { |child| child.wait.signal }
      assert_true killed.all? { |child| child.read.bytesize >= 60_000 }
      # What fits into the memory and the pipes is complete.
      child = shell(children, "head -c 90000 /dev/zero; head -c 50000 /dev/zero >&2")
      assert_true child.wait.success?
      assert_equal [90_000, 50_000], [child.read.bytesize, child.read(:stderr).bytesize]
      # In the events, the exit follows the output.
      child = children.spawn("head", "-c", "90000", "/dev/zero")
      child.wait
      events = children.each.select { |event| event.child.equal?(child) }
      assert_equal 90_000, events.filter_map(&:data).sum(&:bytesize)
      assert_equal %i[exited done], events.last(2).map(&:kind)
    end
  end

  anywhere("drop_oldest keeps the newest bytes") do
    open(child_memory: 100_000) do |children|
      child = shell(children, "seq 1 200000; echo end", overflow: :drop_oldest)
      status = child.wait
      text = child.read
      assert_true text.end_with?("\n200000\nend\n")
      assert_operator text.bytesize, :<=, 100_000
      assert_equal (1..200_000).sum { |number| number.to_s.size + 1 } + 4, text.bytesize + status.dropped
    end
  end

  anywhere("spilled output comes back") do
    open(child_memory: 100_000, memory: 200_000) do |children|
      children = Array.new(3) { children.spawn("seq", "1", "200000", overflow: :spill) }
      assert_true children.all? { |child| child.wait.success? }
      children.each { |child| assert_equal (1..200_000).sum, child.each_line.sum { |line, _| line.to_i } }
    end
  end

  limited("small pieces are bounded") do
    open(memory: 200_000, child_memory: 50_000) do |children|
      write = ->(program) { [RbConfig.ruby, "--disable-gems", "-e", "$stdout.sync = true; #{program}"] }
      chatty = children.spawn(*write.call("loop { print '.' }"), stderr: :null)
      other = children.spawn(*write.call("3000.times { |number| puts number }"))
      before = resident_bytes
      assert_equal 3000, other.each_line.count
      assert_operator resident_bytes - before, :<, 32 * MIB
      # The pipe is full by now, so the child has stopped at its limits.
      assert_operator chatty.read_chunk.first.bytesize, :>, 0
    end
  end

  limited("events are not taken from a busy consumer for ever") do
    in_scheduler do
      open do |children|
        children.spawn("cat", "/dev/zero", stderr: :null)
        other = children.spawn("echo", "x")
        events = 0
        is_read = false
        Fiber.schedule do
          other.read
          is_read = true
        end
        children.each do
          events += 1
          break if is_read
        end
        assert_operator events, :<, 100_000
      end
    end
  end

  #
  # Many children, fibers and threads
  #

  limited("a thousand children are heard") do
    open do |children|
      expected = {}
      1000.times do |number|
        child = shell(children, "echo #{number}; echo #{number * 7} >&2; exit #{number % 100}")
        expected[child] = ["#{number}\n", "#{number * 7}\n", number % 100]
      end
      heard = Hash.new { |hash, key| hash[key] = [+"", +"", nil] }
      children.each do |event|
        heard[event.child][event.stream == :stdout ? 0 : 1] << event.data if event.kind == :output
        heard[event.child][2] = event.status.code if event.kind == :done
      end
      assert_equal 1000, heard.size
      assert_equal expected, heard
    end
  end

  limited("a thousand children each have a fiber") do
    results = in_scheduler do
      open do |children|
        found = {}
        1000.times do |number|
          Fiber.schedule do
            child = shell(children, "echo #{number}; exit #{number % 100}")
            found[number] = [child.read.to_i, child.wait.code]
          end
        end
        children_done(found, 1000)
        found
      end
    end
    assert_equal (0...1000).to_h { |number| [number, [number, number % 100]] }, results
  end

  # Lets the other fibers run until they have stored their results.
  def children_done(found, count)
    Minder.run("true") until found.size == count
  end

  limited("a hundred children each have a thread") do
    open do |children|
      threads = Array.new(100) do |number|
        Thread.new do
          child = shell(children, "echo #{number}; exit #{number}")
          [child.read.to_i, child.wait.code]
        end
      end
      assert_equal Array.new(100) { |number| [number, number] }, threads.map(&:value)
    end
  end

  limited("several consumers share the events") do
    open do |children|
      100.times { |number| children.spawn("echo", number.to_s) }
      threads = Array.new(4) do
        Thread.new do
          found = []
          while (event = children.next_event)
            found << event
          end
          found
        end
      end
      events = threads.flat_map(&:value)
      assert_equal 500, events.size
      assert_equal (0...100).sum, events.filter_map(&:data).sum(&:to_i)
    end
  end

  limited("other fibers run while one waits") do
    ticks = 0
    in_scheduler do
      is_done = false
      Fiber.schedule do
        until is_done
          sleep 0.001
          ticks += 1
        end
      end
      Minder.run("sleep", "0.2")
      open { |children| children.spawn("sleep", "0.2", kill: 1) && children.each {} }
      open(grace: 5) do |children|
        shell(children, "trap 'sleep 0.2; exit' TERM; sleep 60 & sleep 0.1; echo x; wait").read_chunk
      end
      is_done = true
    end
    assert_operator ticks, :>, 100
  end

  anywhere("a time-out or an error of one waiter strands no other") do
    open do |children|
      slow = shell(children, "sleep 0.3; echo slow")
      quiet = children.spawn("sleep", "60")
      outcomes = Queue.new
      go = lambda do |&block|
        Fiber.current_scheduler ? Fiber.schedule(&block) : Thread.new(&block)
      end
      # The first one waits for the descriptor. It leaves in three ways, and another one takes its place.
      go.call { outcomes << quiet.wait(timeout: 0.05).inspect }
      go.call do
        Timeout.timeout(0.1) { quiet.wait }
      rescue Timeout::Error
        outcomes << "Timeout::Error"
      end
      go.call do
        children.await(quiet, nil) { raise KeyError if (@calls = (@calls || 0) + 1) == 4 }
      rescue KeyError
        outcomes << "KeyError"
      end
      3.times { go.call { outcomes << slow.wait.code.to_s } }
      go.call { outcomes << slow.read }
      quiet.wait(timeout: 0.5)
      quiet.kill
      expected = ["0", "0", "0", "KeyError", "Timeout::Error", "nil", "slow\n"]
      assert_equal expected, Array.new(7) { outcomes.pop }.sort
      assert_equal 0, waiters(children)
    end
  end

  def waiters(children)
    children.instance_variable_get(:@waiters).size + children.instance_variable_get(:@groups).size
  end

  limited("a thread that is killed while it waits strands no other") do
    open do |children|
      child = children.spawn("sleep", "0.3")
      threads = Array.new(5) { Thread.new { child.wait } }
      Thread.pass until threads.all? { |thread| thread.status == "sleep" }
      threads.first(3).each(&:kill).each(&:join)
      assert_equal [0, 0], threads.last(2).map { |thread| thread.value.code }
      assert_equal 0, waiters(children)
    end
  end

  limited("a scheduler that computes delays no other one") do
    open do |children|
      gate = Queue.new
      busy = children.spawn("sleep", "0.1")
      other = children.spawn("sh", "-c", "sleep 0.3; echo x")
      is_read = false
      computing = Thread.new do
        Minder::Scheduler.run do
          Fiber.schedule { busy.wait }
          Fiber.schedule { other.wait }
          gate << true
          # It waits for the set no more, and holds its fibers up.
          Thread.pass until is_read
        end
      end
      gate.pop
      assert_equal "x\n", in_scheduler { other.read }
      is_read = true
      computing.join
    end
  end

  limited("threads and fibers share a set") do
    open(events: false) do |children|
      schedulers = Array.new(3) do |index|
        Thread.new do
          found = []
          Minder::Scheduler.run do
            30.times do |number|
              Fiber.schedule { found << shell(children, "sleep 0.0#{number % 5}; echo #{index}").read }
            end
          end
          found
        end
      end
      plain = Array.new(10) { Thread.new { children.spawn("echo", "x").read } }
      assert_equal ["x\n"] * 10, plain.map(&:value)
      assert_equal Array.new(3) { |index| ["#{index}\n"] * 30 }, schedulers.map(&:value)
      assert_equal 0, waiters(children)
    end
  end

  #
  # The end of a set and of this process
  #

  anywhere("stop ends waits and later calls") do
    children = Minder::Children.new
    child = children.spawn("sleep", "60")
    full, other = Array.new(2) { children.spawn("cat", "/dev/zero", stderr: :null) }
    full.read_chunk
    results = Queue.new
    [-> { child.wait.signal }, -> { loop { other.read_chunk or break :end } }, lambda do
      events = []
      while (event = children.next_event)
        events << event.kind
      end
      events.last
    end].each do |call|
      Thread.new do
        results << call.call
      rescue Minder::ClosedError
        results << :closed
      end
    end
    child.wait(timeout: 0.05)
    children.stop
    assert_true children.closed?
    children.stop
    assert_equal Signal.list["KILL"], child.status.signal
    found = Array.new(3) { results.pop }
    assert_includes found, Signal.list["KILL"]
    assert_equal 2, (found & [:closed, :end, :done]).size
    assert_raise(Minder::ClosedError) { children.spawn("true") }
    assert_raise(Minder::ClosedError) { full.read }
    children.next_event until children.empty?
    assert_nil children.next_event
    assert_false child.kill
    assert_match(/stopped/, children.inspect)
    assert_equal 0, children.size
  end

  anywhere("stop kills after the grace") do
    children = Minder::Children.new(grace: 0.2)
    child = shell(children, "trap 'echo term' TERM; echo x; while :; do sleep 0.01; done")
    polite = shell(children, "trap 'exit 7' TERM; echo x; while :; do sleep 0.01; done")
    [child, polite].each(&:read_chunk)
    assert_operator time { children.stop }, :>=, 0.2
    assert_equal [Signal.list["KILL"], 7], [child.status.signal, polite.status.code]
  end

  limited("a set that raises is stopped") do
    child = nil
    assert_raise(KeyError) { open { |children| child = children.spawn("sleep", "60") and raise KeyError } }
    assert_false running?(child.pid)
    children = open
    children.stop
    assert_raise(RuntimeError) { Minder::Children.allocate.send(:route) }
    assert_nil children.instance_eval { pop }
  end

  limited("kill -9 of the host ends the children") do
    program = "child = Minder.spawn('sh', '-c', 'sleep 600 & echo $!; wait')
               puts child.pid, child.read_chunk.first; $stdout.flush; Process.kill('KILL', $$)"
    output, status = ruby(program)
    assert_equal Signal.list["KILL"], status.termsig
    pids = output.split.map(&:to_i)
    assert_equal 2, pids.size
    pids.each { |pid| wait_for_end(pid) }
  end

  limited("an exit of the host ends the children") do
    output, = ruby("child = Minder.spawn('sleep', '600'); puts child.pid; exit")
    wait_for_end(output.to_i)
    output, = ruby("set = Minder::Children.new(guardian: false); puts set.spawn('sleep', '600').pid; exit")
    assert_true running?(output.to_i)
    Process.kill("KILL", output.to_i)
  end

  limited("a forked process has its own children") do
    program = <<~'RUBY'
      $stdout.sync = true
      Minder::Children.open do |children|
        child = children.spawn("cat", stdin: :pipe)
        default = Minder.spawn("cat", stdin: :pipe)
        pid = fork do
          calls = [-> { children.spawn("true") }, -> { children.next_event }, -> { child.wait }, -> { child.read },
                   -> { child.write("x") }, -> { child.kill }, -> { default.read }]
          puts calls.map { |call| call.call rescue $!.class }.uniq.inspect
          begin; children.spawn("true"); rescue => error; puts error.message; end
          children.stop
          child = nil
          children = nil
          GC.start
          puts Minder.run("echo", "of the fork").stdout
          exit!(0)
        end
        Process.wait(pid)
        [child, default].each { |process| process.write("parent\n"); process.close_stdin; print process.read }
      end
    RUBY
    output, status = ruby(program)
    assert_true status.success?, output
    errors, message, *texts = output.lines(chomp: true)
    assert_equal ["[Minder::ClosedError]", "of the fork", "parent", "parent"], [errors, *texts]
    assert_match(/fork/, message)
  end

  limited("a handler of a signal may kill") do
    program = <<~'RUBY'
      child = Minder.spawn("sleep", "60", stdin: :pipe)
      trap("USR1") { child.write_nonblock("x"); child.close_stdin; child.suspend; child.resume; child.kill }
      Process.kill("USR1", $$)
      print child.wait
    RUBY
    assert_equal "SIGKILL", ruby(program).first
  end

  limited("an interrupt ends a wait and the program") do
    program = "Thread.new { Minder.run('sleep', '0.1'); Process.kill('INT', $$) }
               begin; Minder.run('sleep', '60'); ensure; print 'ensured'; end"
    output, status = ruby(program)
    assert_match(/ensured/, output)
    assert_equal Signal.list["INT"], status.termsig
  end

  limited("no descriptor leaks") do
    Minder.run("true")
    GC.start
    use = lambda do
      open do |children|
        20.times { children.spawn("echo", "x", stdin: :pipe) }
        children.each {}
        child = children.spawn("cat", stdin: File::NULL, stdout: :null, terminal: nil)
        child.wait
        children.spawn("true", terminal: [24, 80]).wait
        3.times.map { Thread.new { children.spawn("echo", "x").read } }.each(&:value)
        begin
          children.spawn("no-such-program-here", stdin: "/dev/null", stdout: "/dev/null")
        rescue Errno::ENOENT
          nil
        end
        Minder::Scheduler.run { 3.times { Fiber.schedule { Minder.run("true") } } }
      end
    end
    use.call
    GC.start
    before = descriptors
    5.times { use.call }
    GC.start
    assert_operator descriptors, :<=, before
  end

  limited("collected sets and children leave nothing") do
    make = lambda do
      children = Minder::Children.new
      10.times { children.spawn("echo", "x" * 10_000).wait }
      children.instance_eval { distribute }
      nil
    end
    make.call
    GC.start
    before = descriptors
    5.times { make.call }
    5.times { GC.start }
    # The last set may still be on the stack, and threads of the library end on their own.
    Thread.pass until descriptors <= before + 12 || (GC.start && false)
  end

  # A bit of everything. What it prints is RESULT.
  SCENARIO = <<~'RUBY'
    results = []
    Minder::Children.open(child_memory: 50_000, guardian: false) do |children|
      child = children.spawn("sh", "-c", "echo a; echo b >&2; head -c 60000 /dev/zero", stdin: :pipe)
      child.write("x")
      other = children.spawn("sh", "-c", "echo c; exit 2", restart: :on_failure, restart_delay: 0.001,
                                                           restart_max: 1)
      claimed = children.spawn("echo", "d", overflow: :drop_oldest)
      results << claimed.read << claimed.wait.code
      bytes = 0
      children.each { |event| bytes += event.data.bytesize if event.kind == :output }
      results << bytes << other.status.code << child.wait.code
      results << (children.spawn("no-such-program") rescue $!.class)
      results << Thread.new { children.spawn("echo", "e").each_line(chomp: true).to_a }.value
      results << Minder::Scheduler.run { children.spawn("echo", "f").read }
    end
    print results.inspect
  RUBY
  RESULT = '["d\n", 0, 60008, 2, 0, Errno::ENOENT, [["e", :stdout]], "f\n"]'

  limited("the collector may run at any time") do
    assert_equal RESULT, ruby("GC.stress = true; #{SCENARIO}").first
  end

  limited("objects may move at any time") do
    program = <<~RUBY
      begin; GC.auto_compact = true; rescue NotImplementedError; end
      compactor = Thread.new { loop { GC.compact rescue break; Thread.pass } }
      5.times { #{SCENARIO.sub("print results.inspect", "$results = results")} }
      compactor.kill
      print $results.inspect
    RUBY
    assert_equal RESULT, ruby(program).first
  end

  #
  # Guardian
  #

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

  #
  # Minder.run and Minder.spawn
  #

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

  #
  # Samples
  #

  limited("samples") do
    samples = File.expand_path("../samples", __dir__)
    run = ->(name, *arguments) { ruby("load ARGV.shift", File.join(samples, name), *arguments) }
    assert_equal "text\nmessage\nexit 3\n", run.call("spawn_and_read.rb").first
    assert_equal "100 children, 0 failed, 500 bytes\n", run.call("many_children.rb").first
    assert_equal "it runs\nsignal 15\n", run.call("kill_tree.rb").first
    Dir.mktmpdir do |directory|
      texts = { "good.rb" => "puts 1; warn 2", "bad.rb" => "puts 3; exit 4", "slow.rb" => "sleep" }
      files = texts.map do |name, text|
        File.join(directory, name).tap { |path| File.write(path, text) }
      end
      output, status = run.call("parallel_tests.rb", "-j", "3", "-t", "2", *files)
      assert_match(/good.rb: exit 0.*\n2\n1\n/, output)
      assert_match(/bad.rb: exit 4.*\n3\n/, output)
      assert_match(/slow.rb: .*timed out/, output)
      assert_match(/3 files, 2 failed/, output)
      assert_equal 2, status.exitstatus
    end
  end
end
