# frozen_string_literal: true

require_relative "helper"
require "io/nonblock"
require "socket"
require "tmpdir"

# Minder::Server when something fails: arguments, processes, connections, and the calls that it depends on.
class TestServerFaults < Test::Unit::TestCase
  include Helper

  # Runs a program with a server that prints "end", and returns what it printed, and how long it took.
  def serve(program)
    output = nil
    took = time { output, = ruby(<<~RUBY) }
      require "timeout"
      $stdout.sync = true
      def ask(address, *lines)
        socket = TCPSocket.new("127.0.0.1", address.ip_port)
        lines.each { |line| socket.puts(line) }
        Timeout.timeout(10) { socket.gets }&.chomp.to_s
      rescue Errno::ECONNRESET, Errno::ECONNREFUSED, Errno::EPIPE => error
        error.class.to_s
      end
      #{program}
      print "end"
    RUBY
    [output, took]
  end

  def test_arguments
    wrong = { workers: ["x", nil, 1.5, -1], grace: ["x", nil, -1, Float::NAN, 1e300], ready: [5],
              socket: [5, UNIXSocket.pair.first, Socket.new(:INET, :STREAM)] }
    wrong.each do |name, values|
      values.each do |value|
        error = assert_raise(ArgumentError) { Minder::Server.new("127.0.0.1", 0, name => value) { nil } }
        assert_match(/\A#{name} is /, error.message)
      end
    end
  end

  def test_a_server_runs_once_and_not_with_another_scheduler
    output, = serve(<<~'RUBY')
      server = Minder::Server.new("127.0.0.1", 0, workers: 1, ready: ->(_) { Process.kill("TERM", $$) }) { nil }
      Minder::Scheduler.run { server.run rescue puts $!.message }
      p server.run
      begin; server.run; rescue Minder::ClosedError; puts $!.message; end
    RUBY
    assert_equal ["this thread has a scheduler already: run the server in another thread", "nil",
                  "the listening socket is closed: make a new server", "end"], output.split("\n")
  end

  def test_each_kind_of_listening_socket
    Dir.mktmpdir do |directory|
      path = File.join(directory, "a 'socket'")
      blocking = TCPServer.new("127.0.0.1", 0)
      blocking.nonblock = false
      generic = Socket.tcp_server_sockets("127.0.0.1", 0).first
      sockets = [UNIXServer.new(path), blocking, generic]
      sockets << TCPServer.new("::1", 0) if Socket.ip_address_list.any?(&:ipv6_loopback?)
      sockets.each do |socket|
        pid = fork do
          Minder::Server.run(socket: socket, workers: 1, grace: 10) { |connection| connection.puts(connection.gets) }
          exit!(0)
        end
        # The second one would not be served if the first one blocked accepting.
        clients = Array.new(2) { socket.local_address.connect }
        clients.each { |client| client.puts("x") }
        assert_equal ["x\n"] * 2, clients.map { |client| in_time { client.gets } }, socket.class
        clients.each(&:close)
        Process.kill("TERM", pid)
        took = time { assert_true Process.wait2(pid).last.success? }
        assert_operator took, :<, 5, socket.class
        socket.close
      end
    end
  end

  def test_a_signal_right_after_the_start_is_not_lost
    output, took = serve(<<~'RUBY')
      4.times do
        ready = ->(_) { Process.kill("TERM", $$) }
        Minder::Server.run("127.0.0.1", 0, workers: 4, grace: 30, ready: ready) { nil }
      end
    RUBY
    assert_equal "end", output
    assert_operator took, :<, 15
  end

  def test_a_signal_ends_a_loop_of_crashes
    output, took = serve(<<~'RUBY')
      class Minder::Server
        RESTART_DELAY = 60
        def accept_connections = raise("at once")
      end
      Thread.new { IO.select(nil, nil, nil, 0.5); Process.kill("TERM", $$) }
      Minder::Server.run("127.0.0.1", 0, workers: 2) { nil }
    RUBY
    assert_match(/started again in 60 s/, output)
    assert_match(/end\z/, output)
    assert_operator took, :<, 15
  end

  def test_an_exception_ends_the_processes
    output, = serve(<<~'RUBY')
      address = nil
      ready = lambda do |found|
        address = found
        puts ask(address)
        raise KeyError, "in ready"
      end
      begin
        Minder::Server.run("127.0.0.1", 0, workers: 2, ready: ready) { |socket| socket.puts("served") }
      rescue KeyError => error
        puts error.message
      end
      puts ask(address)
      begin; Process.wait(-1, Process::WNOHANG); rescue Errno::ECHILD; puts "no child"; end
      addresses = Thread::Queue.new
      thread = Thread.new do
        Minder::Server.run("127.0.0.1", 0, workers: 2, ready: addresses.method(:<<)) { |socket| socket.puts("again") }
      end
      address = addresses.pop
      puts ask(address)
      thread.kill.join
      puts ask(address)
    RUBY
    assert_equal ["served", "in ready", "Errno::ECONNREFUSED", "no child", "again", "Errno::ECONNREFUSED", "end"],
                 output.split("\n")
  end

  def test_errors_of_the_block_end_one_connection
    output, = serve(<<~'RUBY')
      ready = lambda do |address|
        other = TCPSocket.new("127.0.0.1", address.ip_port)
        other.puts("pid")
        pid = other.gets
        %w[unimplemented deep wordless mute unsent].each do |line|
          ask(address, line)
          other.puts("pid")
          puts "#{line} #{other.gets == pid}"
        end
        client = TCPSocket.new("127.0.0.1", address.ip_port)
        client.puts("unsent")
        client.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii"))
        client.close
        sleep 0.2
        other.puts("pid")
        puts "reset #{other.gets == pid}"
        other.close
        Process.kill("TERM", $$)
      end
      def descend = descend + 1
      $stderr.reopen(File::NULL)
      Minder::Server.run("127.0.0.1", 0, workers: 1, grace: 5, ready: ready) do |socket|
        while (line = socket.gets)
          case line.chomp
          when "pid" then socket.puts($$)
          when "unimplemented" then raise NotImplementedError
          when "deep" then descend
          when "wordless" then raise Class.new(StandardError) { def message = raise("none") }
          when "mute" then $stderr.close; raise "nobody reads this"
          when "unsent" then socket.sync = false; socket.write("x"); sleep 0.1; break
          end
        end
      end
    RUBY
    expected = %w[unimplemented deep wordless mute unsent reset].map { |line| "#{line} true" }
    assert_equal [*expected, "end"], output.split("\n")
  end

  def test_no_memory_for_a_fiber_ends_one_connection
    output, = serve(<<~'RUBY')
      ready = lambda do |address|
        first = ask(address, "pid")
        puts first.to_i.positive?
        puts Array.new(3) { ask(address, "pid") }.last(2) == [first, first]
        Process.kill("TERM", $$)
      end
      class << Fiber
        alias_method :schedule_before, :schedule
        def schedule(...) = ($calls = $calls.to_i + 1) == 2 ? raise(FiberError, "no memory") : schedule_before(...)
      end
      Minder::Server.run("127.0.0.1", 0, workers: 1, grace: 5, ready: ready) { |socket| socket.gets; socket.puts($$) }
    RUBY
    assert_match(/no memory/, output)
    assert_match(/true\n.*true\nend\z/m, output)
  end

  def test_a_process_that_cannot_be_forked_is_tried_again
    output, = serve(<<~'RUBY')
      class Minder::Server
        def fork(&block) = (@forks = @forks.to_i + 1) == 1 ? raise(Errno::EAGAIN, "fork(2)") : super
      end
      ready = lambda do |address|
        puts ask(address, "x")
        Process.kill("TERM", $$)
      end
      Minder::Server.run("127.0.0.1", 0, workers: 1, ready: ready) { |socket| socket.puts(socket.gets) }
    RUBY
    assert_match(/cannot be started \(Resource temporarily unavailable.*\); it is started again in 0.2 s/, output)
    assert_match(/x\nend\z/, output)
  end

  def test_a_process_that_was_waited_for_elsewhere_is_started_again
    output, = serve(<<~'RUBY')
      trap("CLD", "IGNORE")
      ready = lambda do |address|
        first = ask(address)
        Process.kill("KILL", first.to_i)
        sleep 0.3 while (second = ask(address)).to_i.zero?
        puts first != second
        Process.kill("TERM", $$)
      end
      Minder::Server.run("127.0.0.1", 0, workers: 1, ready: ready) { |socket| socket.puts($$) }
    RUBY
    assert_match(/started again.*true\nend\z/m, output)
  end

  def test_nobody_reads_the_errors
    output, = serve(<<~'RUBY')
      reader, writer = IO.pipe
      $stderr.reopen(writer)
      writer.close
      reader.close
      ready = lambda do |address|
        first = ask(address, "die")
        second = ask(address, "x") until second.to_i.positive?
        puts "again"
        Process.kill("TERM", $$)
      end
      Minder::Server.run("127.0.0.1", 0, workers: 1, ready: ready) do |socket|
        socket.gets == "die\n" ? Process.kill("KILL", $$) : socket.puts($$)
      end
    RUBY
    assert_equal "again\nend", output
  end
end
