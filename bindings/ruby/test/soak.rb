# frozen_string_literal: true

# A server under load for a long time: clients that hang up, signals, a collector under stress now and then,
# descriptors that run out. By hand, since it takes minutes:
#
#   ruby -Ilib test/soak.rb [SECONDS]       # 600 by default
#
# Fails if the server ends, a request of a client that waits for its answer is not answered, or the memory of the
# server grows by more than a tenth after the first fifth of the time.

require "etc"
require "socket"

SERVER = <<~'RUBY'
  require "minder"
  require "socket"
  $stdout.sync = true
  Process.setrlimit(Process::RLIMIT_NOFILE, 120)
  signals = 0
  # Opened before the descriptors run out.
  memory = File.open("/proc/self/smaps_rollup")
  trap("USR1") { signals += 1 }
  # From another process every line is a number from 0 to 99; an answer is its double.
  server = TCPServer.new("127.0.0.1", 0)
  server.listen(512)
  served = shortages = 0
  serve = lambda do |socket|
    while (line = socket.gets)
      # Some answers wait for a timer, a thread or a child.
      case number = line.to_i
      when 0 then sleep 0.005
      when 1 then Thread.new { Thread.pass }.join
      when 2 then Process.wait(spawn("true")) rescue shortages += 1
      when 3 then Timeout.timeout(0.002) { sleep 1 } rescue nil
      end
      socket.write("#{2 * number}\n")
      served += 1
    end
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil
  ensure
    socket.close
  end
  Minder::Scheduler.run do |scheduler|
    puts server.local_address.ip_port
    Fiber.schedule do
      loop do
        sleep 5
        # A thread ends it: with a collection for each object, one turn of the loop may take a minute.
        stress = Thread.new { GC.stress = true; IO.select(nil, nil, nil, 0.05); GC.stress = false }
        stress.join
        GC.compact if GC.respond_to?(:compact)
        rss = memory.pread(4096, 0)[/^Rss:\s+(\d+)/, 1].to_i
        puts "#{served} #{signals} #{shortages} #{rss}"
      end
    end
    loop do
      socket = server.accept
      Fiber.schedule { serve.call(socket) }
    rescue Errno::EMFILE, Errno::ENFILE
      shortages += 1
      sleep 0.01
    end
  end
RUBY

# One client: threads that talk, hang up, or take descriptors.
CLIENT = <<~'RUBY'
  require "socket"
  require "timeout"
  $stdout.sync = true
  port, pid, seconds = ARGV.map(&:to_i)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  counts = Hash.new(0)
  running = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline }
  connect = -> { TCPSocket.new("127.0.0.1", port) }
  ask = lambda do |socket, number|
    socket.write("#{number}\n")
    answer = IO.select([socket], nil, nil, 30) ? socket.gets : abort("no answer to #{number} within 30 s")
    answer == "#{2 * number}\n" or abort "#{number} was answered by #{answer.inspect}"
    counts[:answered] += 1
  end
  kinds = {
    talk: -> { socket = connect.(); 50.times { ask.(socket, rand(100)) }; socket.close },
    once: -> { socket = connect.(); ask.(socket, rand(100)); socket.close },
    hang_up: -> { socket = connect.(); socket.write("7\n" * rand(100)); socket.close },
    reset: -> { socket = connect.(); socket.write("8\n5"); socket.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii")); socket.close },
    silent: -> { socket = connect.(); IO.select([socket], nil, nil, rand / 10); socket.close },
    # More connections than the server has descriptors. A connection that is not accepted ends the crowd: the
    # server gets descriptors only when it is gone.
    crowd: lambda do
      sockets = []
      150.times { sockets << Socket.tcp("127.0.0.1", port, connect_timeout: 0.3) }
    rescue Errno::ETIMEDOUT
      counts[:refused] += 1
    ensure
      sockets.each(&:close)
      sleep 0.5
    end,
    signal: -> { Process.kill("USR1", pid); sleep 0.01 },
  }
  threads = (%i[talk] * 6 + %i[once] * 3 + %i[hang_up reset silent crowd signal]).map do |kind|
    Thread.new { (kinds[kind].call; counts[kind] += 1) while running.() }
  end
  threads.each { |thread| thread.abort_on_exception = true }
  threads.each(&:join)
  p counts
RUBY

seconds = (ARGV[0] || 600).to_i
paths = $LOAD_PATH.map { |path| "-I#{path}" }
out, theirs = IO.pipe
server = spawn(RbConfig.ruby, "-W0", "-rtimeout", *paths, "-e", SERVER, out: theirs)
theirs.close
at_exit { Process.kill("KILL", server) rescue nil }
port = out.gets.to_i
rows = []
reader = Thread.new { while (line = out.gets) do rows << line.split.map(&:to_i); $stderr.puts line end }
client = spawn(RbConfig.ruby, "-W0", "-e", CLIENT, port.to_s, server.to_s, seconds.to_s)
status = Process.wait2(client).last
abort "the clients failed: #{status}" unless status.success?
abort "the server ended: #{Process.last_status}" if Process.wait(server, Process::WNOHANG)
Process.kill("KILL", server)
Process.wait(server)
reader.join
sizes = rows.map(&:last).drop(rows.size / 5)
abort "too short for a comparison of the memory" if sizes.size < 4
early, late = [sizes.first(sizes.size / 4), sizes.last(sizes.size / 4)].map { |part| part.sum.fdiv(part.size) }
puts "#{rows.last[0]} answers, #{rows.last[1]} signals, #{rows.last[2]} shortages; memory #{early.round} kB, then #{late.round} kB"
exit(late <= early * 1.1)
