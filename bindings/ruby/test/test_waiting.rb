# frozen_string_literal: true

require_relative "children_helper"
require "timeout"

# Many children, and the fibers and threads that wait for them at once.
class TestWaiting < Test::Unit::TestCase
  include ChildrenHelper

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
end
