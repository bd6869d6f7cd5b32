# frozen_string_literal: true

require_relative "helper"
require "socket"
require "timeout"

# What a scheduler does with wrong arguments, in other threads, after its end, and when descriptors run out.
class TestMisuse < Test::Unit::TestCase
  include Helper

  def test_wrong_arguments
    in_scheduler do |scheduler|
      [nil, 5, "x", Object.new].each do |io|
        error = assert_raise(TypeError) { scheduler.io_wait(io, IO::READABLE, nil) }
        assert_match(/expected IO/, error.message)
      end
      assert_raise(TypeError) { scheduler.fiber_interrupt(nil, KeyError.new) }
      assert_raise_with_message(ArgumentError, "time interval must not be negative") { sleep(-1) }
      callable = Object.new
      called = false
      callable.define_singleton_method(:call) { called = true }
      scheduler.blocking_operation_wait(callable)
      assert_true called
    end
    assert_raise(TypeError) { Minder::Scheduler.new(backend: 5) }
  end

  def test_a_wrong_backend_is_named
    error = assert_raise(ArgumentError) { Minder::Scheduler.new(backend: "nonsense") }
    assert_match(/`nonsense`.*available here: #{BACKENDS.join(", ")}/, error.message)
    output, = ruby("Minder::Scheduler.run {}", env: { "MINDER_BACKEND" => "nonsense" })
    assert_match(/`nonsense`.*MINDER_BACKEND/, output)
  end

  # Ruby 3.1 passes an offset as the bits of its object.
  def test_a_wrong_offset_is_an_error
    program = <<~'RUBY'
      Minder::Scheduler.run do |scheduler|
        print scheduler.io_pwrite(File.open(IO::NULL, "w"), IO::Buffer.for("hello"), 5, 16)
      end
    RUBY
    expected = RUBY_VERSION.start_with?("3.1") ? -Errno::EINVAL::Errno : 5
    assert_equal expected.to_s, ruby(program).first
  end

  def test_another_thread_cannot_resume_the_fibers
    ready = Thread::Queue.new
    is_done = false
    thread = Thread.new do
      Minder::Scheduler.run { |scheduler| Fiber.schedule { ready.pop; is_done = true }; ready << scheduler; sleep 0.2 }
    end
    scheduler = nil
    scheduler = ready.pop until scheduler.is_a?(Minder::Scheduler)
    calls = [:close, :abandon, :run, :run_once, :yield, :kernel_sleep]
    calls.each { |name| assert_raise(ThreadError) { scheduler.send(name) } }
    assert_raise(ThreadError) { scheduler.fiber { nil } }
    scheduler.after(0) { ready << :more }
    assert thread.join(5)
    assert_true is_done
    assert scheduler.closed?
  end

  def test_a_closed_scheduler_has_no_backend
    scheduler = Minder::Scheduler.new
    scheduler.close
    assert_raise(RuntimeError) { scheduler.backend }
    assert_raise(RuntimeError) { Minder::Scheduler.allocate.backend }
  end

  def test_a_task_may_end_the_loop
    assert_equal 5, in_scheduler { |scheduler| Fiber.schedule { sleep }; scheduler.abandon; 5 }
    assert_equal 6, in_scheduler { |scheduler| Fiber.schedule { sleep 0.01 }; scheduler.close; 6 }
    assert_equal 7, in_scheduler { Fiber.schedule { sleep 0.01; Fiber.scheduler.abandon }; sleep 0; 7 }
  end

  def test_a_process_that_is_no_child_is_an_error
    in_scheduler do
      assert_raise(Errno::ECHILD) { Timeout.timeout(5) { Process.wait(1) } }
      assert_raise(Errno::ECHILD) { Timeout.timeout(5) { Process.wait(Process.pid) } }
    end
  end

  BACKENDS.each do |backend|
    define_method("test_no_free_descriptor_ends_no_loop with #{backend}") do
      program = <<~'RUBY'
        Process.setrlimit(Process::RLIMIT_NOFILE, 40)
        files = []
        Minder::Scheduler.run do |scheduler|
          reader, writer = IO.pipe
          begin
            loop { files << File.open(IO::NULL) }
          rescue Errno::EMFILE
            nil
          end
          Thread.new { IO.select(nil, nil, nil, 0.02) }.join
          print scheduler.io_wait(reader, IO::READABLE, 0.02), " "
          Fiber.schedule { sleep 0.01; writer.puts("x") }
          print reader.gets
        end
      RUBY
      assert_equal "false x\n", ruby(program, env: { "MINDER_BACKEND" => backend }).first
    end

    # The wait has taken the reports of the kernel when the signal handler raises.
    define_method("test_an_exception_in_the_wait_loses_nothing with #{backend}") do
      program = <<~'RUBY'
        class Signalled < StandardError; end
        trap("USR1") { raise Signalled }
        done = []
        pid = spawn("sleep 0.1")
        reader, writer = IO.pipe
        spawn("sleep 0.1; echo x", out: writer)
        spawn("sleep 0.05; kill -STOP #{$$}; sleep 0.2; kill -USR1 #{$$}; kill -CONT #{$$}")
        scheduler = Minder::Scheduler.new
        Fiber.set_scheduler(scheduler)
        Fiber.schedule { sleep 0.1; done << :slept }
        Fiber.schedule { Process.wait(pid); done << :reaped }
        Fiber.schedule { reader.gets; done << :read }
        begin
          scheduler.run
        rescue Signalled
          done << :signalled
        end
        Thread.new { IO.select(nil, nil, nil, 5); print "late"; exit!(1) }
        scheduler.run
        print done.sort.join(" ")
      RUBY
      assert_equal "read reaped signalled slept", ruby(program, env: { "MINDER_BACKEND" => backend }).first
    end

    define_method("test_the_time_that_a_fiber_computes_delays_no_timer with #{backend}") do
      took = in_scheduler(backend: backend) do
        start = now
        nil while now - start < 0.3
        time { sleep 0.01 }
      end
      assert_operator took, :<, 0.25
    end

    define_method("test_a_reopened_IO_may_be_another_kind_of_file with #{backend}") do
      Tempfile.create("minder") do |file|
        file.write("stored\n" * 1000)
        file.flush
        openers = {
          file: -> { [File.open(file.path), nil] },
          pipe: -> { IO.pipe },
          socket: -> { UNIXSocket.pair },
        }
        openers.each_key.to_a.permutation(2) do |first, second|
          lines = in_scheduler(backend: backend) do
            (one, writer), (two, late) = openers[first].call, openers[second].call
            writer&.puts("stored")
            lines = [one.gets]
            one.reopen(two)
            Fiber.schedule { sleep 0.005; late&.puts("stored") }
            Timeout.timeout(5) { lines << one.gets }
          end
          assert_equal ["stored\n"] * 2, lines, [first, second]
        end
      end
    end
  end
end
