# frozen_string_literal: true

require "etc"
require "socket"

module Minder
  # A server in several processes, one for each processor, that share a listening socket.
  #
  #   Minder::Server.run("localhost", 8080) do |socket|
  #     socket.write("HTTP/1.1 204 No Content\r\n\r\n") while socket.gets("\r\n\r\n")
  #   end
  #
  # Each process is forked, and runs the block in a new fiber for each connection, which is closed afterwards.
  # An error of the block is printed, and ends that connection alone. The block should not read from a descriptor
  # in blocking mode, such as $stdin: see +blocking_io+ of Scheduler#initialize.
  #
  # - A process that exits is started again, after a delay that doubles while processes exit soon.
  # - TERM and INT let the server drain: no connection is accepted any more, and those that are open have
  #   +grace+ seconds to end. A second signal ends them at once.
  # - A +kill -9+ of this process ends the others, too: a Guardian kills them with what they started.
  #
  # Raises NotImplementedError where fork does not exist.
  class Server
    # The delay before a process is started again, in seconds. It doubles up to the maximum, and begins anew
    # after a process that ran for STABLE_TIME.
    RESTART_DELAY = 0.1
    RESTART_DELAY_MAX = 60
    STABLE_TIME = 10
    # How long accepting pauses when no descriptor is free, in seconds.
    ACCEPT_PAUSE = 0.05
    SIGNALS = %w[TERM INT].freeze

    # Ends the fiber that accepts connections.
    class Drain < RuntimeError; end
    private_constant :Drain

    # Runs a server until a signal ends it: see +new+.
    def self.run(host = "localhost", port = 0, **options, &block)
      new(host, port, **options, &block).run
    end

    # Opens the listening socket. +port+ may be 0, for a free one; +ready+ is called with the address when the
    # server accepts connections. +socket+ is a listening socket to use instead. +workers+ is the number of
    # processes, +grace+ the time for open connections in seconds, +backend+ that of Scheduler.
    def initialize(host = "localhost", port = 0, socket: nil, workers: Etc.nprocessors, grace: 10, backend: nil,
                   ready: nil, &block)
      raise ArgumentError, "no block given" unless block
      raise ArgumentError, "workers is #{workers}: expected at least 1" unless workers.positive?
      raise NotImplementedError, "this system has no fork" unless Process.respond_to?(:fork)

      @socket = socket || TCPServer.new(host, port)
      @workers, @grace, @backend, @ready, @block = workers, grace, backend, ready, block
    end

    # Runs the server until a signal ends it.
    def run
      @guardian = Guardian.new(restart: true)
      @pids = []
      @running = @workers
      with_signals do |signals|
        Scheduler.run(backend: @backend) do |scheduler|
          @workers.times { scheduler.fiber { supervise(scheduler, signals) } }
          @ready&.call(@socket.local_address)
          stop_workers(scheduler, signals)
        end
      end
    ensure
      @socket.close unless @socket.closed?
    end

    private

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
      kill_all("TERM")
      timer = scheduler.after(@grace + 1) { kill_all("KILL") }
      kill_all("KILL") while signals.pop
      timer.cancel
    end

    def kill_all(signal)
      @pids.each { |pid| Process.kill(signal, pid) }
    end

    # Keeps one process running. The last one that ends closes the queue.
    def supervise(scheduler, signals)
      delay = RESTART_DELAY
      until @is_stopping
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        status = run_worker(scheduler)
        break if @is_stopping

        is_stable = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started >= STABLE_TIME
        delay = is_stable ? RESTART_DELAY : [2 * delay, RESTART_DELAY_MAX].min
        $stderr.puts "minder: a server process ended (#{status}); it is started again in #{delay} s"
        sleep delay
      end
    ensure
      @running -= 1
      signals.close if @running.zero?
    end

    # Forks a process and waits for its exit. It serves as soon as the guardian knows it.
    def run_worker(scheduler)
      gate, key = IO.pipe
      pid = fork { work(gate, key) }
      @pids << pid
      # A group of its own, which the guardian kills whole.
      Process.setpgid(pid, pid)
      guarded = @guardian.guard(pid)
      key.write(".")
      [gate, key].each(&:close)
      # It leaves the list of the guardian before its pid is free.
      scheduler.send(:wait_for_exit, pid)
      guarded.release
      @pids.delete(pid)
      Process.wait2(pid).last
    end

    # The life of a process of the server.
    def work(gate, key)
      Fiber.set_scheduler(nil)
      key.close
      exit!(1) unless gate.read(1)
      gate.close
      @connections = 0
      with_signals do |signals|
        Scheduler.run(backend: @backend, blocking_io: false) do |scheduler|
          acceptor = scheduler.fiber { accept_connections }
          drain(scheduler, signals, acceptor)
        end
      end
      exit!(0)
    rescue Exception => error
      $stderr.puts error.full_message(highlight: false)
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
        connection = @socket.accept
        @connections += 1
        Fiber.schedule { serve(connection) }
      rescue Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM
        sleep ACCEPT_PAUSE
      rescue Errno::ECONNABORTED, Errno::EPROTO, Errno::EINTR
        next
      end
    rescue Drain
      nil
    end

    def serve(connection)
      @block.call(connection)
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil # The client has hung up.
    rescue StandardError => error
      $stderr.puts error.full_message(highlight: false)
    ensure
      connection.close unless connection.closed?
      @connections -= 1
      @signals&.close if @connections.zero?
    end
  end
end
