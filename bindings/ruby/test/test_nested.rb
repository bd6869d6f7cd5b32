# frozen_string_literal: true

require_relative "helper"

# Loops within the wait of a generator.
class TestNested < Test::Unit::TestCase
  include Helper

  # Waits in a generator that a task resumes.
  def generate(&block)
    Fiber.new(blocking: false, &block).resume
  end

  def test_generators_end_in_any_order
    done = []
    in_scheduler do
      queue = Thread::Queue.new
      Fiber.schedule { sleep 0.005; generate { sleep 0.05 }; done << 1 }
      Fiber.schedule { sleep 0.01; generate { sleep 0.1 }; done << 2 }
      Fiber.schedule { sleep 0.02; generate { sleep 0.01 }; done << 3 }
      Fiber.schedule { sleep 0.03; generate { queue.pop }; done << 4 }
      Fiber.schedule { sleep 0.06; queue << :x; done << 5 }
    end
    assert_equal [1, 2, 3, 4, 5], done.sort
  end

  def test_an_error_of_another_task_is_not_that_of_the_generator
    seen = []
    error = assert_raise(KeyError) do
      in_scheduler do
        Fiber.schedule do
          sleep 0.005
          generate { sleep 5 }
        rescue StandardError => error
          seen << error
        ensure
          seen << :ensured
        end
        sleep 0.02
        raise KeyError, "of the other"
      end
    end
    assert_equal ["of the other", [:ensured]], [error.message, seen]
  end

  def test_a_closed_scheduler_ends_the_wait_of_a_generator
    seen = []
    in_scheduler do |scheduler|
      Fiber.schedule do
        sleep 0.005
        generate { sleep 5 }
      ensure
        seen << :ensured
      end
      sleep 0.02
      scheduler.abandon
      seen << :abandoned
    end
    assert_equal [:abandoned, :ensured], seen
  end

  def test_the_block_of_a_timer_may_wait
    seen = []
    in_scheduler do |scheduler|
      queue = Thread::Queue.new
      Fiber.schedule { sleep 0.001; seen << generate { queue.pop } }
      scheduler.after(0.01) { sleep 0.03; seen << :timer }
      Fiber.schedule { sleep 0.02; queue << :popped }
    end
    assert_equal [:popped, :timer], seen.sort
    value = generate { in_time_of_loop { |scheduler| scheduler.after(0.01) { sleep 0.01; seen << :again }; sleep 0.05 } }
    assert_equal [:done, :again], [value, seen.last]
  end

  def test_a_process_forked_within_a_generator_ends
    program = <<~'RUBY'
      Minder::Scheduler.run do
        Fiber.schedule do
          sleep 0.005
          Fiber.new(blocking: false) { sleep 0.2 }.resume
        end
        sleep 0.02
        if (pid = fork)
          Process.wait(pid)
        else
          sleep 0.01
          print "child "
          $stdout.flush
        end
      end
      print "parent"
    RUBY
    output, status = ruby(program)
    assert_match(/\Achild .*parent\z/m, output)
    assert_true status.success?
  end

  private

  # Runs a scheduler in a fiber that is not blocking.
  def in_time_of_loop(&block)
    Minder::Scheduler.run(&block)
    :done
  end
end
