# frozen_string_literal: true

require "fiber"
require "io/wait"

module Minder
  # A fiber or thread that waits for events of a set.
  class Waiter # :nodoc:
    # The poller whose descriptor it waits for, if it does.
    attr_accessor :poller
    # It was woken, and has not looked since.
    attr_accessor :is_woken

    def initialize
      @fiber = Fiber.current
      @scheduler = Fiber.current_scheduler
      @condition = ConditionVariable.new unless @scheduler
    end

    # Consumers of one scheduler wait together; so do all threads without one.
    def context = @scheduler || :threads

    # Wakes it. The caller has locked the set.
    def wake
      return if @is_woken

      @is_woken = true
      if @poller then @poller.notify
      elsif @condition then @condition.signal
      elsif @is_parked
        @is_parked = false
        @scheduler.unblock(self, @fiber)
      end
    end

    # Waits until it is woken. The caller has locked the set, which is unlocked meanwhile.
    def sleep(lock, timeout)
      return @condition.wait(lock, timeout) if @condition

      @is_parked = true
      lock.unlock
      begin
        @scheduler.block(self, timeout)
      ensure
        lock.lock
        @is_parked = false
      end
    end
  end
  private_constant :Waiter

  class Children
    # The consumers of a set wait for its events, and one of them moves these to the queues of the
    # children.

    # A set's descriptor for the waiters of one scheduler, or for all threads.
    class EventPoller # :nodoc:
      # The descriptor as an IO. Closing the poller closes it.
      def io
        @io ||= IO.for_fd(fd, "r", autoclose: false)
      end
    end
    private_constant :EventPoller

    # The waiters of one scheduler, or all threads.
    Group = Struct.new(:waiters, :holder)
    private_constant :Group

    # Interrupts of other threads are handled after a critical section.
    SHIELD = { Object => :never }.freeze
    # How often a waiter checks that the thread of the library lives, in seconds.
    CHECK_INTERVAL = 60
    # After how many events in a row a fiber lets the others run.
    BURST = 16
    private_constant :SHIELD, :CHECK_INTERVAL, :BURST

    # Waits for events of a key until the block returns something, which is returned; nil after the
    # deadline.
    #
    # Every waiter of one scheduler waits for a wake-up, except one of them, the holder, which waits
    # for the descriptor of the set. It moves events to the queues of their children, and wakes
    # whatever waits for these. When it leaves, another one takes its place. Schedulers do not
    # depend on each other: one that computes for long delays its own fibers only.
    def await(key, deadline) # :nodoc:
      value = yield
      return value if value

      waiter = nil
      begin
        rest if distribute
        value = yield
        return value if value
        return if deadline && clock >= deadline

        waiter = Waiter.new
        Thread.handle_interrupt(SHIELD) { enter(key, waiter) }
        loop do
          value = yield
          return value if value

          left = deadline ? deadline - clock : CHECK_INTERVAL
          return if left <= 0

          wait_once(waiter, [left, CHECK_INTERVAL].min)
        end
      rescue ClosedError
        # A stop may have brought what the block waits for.
        yield or raise
      ensure
        Thread.handle_interrupt(SHIELD) { leave(key, waiter) } if waiter
      end
    end

    # Keeps the events of a child for its own methods.
    def claim(child) # :nodoc:
      child.send(:native_claim)
      wake_events if streaming.zero?
    end

    # Returns the time of a time-out on the clock of +await+.
    def deadline(timeout) # :nodoc:
      timeout && clock + timeout
    end

    private

    def clock
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # Lets other fibers run from time to time, if the events never run out.
    def rest
      @burst += 1
      return if @burst < BURST || !Fiber.current_scheduler

      @burst = 0
      sleep 0
    end

    # Moves all events to the queues of their children, and wakes what waits for them. Returns
    # whether there were any.
    def distribute(except = nil)
      changed = route
      return false unless changed

      Thread.handle_interrupt(SHIELD) do
        @lock.synchronize do
          changed.each { |child| wake(child, except) } unless @waiters.empty?
          wake(:events, except)
          wake(:end, except)
        end
      end
      true
    end

    def wake(key, except = nil)
      return unless @waiters.key?(key)

      @waiters[key].each { |waiter| waiter.wake unless waiter.equal?(except) }
    end

    # Ends the waits for events that will not come.
    def wake_events
      Thread.handle_interrupt(SHIELD) { @lock.synchronize { wake(:events) } }
    end

    def enter(key, waiter)
      @lock.synchronize do
        @waiters[key] << waiter
        @groups[waiter.context].waiters[waiter] = true
      end
    end

    def leave(key, waiter)
      @lock.synchronize do
        waiting = @waiters[key]
        waiting.delete(waiter)
        @waiters.delete(key) if waiting.empty?
        if waiter.poller
          waiter.poller.reset if waiter.is_woken
          closed? ? waiter.poller.close : @pollers.push(waiter.poller)
          waiter.poller = nil
        end
        group = @groups[waiter.context]
        group.waiters.delete(waiter)
        group.holder = nil if group.holder.equal?(waiter)
        if group.waiters.empty? then @groups.delete(waiter.context)
        elsif group.holder.nil? then group.waiters.first.first.wake
        end
      end
    end

    # Waits until the waiter is woken, or as the holder until the set has events, which are then
    # distributed.
    def wait_once(waiter, timeout)
      poller = nil
      @lock.synchronize do
        if waiter.is_woken
          waiter.is_woken = false
          waiter.poller&.reset
          return
        end
        group = @groups[waiter.context]
        group.holder ||= waiter
        if group.holder.equal?(waiter)
          poller = waiter.poller ||= @pollers.pop || EventPoller.new(self)
        else
          waiter.sleep(@lock, timeout)
          waiter.is_woken = false
          return
        end
      end
      poller.io.wait_readable(timeout)
      distribute(waiter)
    end
  end
end
