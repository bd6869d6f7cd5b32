# frozen_string_literal: true

require_relative "children_helper"

# Children and what happens to this process: forks, signals, the collector and its end.
class TestChildrenProcess < Test::Unit::TestCase
  include ChildrenHelper

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
end
