# frozen_string_literal: true

require "etc"
require "io/nonblock"
require "socket"

module Minder
  # A server in several processes, one for each processor, that share a listening socket.
  #
  #   Minder::Server.run("localhost", 8080) do |socket|
  #     socket.write("HTTP/1.1 204 No Content\r\n\r\n") while socket.gets("\r\n\r\n")
  #   end
  #
  # Each process is forked, and runs the block in a new fiber for each connection, which is closed afterwards.
  # An error of the block is printed, and ends that connection alone; +exit+ ends the process. The block should not
  # read from a descriptor in blocking mode, such as $stdin: see +blocking_io+ of Scheduler#initialize.
  #
  # - A process that exits or cannot be started is started again, after a delay that doubles while processes exit
  #   soon.
  # - TERM and INT let the server drain: no connection is accepted any more, and those that are open have
  #   +grace+ seconds to end. A second signal ends them at once.
  # - A +kill -9+ of this process ends the others, too: a Guardian kills them with what they started. So does an
  #   exception that ends +run+.
  #
  # Raises NotImplementedError where fork does not exist.
  class Server
    # The delay before a process is started again, in seconds. It doubles up to the maximum, and begins anew
    # after a process that ran for STABLE_TIME.
    RESTART_DELAY = 0.1
    RESTART_DELAY_MAX = 60
    STABLE_TIME = 10
    # How long accepting pauses when no descriptor, or no memory for a fiber, is free, in seconds.
    ACCEPT_PAUSE = 0.05
    SIGNALS = %w[TERM INT].freeze
    # The seconds that may be given as +grace+.
    GRACES = (0..1_000_000_000)
    private_constant :GRACES

    # Ends the fiber that accepts connections.
    class Drain < RuntimeError; end

    # Errors of accept(2) that mean nothing for the next connection.
    PASSING_ERRORS = [Errno::ECONNABORTED, Errno::EPROTO, Errno::EINTR, Errno::EPERM, Errno::ETIMEDOUT,
                      Errno::ENETDOWN, Errno::ENETUNREACH, Errno::EHOSTDOWN, Errno::EHOSTUNREACH,
                      Errno::ENOPROTOOPT].freeze
    # What the block of a connection may raise without an end of the process.
    BLOCK_ERRORS = [StandardError, ScriptError, SystemStackError, NoMemoryError].freeze
    private_constant :Drain, :PASSING_ERRORS, :BLOCK_ERRORS

    # Runs a server until a signal ends it: see +new+.
    def self.run(host = "localhost", port = 0, **options, &block)
      new(host, port, **options, &block).run
    end

    # Opens the listening socket. +port+ may be 0, for a free one; +ready+ is called with the address when the
    # server accepts connections. +socket+ is a listening socket to use instead, which is put into nonblocking
    # mode. +workers+ is the number of processes, +grace+ the time for open connections in seconds, +backend+ that
    # of Scheduler.
    def initialize(host = "localhost", port = 0, socket: nil, workers: Etc.nprocessors, grace: 10, backend: nil,
                   ready: nil, &block)
      raise ArgumentError, "no block given" unless block
      unless workers.is_a?(Integer) && workers.positive?
        raise ArgumentError, "workers is #{workers.inspect}: expected a positive integer"
      end
      unless grace.is_a?(Numeric) && grace.real? && GRACES.cover?(grace)
        raise ArgumentError, "grace is #{grace.inspect}: expected seconds, from 0 to #{GRACES.end}"
      end
      raise ArgumentError, "ready is #{ready.inspect}: expected a Proc" unless ready.nil? || ready.respond_to?(:call)
      raise NotImplementedError, "this system has no fork" unless Process.respond_to?(:fork)

      @socket = socket ? check_socket(socket) : TCPServer.new(host, port)
      @workers, @grace, @backend, @ready, @block = workers, grace, backend, ready, block
    end

    # Runs the server until a signal ends it. A server runs once.
    def run
      raise ClosedError, "the listening socket is closed: make a new server" if @socket.closed?
      raise ClosedError, "this thread has a scheduler already: run the server in another thread" if Fiber.scheduler

      # From the processes to their entries in the list of the guardian.
      @pids = {}
      # The fibers that wait before they start a process again.
      @resting = []
      @running = @workers
      begin
        @guardian = Guardian.new(restart: true)
        with_signals { |signals| serve_until_signal(signals) }
      ensure
        kill_rest
        @guardian&.close
        @socket.close
      end
      nil
    end

    private

    def check_socket(socket)
      unless socket.is_a?(BasicSocket)
        raise ArgumentError, "socket is #{socket.inspect}: expected a listening socket, such as a TCPServer"
      end
      unless socket.getsockopt(:SOCKET, :ACCEPTCONN).bool
        raise ArgumentError, "socket is #{socket.inspect}, which does not listen: call listen first"
      end

      # In blocking mode, accept would block all fibers of a process.
      socket.nonblock = true
      socket
    end

    def serve_until_signal(signals)
      Scheduler.run(backend: @backend) do |scheduler|
        @workers.times { scheduler.fiber { supervise(scheduler, signals) } }
        @ready&.call(@socket.local_address)
        stop_workers(scheduler, signals)
      end
    end

    # Calls a block with a queue of the signals that arrive meanwhile.
    def with_signals
      signals = Thread::Queue.new
      previous = SIGNALS.to_h { |name| [name, Signal.trap(name) { signals << name unless signals.closed? }] }
      yield signals
    ensure
      previous&.each { |name, action| Signal.trap(name, action || "DEFAULT") }
    end

    # Waits for signals: the first one asks the processes to exit, a second one and the end of the grace kill.
    def stop_workers(scheduler, signals)
      return unless signals.pop

      @is_stopping = true
      @resting.each { |fiber| scheduler.unblock(self, fiber) }
      kill_all("TERM")
      timer = scheduler.after(@grace + 1) { kill_all("KILL") }
      kill_all("KILL") while signals.pop
      timer.cancel
    end

    def kill_all(signal)
      @pids.each_key { |pid| kill(signal, pid) }
    end

    def kill(signal, pid)
      Process.kill(signal, pid)
    rescue Errno::ESRCH
      nil
    end

    # Kills the processes that an exception left, with what they started.
    def kill_rest
      @pids.each_key { |pid| [pid, -pid].each { |target| kill("KILL", target) } }
      @pids.keys.each do |pid|
        forget(pid)
        Process.wait(pid)
      rescue Errno::ECHILD
        nil
      end
    end

    # Removes a process from the list of the guardian.
    def forget(pid)
      @pids.delete(pid)&.release
    end

    # Prints to the standard error, which may be closed. One write keeps lines of several processes apart.
    def print_error(error)
      $stderr.write("#{error.is_a?(Exception) ? describe(error) : error}\n")
    rescue SystemCallError, IOError
      nil
    end

    def describe(error)
      error.full_message(highlight: false).chomp
    rescue StandardError => failure
      "minder: cannot print the message of a #{error.class}: #{failure.class}"
    end

    # Keeps one process running. The last one that ends closes the queue.
    def supervise(scheduler, signals)
      delay = RESTART_DELAY
      until @is_stopping
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        message = run_worker(scheduler, signals)
        break if @is_stopping

        is_stable = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started >= STABLE_TIME
        delay = is_stable ? RESTART_DELAY : [2 * delay, RESTART_DELAY_MAX].min
        print_error "minder: #{message}; it is started again in #{delay} s"
        rest(scheduler, delay)
      end
    ensure
      @running -= 1
      signals.close if @running.zero?
    end

    # Waits until a time has passed, or the server stops.
    def rest(scheduler, delay)
      @resting << Fiber.current
      scheduler.block(self, delay) unless @is_stopping
    ensure
      @resting.delete(Fiber.current)
    end

    # Forks a process and waits for its exit. Returns what happened.
    def run_worker(scheduler, signals)
      pid = start_worker(signals)
      # It leaves the list of the guardian before its pid is free, if the system can watch it.
      forget(pid) if scheduler.send(:wait_for_exit, pid)
      status = Process.wait2(pid).last
      forget(pid)
      "a server process ended (#{status})"
    rescue Errno::ECHILD
      forget(pid)
      "a server process ended (pid #{pid}, which was waited for elsewhere)"
    rescue SystemCallError, Error => error
      raise if pid

      "a server process cannot be started (#{error.message})"
    end

    # Forks a process, which serves as soon as the guardian knows it. Returns its pid.
    def start_worker(signals)
      gate, key = IO.pipe
      pid = fork { work(gate, key, signals) }
      @pids[pid] = nil
      # A group of its own, which the guardian kills whole.
      Process.setpgid(pid, pid)
      @pids[pid] = @guardian.guard(pid)
      key.write(".")
      pid
    rescue SystemCallError, Error
      if pid
        kill("KILL", pid)
        forget(pid)
        Process.detach(pid)
      end
      raise
    ensure
      [gate, key].each { |io| io&.close }
    end

    # The life of a process of the server. +missed+ is the queue of signals of the parent.
    def work(gate, key, missed)
      Fiber.set_scheduler(nil)
      key.close
      exit!(1) unless gate.read(1)
      gate.close
      @connections = 0
      with_signals do |signals|
        # What came since the fork went to the copy of the parent's queue.
        signals << missed.pop until missed.empty?
        Scheduler.run(backend: @backend, blocking_io: false) do |scheduler|
          acceptor = scheduler.fiber { accept_connections }
          drain(scheduler, signals, acceptor)
        end
      end
      exit!(0)
    rescue Exception => error
      print_error error
    ensure
      exit!(1)
    end

    # Waits for a signal, and then for the connections.
    def drain(scheduler, signals, acceptor)
      signals.pop
      scheduler.fiber_interrupt(acceptor, Drain.new)
      @socket.close
      @signals = signals
      timer = scheduler.after(@grace) { exit!(0) }
      exit!(0) if @connections.positive? && signals.pop
      timer.cancel
    end

    def accept_connections
      loop do
        # Socket#accept returns an address, too.
        connection, = @socket.accept
        Fiber.schedule { serve(connection) }
      rescue Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM
        sleep ACCEPT_PAUSE
      rescue FiberError, NoMemoryError => error
        # There is no memory for the stack of a fiber.
        close(connection)
        print_error error
        sleep ACCEPT_PAUSE
      rescue *PASSING_ERRORS
        next
      end
    rescue Drain
      nil
    end

    def serve(connection)
      @connections += 1
      @block.call(connection)
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil # The client has hung up.
    rescue *BLOCK_ERRORS => error
      print_error error
    ensure
      close(connection)
      @connections -= 1
      @signals&.close if @connections.zero?
    end

    # Closes a connection. To write what its buffer holds may fail, if the client has hung up.
    def close(connection)
      connection&.close
    rescue SystemCallError, IOError
      nil
    end
  end
end
