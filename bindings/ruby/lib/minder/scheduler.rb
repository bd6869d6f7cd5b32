# frozen_string_literal: true

require "fiber"
require "socket"

module Minder
  # A scheduler of fibers: while one waits for a descriptor, a time, a process, a lock or a thread, the others
  # of the same thread run.
  #
  #   Minder::Scheduler.run do
  #     Fiber.schedule { sleep 1; puts "one" }
  #     Fiber.schedule { puts Net::HTTP.get(URI("http://localhost/")) }
  #   end
  #
  # Ruby calls most of its methods itself, as hooks: see Fiber::SchedulerInterface. Those that are documented
  # here as hooks are not meant for programs.
  #
  # One scheduler belongs to one thread. Other threads may call +unblock+ and +after+ only, and get a ThreadError
  # from what would resume fibers or suspend one. In a process that
  # was made by fork, the scheduler begins anew: what other fibers waited for is forgotten there.
  #
  # The hooks of Ruby 3.1 leave two waits to the thread: IO.select, and reads of a stored file.
  class Scheduler
    # What +abandon+ raises in the fibers that wait. Only code that cleans up should rescue it.
    class Stopped < Exception; end

    class << self
      # Runs a block as a fiber of a new scheduler, until that fiber and all others have ended. Returns the
      # value of the block. If a fiber raises, or this thread is interrupted, the others end as +abandon+
      # says, and the exception is raised here. The options are those of +new+.
      def run(**options, &block)
        raise ArgumentError, "no block given" unless block
        raise ClosedError, "this thread has a scheduler already" if Fiber.scheduler

        value = nil
        scheduler = new(**options)
        Fiber.set_scheduler(scheduler)
        begin
          scheduler.fiber { value = block.call(scheduler) }
          scheduler.run unless scheduler.closed?
          is_done = true
        ensure
          # A thread that is killed has no exception.
          is_done ? Fiber.set_scheduler(nil) : scheduler.abandon
        end
        value
      end

      # Returns the names of the wait mechanisms that work on this machine, the best one first.
      def available_backends
        %w[epoll kqueue io_uring poll].select { |name| backend?(name) }
      end

      # Returns the name of the wait mechanism that a new scheduler has.
      def backend
        scheduler = new
        scheduler.backend
      ensure
        scheduler&.send(:release)
      end
    end

    # Opens a scheduler. +backend+ is one of +available_backends+; by default the environment variable
    # MINDER_BACKEND, or else the best one. Raises ArgumentError for another name, and NotImplementedError for
    # one that this machine forbids.
    #
    # With +blocking_io+ false, reads and writes of a descriptor in blocking mode, such as an inherited $stdin,
    # block the thread. Those of sockets and pipes, which Ruby opens in nonblocking mode, never do, and cost
    # less: Ruby makes an object for each call of the hooks io_read and io_write, which are missing then.
    def initialize(backend: nil, blocking_io: true)
      name = backend || ENV["MINDER_BACKEND"]
      begin
        open_backend(name == "" ? nil : name)
      rescue ArgumentError => error
        origin = "MINDER_BACKEND names it; " unless backend
        available = self.class.available_backends.join(", ")
        raise ArgumentError, "#{error.message} (#{origin}available here: #{available})"
      end
      singleton_class.class_eval { undef_method :io_read, :io_write } unless blocking_io
    end

    # Hook: runs all fibers to their end, and closes the scheduler. Fiber.set_scheduler(nil) and the end of the
    # thread call it.
    def close(internal = false)
      return Fiber.set_scheduler(nil) if !internal && Fiber.scheduler.equal?(self)
      raise "the scheduler is closed already" if closed?

      run unless @is_abandoned
    ensure
      release if internal || !Fiber.scheduler.equal?(self)
    end

    # Hook of Ruby: see +close+.
    def scheduler_close
      close(true)
    end

    # Closes the scheduler at once. Each fiber that waits gets the exception Stopped, so that it can clean up; if
    # it waits again, it does not continue. Another exception is printed.
    def abandon
      fibers = suspended
      @is_abandoned = true
      fibers.each { |fiber| stop(fiber) }
      Fiber.scheduler.equal?(self) ? Fiber.set_scheduler(nil) : release
    end

    # Hook of Fiber.schedule: runs a block in a new fiber until that waits or ends. Returns the fiber.
    def fiber(&block)
      raise "the scheduler is closed" if closed?

      start(Fiber.new(blocking: false, &block))
    end

    # Hook of Timeout.timeout: raises in the fiber that runs if its block takes longer.
    def timeout_after(duration, klass, message)
      fiber = Fiber.current
      timer = after(duration) { interrupt(fiber, klass, message) }
      begin
        yield duration
      ensure
        timer.cancel
      end
    end

    # Hook of Ruby 3.5: raises in a fiber that waits.
    def fiber_interrupt(fiber, exception)
      raise TypeError, "wrong argument type #{fiber.class} (expected Fiber)" unless fiber.is_a?(Fiber)

      after(0) { interrupt(fiber, exception) }
      nil
    end

    # Hook of Process.wait, system and the like: waits for the exit of a process without a thread, where the
    # system can watch it (pidfd, kqueue) and the caller named it.
    def process_wait(pid, flags)
      nonblocking = flags | Process::WNOHANG
      if pid.positive? && (flags & Process::WUNTRACED).zero?
        loop do
          # Of a process that has exited or is no child, the answer is there at once.
          status = Process::Status.wait(pid, nonblocking)
          return status if status
          break unless wait_for_exit(pid)
        end
      end
      in_thread { Process::Status.wait(pid, flags) }
    end

    # Hook of the resolution of host names. The C library resolves, in a thread.
    def address_resolve(hostname)
      in_thread { Addrinfo.getaddrinfo(hostname, nil).map(&:ip_address).uniq }
    end

    # Hook of IO.select, from Ruby 3.2 on.
    def io_select(readables, writables = nil, exceptables = nil, timeout = nil)
      in_thread { IO.select(readables, writables, exceptables, timeout) }
    end

    # Hook of IO#close, from Ruby 3.3 on: wakes the fibers that wait for the descriptor, with an error.
    def io_close(io)
      unless io.is_a?(Integer)
        forget(io.fileno) unless io.closed?
        return false
      end
      forget(io)
      IO.for_fd(io).close
      true
    end

    # Hook of Ruby 3.4: calls an operation that would block, in a thread.
    def blocking_operation_wait(work)
      in_thread { work.call }
      nil
    end

    private

    # How long an interrupt of a fiber that cannot be resumed now is deferred, in seconds.
    DEFER_TIME = 0.001
    private_constant :DEFER_TIME

    def interrupt(fiber, *exception)
      return if !fiber.alive? || raise_in(fiber, *exception)

      after(DEFER_TIME) { interrupt(fiber, *exception) }
    end

    # Waits for urgent data.
    def wait_for_priority(io, timeout)
      in_thread { io.wait(IO::PRIORITY, timeout) } ? IO::PRIORITY : false
    end

    def stop(fiber)
      raise_in(fiber, Stopped, "the scheduler was closed") if fiber.alive?
    rescue Stopped
      nil
    rescue Exception => error
      $stderr.puts error.full_message(highlight: false)
    end

    # Calls a block in a thread, and suspends the fiber until it has returned or raised.
    def in_thread
      thread = Thread.new do
        Thread.current.report_on_exception = false
        yield
      end
      thread.value
    ensure
      thread&.kill
    end
  end
end
