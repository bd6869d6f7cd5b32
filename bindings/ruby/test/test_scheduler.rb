# frozen_string_literal: true

require_relative "helper"
require "socket"
require "timeout"

# The hooks, one by one, and what makes them right.
class TestScheduler < Test::Unit::TestCase
  include Helper

  # Defines a test for each backend.
  def self.test_each(name, &block)
    BACKENDS.each do |backend|
      define_method("test_#{name} with #{backend}") { instance_exec(backend, &block) }
    end
  end

  def test_backends_are_named
    assert_includes BACKENDS, "poll"
    BACKENDS.each { |name| assert_equal name, Minder::Scheduler.new(backend: name).backend }
    assert_equal BACKENDS.first, Minder::Scheduler.backend unless ENV["MINDER_BACKEND"]
    assert_raise(ArgumentError) { Minder::Scheduler.new(backend: "nonsense") }
    assert_equal ["poll", true], eval(ruby("p [Minder::Scheduler.backend, Minder::Scheduler.backend?('poll')]",
                                           env: { "MINDER_BACKEND" => "poll" }).first)
  end

  def test_run_returns_the_value_and_raises_errors
    assert_equal 7, in_scheduler { 7 }
    assert_raise_with_message(RuntimeError, "of a fiber") do
      in_scheduler { Fiber.schedule { sleep 0.01; raise "of a fiber" }; sleep 5 }
    end
    assert_raise(ArgumentError) { Minder::Scheduler.run }
    assert_nil Fiber.scheduler
    assert_raise(Minder::ClosedError) { in_scheduler { Minder::Scheduler.run {} } }
  end

  test_each("io_wait returns what is ready") do |backend|
    results = in_scheduler(backend: backend) do
      reader, writer = IO.pipe
      first, second = UNIXSocket.pair
      first.write("x")
      found = [writer.wait(IO::WRITABLE, 5), reader.wait(IO::READABLE, 0.01), reader.wait(IO::READABLE, 0)]
      found << (second.wait(IO::READABLE | IO::WRITABLE, 5) != nil)
      found << Fiber.scheduler.io_wait(second, IO::READABLE | IO::WRITABLE, nil)
      Fiber.schedule { sleep 0.02; writer.write("y") }
      found << reader.wait(IO::READABLE, 5).equal?(reader)
      [found, writer]
    end
    found, writer = results
    both = IO::READABLE | IO::WRITABLE
    assert_equal [writer, nil, nil, true], found[0, 4]
    assert_includes [both, IO::READABLE, IO::WRITABLE], found[4]
    assert_true found[5]
  end

  test_each("wait is never early") do |backend|
    in_scheduler(backend: backend) do
      reader, = IO.pipe
      [0.001, 0.01, 0.05].each do |limit|
        assert_operator time { assert_nil reader.wait_readable(limit) }, :>=, limit
        assert_operator time { sleep limit }, :>=, limit
      end
    end
  end

  test_each("two fibers wait for one descriptor") do |backend|
    order = in_scheduler(backend: backend) do
      near, far = UNIXSocket.pair
      near.write_nonblock("z" * 65_536) while near.wait_writable(0)
      order = []
      Fiber.schedule { near.wait_readable; order << :readable }
      Fiber.schedule { near.wait_writable; order << :writable }
      Fiber.schedule { near.wait_readable; order << :readable }
      sleep 0.01
      far.write("a")
      sleep 0.01
      order << :drained
      far.read_nonblock(1 << 20) while far.wait_readable(0.05)
      sleep 0.01
      order
    end
    assert_equal [:readable, :readable, :drained, :writable], order
  end

  test_each("many pairs talk") do |backend|
    total = 0
    in_scheduler(backend: backend) do
      100.times do
        left, right = UNIXSocket.pair
        Fiber.schedule { 20.times { |n| left.puts(n); left.gets } ; left.close }
        Fiber.schedule { while (line = right.gets) do total += line.to_i; right.puts("ok") end; right.close }
      end
    end
    assert_equal 100 * 190, total
  end

  test_each("a closed descriptor is an error, and its number is used again") do |backend|
    in_scheduler(backend: backend) do
      reader, writer = IO.pipe
      error = nil
      Fiber.schedule do
        reader.wait_readable
      rescue IOError => error
        nil
      end
      sleep 0.001
      number = reader.fileno
      reader.close
      again, = IO.pipe
      assert_equal number, again.fileno
      assert_nil again.wait_readable(0.01)
      writer.close
      assert(in_time_of(2) { error })
    end
  end

  test_each("a reopened IO is waited for") do |backend|
    in_scheduler(backend: backend) do
      first, = IO.pipe
      second, writer = IO.pipe
      woken = nil
      first.wait_readable(0.001)
      first.reopen(second)
      Fiber.schedule { woken = first.wait_readable(5) }
      writer.write("x")
      assert(in_time_of(2) { woken })
    end
  end

  test_each("numbers of closed descriptors are used again at once") do |backend|
    server = TCPServer.new("127.0.0.1", 0)
    counted = 0
    in_scheduler(backend: backend) do
      acceptor = Fiber.schedule do
        loop { Fiber.schedule(&->(socket) { -> { socket.write(socket.gets); socket.close } }.call(server.accept)) }
      rescue IOError
        nil
      end
      200.times do |n|
        socket = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
        socket.puts(n)
        counted += 1 if socket.read == "#{n}\n"
        socket.close
      end
      Fiber.scheduler.fiber_interrupt(acceptor, IOError.new)
      assert_operator Fiber.scheduler.waiting.size, :>=, 0
    end
    assert_equal 200, counted
  ensure
    server&.close
  end

  def test_bad_and_closed_descriptors
    in_scheduler do
      closed = IO.pipe.each(&:close).first
      assert_raise(IOError) { closed.wait_readable }
      gone, = IO.pipe
      copy = IO.for_fd(gone.fileno, autoclose: false)
      gone.close
      assert_raise(Errno::EBADF) { Fiber.scheduler.io_wait(copy, IO::READABLE, nil) }
      assert_raise(Errno::EBADF) { Fiber.scheduler.io_wait(copy, IO::READABLE, 0) }
    end
  end

  test_each("regular files are always ready") do |backend|
    Tempfile.create("minder") do |file|
      in_scheduler(backend: backend) do
        assert_same file, file.wait_writable
        file.write("line\n" * 10)
        file.flush
        file.rewind
        assert_equal 10, file.each_line.count
        assert_equal "line\n", File.open(file.path, &:gets)
      end
    end
  end

  def test_blocking_descriptors_do_not_block_the_loop
    pairs = { socket: UNIXSocket.pair, pipe: IO.pipe }
    pairs.each do |kind, (reader, writer)|
      require "io/nonblock"
      reader.nonblock = writer.nonblock = false
      ticks = 0
      text = in_scheduler do |scheduler|
        Fiber.schedule { 5.times { sleep 0.01; ticks += 1 } }
        Fiber.schedule { writer.write("a" * 300_000); writer.close }
        sleep 0.03
        reader.read
      end
      assert_equal [300_000, 5], [text.size, ticks], kind
    end
  end

  test_each("reads and writes need no hooks") do |backend|
    text = in_scheduler(backend: backend, blocking_io: false) do |scheduler|
      refute scheduler.respond_to?(:io_read)
      reader, writer = IO.pipe
      Fiber.schedule { writer.write("b" * 300_000); sleep 0.01; writer.close }
      reader.read
    end
    assert_equal 300_000, text.size
    assert Minder::Scheduler.new.respond_to?(:io_write)
  end

  def test_io_buffer_hooks
    Tempfile.create("minder") do |file|
      in_scheduler do
        buffer = IO::Buffer.for("hello world".b)
        assert_equal 5, buffer.pwrite(file, 5, 2)
        target = IO::Buffer.new(8)
        # Ruby 3.1.2 reads as much as the buffer has.
        assert_operator target.pread(file, 5, 2), :>=, 5
        assert_equal "hello", target.get_string(0, 5)
        reader, writer = IO.pipe
        Fiber.schedule { sleep 0.01; writer.write("abc"); sleep 0.01; writer.write("def") }
        assert_equal 6, target.read(reader, 6)
        assert_equal "abcdef", target.get_string(0, 6)
        assert_equal 3, IO::Buffer.for("xyz".b).write(writer, 3)
        assert_equal(-Errno::EBADF::Errno, Fiber.scheduler.io_read(File.open(file.path, "w"), target, 0))
        assert_equal(-Errno::EINVAL::Errno, Fiber.scheduler.io_pread(file, target, 1, -1))
      end
    end
  end

  def test_nonblocking_reads_and_writes
    in_scheduler do
      reader, writer = IO.pipe
      assert_equal :wait_readable, reader.read_nonblock(5, exception: false)
      written = 0
      while (count = writer.write_nonblock("x" * 4096, exception: false)) != :wait_writable
        written += count
      end
      assert_operator written, :>=, 4096
      assert_equal 5, reader.read_nonblock(5).size
    end
  end

  test_each("sleepers wake in order") do |backend|
    order = []
    in_scheduler(backend: backend) do
      [5, 3, 1, 4, 2].each { |n| Fiber.schedule { sleep n / 200.0; order << n } }
      assert_equal 5, Fiber.scheduler.waiting.size
    end
    assert_equal [1, 2, 3, 4, 5], order
  end

  def test_many_sleepers
    count = 0
    in_scheduler { 10_000.times { Fiber.schedule { sleep 0.05; count += 1 } } }
    assert_equal 10_000, count
  end

  def test_timers_without_fibers
    fired = []
    in_scheduler do |scheduler|
      timers = Array.new(1000) { |n| scheduler.after((n % 10) / 1000.0) { fired << n } }
      kept, dropped = timers.partition.with_index { |_, n| n.even? }
      assert(dropped.all?(&:cancel))
      assert(dropped.none?(&:cancel))
      assert(kept.all?(&:pending?))
      GC.start
    end
    assert_equal 500, fired.size
    assert_equal fired.map { |n| n % 10 }, fired.map { |n| n % 10 }.sort
    assert_raise(ArgumentError) { in_scheduler { |scheduler| scheduler.after(nil) {} } }
  end

  test_each("unblock of another thread wakes at once") do |backend|
    queue = Thread::Queue.new
    worst = in_scheduler(backend: backend) do
      # Each push happens when the loop waits already.
      pusher = Thread.new do
        10.times { Thread.pass until queue.num_waiting == 1; IO.select(nil, nil, nil, 0.005); queue << now }
      end
      pause = Array.new(10) { pushed = queue.pop; now - pushed }
      pusher.join
      pause.min
    end
    assert_operator worst, :<, 0.5
  end

  def test_locks_queues_and_threads
    in_scheduler do
      mutex = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      signalled = false
      Fiber.schedule { mutex.synchronize { condition.wait(mutex) until signalled } }
      Fiber.schedule { sleep 0.01; mutex.synchronize { signalled = true; condition.signal } }
      assert_equal :value, Thread.new { IO.select(nil, nil, nil, 0.01); :value }.value
      sized = Thread::SizedQueue.new(1)
      Fiber.schedule { 50.times { |n| sized << n }; sized.close }
      sum = 0
      while (n = sized.pop) do sum += n end
      assert_equal 1225, sum
    end
  end

  def test_an_unblock_before_the_block_is_not_lost
    in_scheduler do |scheduler|
      blocker = Object.new
      scheduler.unblock(blocker, Fiber.current)
      assert_true scheduler.block(blocker, 5)
      assert_false scheduler.block(blocker, 0.01)
      scheduler.unblock(Object.new, Fiber.current)
      assert_false scheduler.block(blocker, 0.01)
    end
  end

  def test_timeout
    in_scheduler do
      reader, = IO.pipe
      took = time { assert_raise(Timeout::Error) { Timeout.timeout(0.02) { reader.read } } }
      assert_operator took, :>=, 0.02
      assert_raise(KeyError) { Timeout.timeout(0.01, KeyError) { sleep } }
      assert_equal 3, Timeout.timeout(5) { 3 }
      assert_raise(Timeout::Error) { Timeout.timeout(0.01) { Thread::Queue.new.pop } }
      pid = spawn("sleep", "5")
      assert_raise(Timeout::Error) { Timeout.timeout(0.01) { Process.wait(pid) } }
      Process.kill("KILL", pid)
      assert_equal pid, Process.wait(pid)
      # The reader has no waiter any more.
      assert_nil reader.wait_readable(0.01)
    end
  end

  def test_process_wait
    in_scheduler do |scheduler|
      ticks = 0
      ticker = Fiber.schedule { loop { sleep 0.005; ticks += 1 } }
      pid = spawn("sleep 0.1; exit 3")
      assert_equal [pid, 3], Process.wait2(pid).then { |found, status| [found, status.exitstatus] }
      assert_operator ticks, :>=, 5
      assert_raise(Errno::ECHILD) { Process.wait(pid) }
      # A zombie, any child, a child for which two fibers wait, one that a thread waits for.
      zombie = spawn("true")
      sleep 0.05
      assert_equal zombie, Process.wait(zombie)
      any = spawn("true")
      assert_equal any, Process.wait(-1)
      statuses = []
      both = spawn("sleep 0.05")
      2.times { Fiber.schedule { statuses << (Process.wait(both) rescue Errno::ECHILD) } }
      sleep 0.2
      assert_equal [Errno::ECHILD, both], statuses.sort_by { |status| status == both ? 1 : 0 }
      threads = spawn("sleep 0.05")
      waiting = Thread.new { Process.wait(threads) rescue nil }
      status = Process.wait(threads) rescue Errno::ECHILD
      assert_includes [threads, Errno::ECHILD], status
      waiting.join
      ticks = 0
      assert_equal "out\n", `sleep 0.05; echo out`
      assert_true system("sleep 0.05")
      assert_equal "in", IO.popen("cat", "r+") { |io| io.write("in"); io.close_write; io.read }
      assert_operator ticks, :>=, 5
      scheduler.fiber_interrupt(ticker, StopIteration.new)
    end
  end

  def test_names_are_resolved
    in_scheduler do
      assert_include Addrinfo.getaddrinfo("localhost", 80).map(&:ip_address), "127.0.0.1"
      assert_raise(SocketError) { TCPSocket.new("no-such-host.invalid", 1) }
    end
  end

  def test_generators_wait_within_a_task
    lines = in_scheduler do
      reader, writer = IO.pipe
      Fiber.schedule { 3.times { |n| sleep 0.005; writer.puts(n) }; writer.close }
      generator = Fiber.new(blocking: false) { while (line = reader.gets) do Fiber.yield(line) end; nil }
      lines = []
      while (line = generator.resume) do lines << line end
      lines
    end
    assert_equal %W[0\n 1\n 2\n], lines
  end

  def test_generators_that_wait_let_others_run
    in_scheduler do
      ticks = 0
      Fiber.schedule { 5.times { sleep 0.005; ticks += 1 } }
      Fiber.new(blocking: false) { sleep 0.1 }.resume
      assert_equal 5, ticks
    end
  end

  def test_interrupts_reach_tasks_through_generators
    in_scheduler do
      generator = -> { Fiber.new(blocking: false) { sleep 5 } }
      assert_raise(Timeout::Error) { Timeout.timeout(0.01) { generator.call.resume } }
      errors = []
      # Both run the loop within their generators. The first one can continue when the second one has ended.
      Fiber.schedule { sleep 0.005; Timeout.timeout(0.05) { generator.call.resume } rescue errors << :second }
      Fiber.schedule { Timeout.timeout(0.01) { generator.call.resume } rescue errors << :first }
      sleep 0.2
      assert_equal [:second, :first], errors
    end
  end

  def test_urgent_data
    server = TCPServer.new("127.0.0.1", 0)
    in_scheduler do
      client = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
      accepted = server.accept
      assert_false Fiber.scheduler.io_wait(accepted, IO::PRIORITY, 0.01)
      client.send("!", Socket::MSG_OOB)
      assert_equal IO::PRIORITY, Fiber.scheduler.io_wait(accepted, IO::PRIORITY, 5)
      assert_raise(ArgumentError) { Fiber.scheduler.io_wait(accepted, 0, nil) }
    end
  ensure
    server.close
  end

  def test_hooks_of_later_rubies
    in_scheduler do |scheduler|
      reader, writer = IO.pipe
      writer.write("x")
      assert_equal [[reader], [], []], scheduler.io_select([reader], nil, nil, 1)
      called = false
      scheduler.blocking_operation_wait(-> { called = true })
      assert_true called
      order = []
      Fiber.schedule { order << 1; scheduler.yield; order << 3 }
      order << 2
      scheduler.yield
      assert_equal [1, 2, 3], order
      error = nil
      waiting = Fiber.schedule { (Thread::Queue.new.pop rescue error = $!) }
      scheduler.fiber_interrupt(waiting, KeyError.new("stop"))
      scheduler.yield until error
      assert_equal "stop", error.message
      closed = nil
      Fiber.schedule { (reader.read(5) ; reader.wait_readable) rescue closed = $! }
      number = reader.fileno
      reader.autoclose = false
      assert_true scheduler.io_close(number)
      scheduler.yield until closed
      assert_kind_of IOError, closed
      assert_false scheduler.io_close(writer)
    end
  end

  def test_fiber_raise_ends_each_wait
    in_scheduler do
      reader, = IO.pipe
      pid = spawn("sleep", "0.1")
      waits = [-> { reader.read }, -> { sleep }, -> { Thread::Queue.new.pop }, -> { sleep 60 },
               -> { Process.wait(pid) }, -> { Thread.new { sleep 0.3 }.join }]
      raised = 0
      waits.each do |wait|
        fiber = Fiber.schedule { wait.call rescue raised += 1 }
        fiber.raise("enough")
      end
      assert_equal waits.size, raised
      assert_equal pid, Process.wait(pid)
    end
  end

  def test_closed_scheduler
    scheduler = Minder::Scheduler.new
    refute scheduler.closed?
    scheduler.close
    assert scheduler.closed?
    assert_raise(RuntimeError) { scheduler.close }
    assert_raise(RuntimeError) { scheduler.io_wait($stdin, IO::READABLE, nil) }
    assert_raise(RuntimeError) { scheduler.after(1) {} }
    assert_raise(RuntimeError) { scheduler.fiber {} }
    assert_equal({}, scheduler.waiting)
    assert_raise(RuntimeError) { Minder::Scheduler.allocate.run }
  end

  def test_no_descriptor_is_left_open
    in_scheduler { sleep 0.001 }
    GC.start
    before = descriptors
    10.times { in_scheduler { reader, writer = IO.pipe; writer.wait_writable; reader.close; writer.close } }
    GC.start
    # Those of earlier tests may be closed by now.
    assert_operator descriptors, :<=, before
  end

  private

  # Waits in a fiber until a block returns something.
  def in_time_of(limit)
    deadline = now + limit
    sleep 0.01 until (found = yield) || now > deadline
    found
  end
end
