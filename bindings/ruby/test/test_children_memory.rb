# frozen_string_literal: true

require_relative "children_helper"

# The memory that output takes, and whom its limits hold back.
class TestChildrenMemory < Test::Unit::TestCase
  include ChildrenHelper

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
end
