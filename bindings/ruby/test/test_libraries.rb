# frozen_string_literal: true

require_relative "helper"
require "logger"
require "net/http"
require "openssl"
require "resolv"
require "socket"
require "stringio"
require "timeout"

# Libraries of Ruby, unchanged, in fibers: each lets the others run while it waits.
class TestLibraries < Test::Unit::TestCase
  include Helper

  # Runs a block alongside a fiber that counts, and checks that it counted meanwhile.
  def alongside_others
    in_scheduler do |scheduler|
      ticks = 0
      ticker = Fiber.schedule { loop { sleep 0.002; ticks += 1 } }
      value = yield
      assert_operator ticks, :>=, 3, "the others did not run"
      scheduler.fiber_interrupt(ticker, StopIteration.new)
      value
    end
  end

  # Serves connections of a listening socket in fibers, each by a block.
  def serve(server, count)
    Fiber.schedule do
      count.times do
        socket = server.accept
        Fiber.schedule do
          yield socket
        ensure
          socket.close
        end
      end
      server.close
    end
  end

  def test_net_http
    bodies = alongside_others do
      server = TCPServer.new("127.0.0.1", 0)
      serve(server, 3) do |socket|
        path = socket.gets.split[1]
        nil until socket.gets == "\r\n"
        sleep 0.02
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: #{path.size}\r\nConnection: close\r\n\r\n#{path}")
      end
      uri = "http://127.0.0.1:#{server.local_address.ip_port}"
      threads = %w[/a /b /c].map { |path| queue = Thread::Queue.new; Fiber.schedule { queue << Net::HTTP.get(URI(uri + path)) }; queue }
      threads.map(&:pop)
    end
    assert_equal %w[/a /b /c], bodies
  end

  def test_net_http_times_out
    alongside_others do
      server = TCPServer.new("127.0.0.1", 0)
      http = Net::HTTP.new("127.0.0.1", server.local_address.ip_port)
      http.read_timeout = 0.05
      http.max_retries = 0
      assert_raise(Net::ReadTimeout) { http.get("/") }
      server.close
    end
  end

  def certificate
    key = OpenSSL::PKey::RSA.new(2048)
    name = OpenSSL::X509::Name.parse("/CN=localhost")
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = 1
    certificate.subject = certificate.issuer = name
    certificate.public_key = key.public_key
    certificate.not_before = Time.now - 60
    certificate.not_after = Time.now + 3600
    certificate.sign(key, OpenSSL::Digest.new("SHA256"))
    [certificate, key]
  end

  def test_openssl
    own, key = certificate
    text = alongside_others do
      server = TCPServer.new("127.0.0.1", 0)
      context = OpenSSL::SSL::SSLContext.new
      context.cert, context.key = own, key
      serve(server, 1) do |socket|
        tls = OpenSSL::SSL::SSLSocket.new(socket, context)
        tls.accept
        sleep 0.02
        tls.write(tls.gets.upcase * 10_000)
        tls.close
      end
      client = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", server.local_address.ip_port))
      client.connect
      client.puts("secret")
      client.read
    end
    assert_equal "SECRET\n" * 10_000, text
  end

  def test_resolv
    alongside_others do
      # A server of names that answers after a while: one address for each question.
      server = UDPSocket.new
      server.bind("127.0.0.1", 0)
      Fiber.schedule do
        question, from = server.recvfrom(512)
        sleep 0.03
        message = Resolv::DNS::Message.decode(question)
        answer = Resolv::DNS::Message.new(message.id)
        answer.qr = 1
        name, = message.question.first
        answer.add_question(name, Resolv::DNS::Resource::IN::A)
        answer.add_answer(name, 60, Resolv::DNS::Resource::IN::A.new("192.0.2.7"))
        server.send(answer.encode, 0, from[3], from[1])
      end
      dns = Resolv::DNS.new(nameserver_port: [["127.0.0.1", server.local_address.ip_port]])
      dns.timeouts = 5
      # Ruby 3.1 waits for answers by IO.select, which it does not let a scheduler do: in a thread.
      found = Thread.new { dns.getaddress("name.example").to_s }.value
      assert_equal "192.0.2.7", found
      server.close
    end
  end

  def test_logger_and_monitors
    alongside_others do
      reader, writer = IO.pipe
      logger = Logger.new(writer)
      5.times { |n| Fiber.schedule { 200.times { logger.info("fiber #{n}: #{"x" * 100}") } } }
      sleep 0.02
      lines = 0
      while lines < 1000
        assert_match(/INFO -- : fiber \d: x+$/, reader.gets)
        lines += 1
      end
    end
  end

  def test_children_of_ruby
    alongside_others do
      assert_equal "a\nb\n", IO.popen("sleep 0.02; echo b; echo a", &:read).lines.sort.join
      assert_equal "out\n", `sleep 0.02; echo out`
      assert_true system("sleep 0.02")
      assert_false system("sleep 0.02; exit 1")
      assert_equal 1, $?.exitstatus
      assert_equal "text", IO.popen(%w[cat], "r+") { |io| io.write("text"); io.close_write; io.read }
    end
  end

  def test_copy_stream
    alongside_others do
      reader, writer = IO.pipe
      Fiber.schedule { IO.copy_stream(StringIO.new("y" * 500_000), writer); sleep 0.02; writer.close }
      target = StringIO.new
      assert_equal 500_000, IO.copy_stream(reader, target)
      assert_equal 500_000, target.string.size
    end
  end
end
