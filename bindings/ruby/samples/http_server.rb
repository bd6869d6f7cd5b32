# frozen_string_literal: true

# An HTTP server in plain Ruby that serves thousands of connections on one thread.
#
#   ruby -Ilib samples/http_server.rb                        # our scheduler, port 8080
#   ruby -Ilib samples/http_server.rb minder io_uring 8080   # with this backend
#   ruby -Ilib samples/http_server.rb threads 8080           # a thread for each connection
#
# How a program uses a fiber scheduler:
#
#   1. Give the thread a scheduler:   Fiber.set_scheduler(Minder::Scheduler.new)
#   2. Start fibers:                  Fiber.schedule { puts socket.gets }
#   3. Write plain, blocking Ruby inside. A call that has to wait (gets, write, accept, sleep, Queue#pop,
#      Process.wait) suspends its fiber, and the others run.
#   4. Run until all fibers have ended: scheduler.run, or the end of the thread.
#
# `serve` below is the same in every mode, and knows nothing of schedulers.
#
# Modes: minder [BACKEND], threads (a thread for each connection), blocking (one connection after the other),
# reference (the scheduler of Ruby's own tests, in the file that MINDER_RUBY_REFERENCE names), and two other
# schedulers, async [BACKEND] and evt [BACKEND], from the directory of gems MINDER_RUBY_PEERS if it is set.
# The port 0 lets the system choose; the server prints the port.

require "socket"

BODY = "Hello World"
RESPONSE = "HTTP/1.1 200 OK\r\nContent-Length: #{BODY.bytesize}\r\n\r\n#{BODY}"
LAST_RESPONSE = "HTTP/1.1 200 OK\r\nContent-Length: #{BODY.bytesize}\r\nConnection: close\r\n\r\n#{BODY}"

# Answers the requests of one connection.
def serve(socket)
  while (head = socket.gets("\r\n\r\n")) # nil: the client has closed the connection.
    is_last = head.match?(/^connection: close\r$/i)
    socket.write(is_last ? LAST_RESPONSE : RESPONSE)
    break if is_last
  end
rescue SystemCallError, IOError
  # The client is gone. The other connections go on.
ensure
  socket.close
end

# Returns the next connection.
def accept(server)
  server.accept
rescue Errno::ECONNABORTED
  retry
rescue Errno::EMFILE, Errno::ENFILE
  # No descriptor is free until a connection ends.
  sleep 0.05
  retry
end

# Serves every connection in a fiber.
def serve_in_fibers(server, scheduler)
  Fiber.set_scheduler(scheduler)
  Fiber.schedule do
    loop do
      socket = accept(server)
      Fiber.schedule { serve(socket) }
    end
  end
  scheduler.run
end

# Lets `require` find the gems in the directory MINDER_RUBY_PEERS: installed ones (gems/NAME-VERSION, with
# their extensions) and source trees (NAME) whose extensions were built in place.
def find_peers
  directory = ENV["MINDER_RUBY_PEERS"] or return
  $LOAD_PATH.unshift(*Dir[File.join(directory, "{.,gems}/*/{lib,ext}")])
  $LOAD_PATH.unshift(*Dir[File.join(directory, "extensions/*/*/*")])
end

def minder_scheduler(backend)
  require "minder"
  # All descriptors here are sockets, which Ruby opens in nonblocking mode.
  Minder::Scheduler.new(backend: backend, blocking_io: false)
end

def reference_scheduler(_backend)
  require ENV.fetch("MINDER_RUBY_REFERENCE")
  Scheduler.new
end

def async_scheduler(backend)
  find_peers
  names = { "epoll" => "EPoll", "io_uring" => "URing", "select" => "Select" }
  ENV["IO_EVENT_SELECTOR"] = names.fetch(backend) if backend
  # async 2.24 calls it on a Ruby that does not have it.
  IO.class_eval { def timeout = nil } unless IO.method_defined?(:timeout)
  require "async"
  Async::Scheduler.new
end

def evt_scheduler(backend)
  find_peers
  require "evt"
  names = { "epoll" => :Epoll, "io_uring" => :Uring, "select" => :Select }
  (backend ? Evt.const_get(names.fetch(backend)) : Evt::Scheduler).new
end

mode, backend, port = ARGV.size > 2 ? ARGV : [ARGV[0] || "minder", nil, ARGV[1] || "8080"]
server = TCPServer.new("127.0.0.1", Integer(port))
# A server has no end that it waits for: its fibers never finish.
%w[INT TERM].each { |signal| trap(signal) { exit!(0) } }

run =
  case mode
  when "blocking" then -> { loop { serve(accept(server)) } }
  when "threads" then -> { loop { Thread.new(accept(server)) { |socket| serve(socket) } } }
  when "minder", "reference", "async", "evt"
    scheduler = send("#{mode}_scheduler", backend)
    -> { serve_in_fibers(server, scheduler) }
  else abort "invalid mode \"#{mode}\": expected minder, threads, blocking, reference, async or evt"
  end
puts server.local_address.ip_port
$stdout.flush
run.call
