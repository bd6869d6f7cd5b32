# frozen_string_literal: true

require_relative "helper"
require "socket"

# Minder::Server, in an interpreter of its own.
class TestServer < Test::Unit::TestCase
  include Helper

  PROGRAM = <<~'RUBY'
    require "minder"
    $stdout.sync = true
    workers, grace = Integer(ARGV[0]), Float(ARGV[1])
    ready = ->(address) { puts "port #{address.ip_port}" }
    Minder::Server.run("127.0.0.1", 0, workers: workers, grace: grace, ready: ready) do |socket|
      while (line = socket.gets)
        case line.chomp
        when "pid" then socket.puts(Process.pid)
        when "die" then Process.kill("KILL", Process.pid)
        when "raise" then raise "on purpose"
        when "files" then socket.puts(Dir.children("/proc/self/fd").size)
        when /sleep (.*)/ then sleep $1.to_f; socket.puts("slept")
        end
      end
    end
    puts "end"
  RUBY

  def setup
    @servers = []
  end

  def teardown
    @servers.each do |server|
      Process.kill("KILL", server[:pid])
      Process.wait(server[:pid])
    rescue Errno::ESRCH, Errno::ECHILD
      nil
    ensure
      server[:out].close
    end
  end

  def start(workers: 2, grace: 5)
    out, theirs = IO.pipe
    paths = $LOAD_PATH.map { |path| "-I#{path}" }
    pid = spawn(RbConfig.ruby, "-W0", *paths, "-e", PROGRAM, workers.to_s, grace.to_s, out: theirs, err: theirs)
    theirs.close
    server = { pid: pid, out: out }
    @servers << server
    server[:port] = Integer(in_time { out.gets }[/port (\d+)/, 1])
    server
  end

  def connect(server)
    socket = TCPSocket.new("127.0.0.1", server[:port])
    socket.timeout = 10 if socket.respond_to?(:timeout=)
    socket
  end

  # Sends a line on a new connection, and returns the answer.
  def ask(server, line)
    socket = connect(server)
    socket.puts(line)
    in_time { socket.gets }&.chomp
  ensure
    socket&.close
  end

  def is_alive(pid)
    File.read("/proc/#{pid}/stat").rpartition(")").last.split.first != "Z"
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end

  # Returns what a block returns once that is true.
  def eventually(limit = 10)
    deadline = now + limit
    until (found = yield)
      flunk "not within #{limit} s" if now > deadline
      IO.select(nil, nil, nil, 0.01)
    end
    found
  end

  def workers(server)
    File.read("/proc/#{server[:pid]}/task/#{server[:pid]}/children").split.map(&:to_i).select do |pid|
      File.read("/proc/#{pid}/comm").strip != "minder-guardian"
    rescue Errno::ENOENT
      false
    end
  end

  def test_processes_share_the_socket
    server = start(workers: 3)
    seen = Array.new(60) { ask(server, "pid").to_i }.uniq
    assert_operator seen.size, :>=, 1
    assert_empty seen - eventually { (found = workers(server)).size == 3 && found }
    many = Array.new(50) { connect(server) }
    many.each { |socket| socket.puts("pid") }
    assert_equal 50, many.count { |socket| in_time { socket.gets }.to_i.positive? }
    many.each(&:close)
  end

  def test_an_error_ends_one_connection
    server = start(workers: 1)
    other = connect(server)
    assert_nil ask(server, "raise")
    assert_match(/on purpose/, in_time { server[:out].gets })
    other.puts("pid")
    assert_equal workers(server).first, in_time { other.gets }.to_i
    other.close
  end

  def test_a_killed_process_is_started_again
    server = start(workers: 1)
    first = ask(server, "pid").to_i
    assert_nil ask(server, "die")
    second = in_time { eventually { (pid = ask(server, "pid").to_i).positive? && pid } }
    assert_not_equal first, second
    assert_match(/started again in 0.2 s/, in_time { server[:out].gets })
  end

  def test_term_drains
    server = start(workers: 2)
    busy = connect(server)
    busy.puts("sleep 0.5")
    idle = connect(server)
    idle.close
    IO.select(nil, nil, nil, 0.1)
    Process.kill("TERM", server[:pid])
    assert_equal "slept", in_time { busy.gets }&.chomp
    busy.close
    assert_equal "end", in_time { server[:out].gets }&.chomp
    assert_true Process.wait2(server[:pid]).last.success?
    assert_raise(Errno::ECONNREFUSED) { connect(server) }
  end

  def test_grace_ends
    server = start(workers: 2, grace: 0.3)
    hanging = connect(server)
    hanging.puts("pid")
    hanging.gets
    Process.kill("TERM", server[:pid])
    assert_equal "end", in_time { server[:out].gets }&.chomp
    assert_nil hanging.gets
  end

  def test_second_signal_ends_at_once
    server = start(workers: 2, grace: 60)
    hanging = connect(server)
    hanging.puts("pid")
    hanging.gets
    2.times { Process.kill("INT", server[:pid]); IO.select(nil, nil, nil, 0.3) }
    assert_equal "end", in_time { server[:out].gets }&.chomp
  end

  def test_nothing_survives_a_killed_parent
    server = start(workers: 3)
    pids = eventually { (found = workers(server)).size == 3 && found }
    Process.kill("KILL", server[:pid])
    Process.wait(server[:pid])
    eventually(2) { pids.none? { |pid| is_alive(pid) } }
  end

  def test_processes_hold_no_descriptor_of_each_other
    server = start(workers: 1)
    few = ask(server, "files").to_i
    assert_operator few, :<, 20
    20.times { ask(server, "pid") }
    assert_equal few, ask(server, "files").to_i
  end

  def test_arguments
    assert_raise(ArgumentError) { Minder::Server.new }
    assert_raise(ArgumentError) { Minder::Server.new(workers: 0) {} }
    assert_raise(Errno::EADDRINUSE) do
      taken = TCPServer.new("127.0.0.1", 0)
      Minder::Server.new("127.0.0.1", taken.local_address.ip_port) {}
    end
  end
end
