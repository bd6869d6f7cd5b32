# frozen_string_literal: true

require_relative "children_helper"
require "tmpdir"

# A set of children: its events, its options, and how it is stopped.
class TestChildren < Test::Unit::TestCase
  include ChildrenHelper

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
end
