# frozen_string_literal: true

require_relative "helper"
require "socket"

# The scheduler within the interpreter: collector, signals, threads, forks.
class TestHost < Test::Unit::TestCase
  include Helper

  SCENARIO = <<~RUBY
    done = 0
    Minder::Scheduler.run do |scheduler|
      8.times do
        left, right = UNIXSocket.pair
        Fiber.schedule { 5.times { left.puts("x" * 50); left.gets }; left.close }
        Fiber.schedule { while right.gets do right.puts("ok") end; right.close; done += 1 }
        Fiber.schedule { sleep 0.001; done += 1 }
        Fiber.schedule { Thread.new { 1 }.value; done += 1 }
        scheduler.after(0.001) { done += 1 }
      end
      Fiber.schedule { Process.wait(spawn("true")); done += 1 }
      Fiber.schedule { Timeout.timeout(0.005) { sleep } rescue done += 1 }
    end
    print done
  RUBY

  def test_collector_under_stress
    program = "require 'timeout'; GC.stress = true; #{SCENARIO}"
    assert_equal ["34", true], ruby(program).then { |output, status| [output, status.success?] }
  end

  def test_compaction
    program = <<~RUBY
      require "timeout"
      begin; GC.auto_compact = true; rescue NotImplementedError; end
      compactor = Thread.new { loop { GC.compact rescue break; sleep 0.001 } }
      #{SCENARIO}
    RUBY
    assert_equal ["34", true], ruby(program).then { |output, status| [output, status.success?] }
  end

  def test_suspended_fibers_survive_the_collector
    woken = 0
    in_scheduler do
      pipes = Array.new(50) { IO.pipe }
      pipes.each { |reader, _| Fiber.schedule { reader.wait_readable; woken += 1 } }
      3.times { GC.start(full_mark: true) }
      pipes.each { |_, writer| writer.write("x") }
    end
    assert_equal 50, woken
  end

  def test_other_threads_run_while_the_loop_waits
    counted = 0
    in_scheduler do
      thread = Thread.new { 100.times { counted += 1; Thread.pass } }
      sleep 0.1
      thread.join
    end
    assert_equal 100, counted
  end

  def test_signals_interrupt_the_wait
    program = <<~'RUBY'
      trap("USR1") { puts "trapped"; $stdout.flush }
      Minder::Scheduler.run do
        Fiber.schedule { sleep 0.05; Process.kill("USR1", $$) }
        sleep 0.2
      end
      puts "end"
    RUBY
    assert_equal "trapped\nend\n", ruby(program).first
    output, status = ruby("Thread.new { IO.select(nil, nil, nil, 0.1); Process.kill('INT', $$) }
                           Minder::Scheduler.run { begin; sleep; ensure; print 'ensured'; end }")
    assert_match(/Interrupt/, output)
    assert_equal Signal.list["INT"], status.termsig
  end

  def test_kill_and_raise_end_the_wait
    thread = Thread.new { Minder::Scheduler.run { sleep } }
    Thread.pass until thread.status == "sleep"
    thread.kill
    assert thread.join(5)
    thread = Thread.new { Thread.current.report_on_exception = false; Minder::Scheduler.run { sleep } }
    Thread.pass until thread.status == "sleep"
    thread.raise(KeyError, "of another thread")
    assert_raise(KeyError) { thread.join(5) }
  end

  def test_fork_gives_a_fresh_scheduler
    program = <<~'RUBY'
      Minder::Scheduler.run do
        reader, writer = IO.pipe
        other = false
        Fiber.schedule { sleep 0.2; other = true; writer.write("parent ") }
        pid = fork do
          Fiber.schedule { sleep 0.01; writer.write("child ") }
          sleep 0.05
          writer.write(other ? "stale " : "fresh ")
        end
        Process.wait(pid)
        sleep 0.3
        writer.close
        print reader.read
      end
    RUBY
    BACKENDS.each { |name| assert_equal "child fresh parent ", ruby(program, env: { "MINDER_BACKEND" => name }).first, name }
  end

  def test_fibers_of_a_thread_end_before_it
    output, = ruby("Fiber.set_scheduler(Minder::Scheduler.new); Fiber.schedule { sleep 0.01; print 'ran' }")
    assert_equal "ran", output
  end

  def test_no_free_descriptor_is_an_error
    program = <<~'RUBY'
      Process.setrlimit(Process::RLIMIT_NOFILE, 20)
      files = []
      begin
        loop { files << File.open("/dev/null") }
      rescue Errno::EMFILE
        begin
          Minder::Scheduler.new
          print "opened"
        rescue SystemCallError, Minder::Error => error
          print error.class
        end
      end
    RUBY
    assert_match(/Errno::EMFILE|Minder::ExhaustedError/, ruby(program).first)
  end
end
