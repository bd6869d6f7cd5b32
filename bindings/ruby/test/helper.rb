# frozen_string_literal: true

require "minder"
require "test/unit"
require "rbconfig"
require "tempfile"

# What the tests share.
module Helper
  # No test takes longer, in seconds.
  LIMIT = 20
  BACKENDS = Minder::Scheduler.available_backends

  # Runs a block in a thread with a scheduler, and returns its value.
  def in_scheduler(**options, &block)
    in_time { Minder::Scheduler.run(**options, &block) }
  end

  def in_time(limit = LIMIT, &block)
    thread = Thread.new(&block)
    thread.report_on_exception = false
    unless thread.join(limit)
      where = thread.backtrace&.first(5)
      thread.kill
      flunk "it still runs after #{limit} s: #{where}"
    end
    thread.value
  end

  # Runs a program in a new interpreter. Returns what it printed, and its status.
  def ruby(program, *arguments, env: {})
    paths = $LOAD_PATH.map { |path| "-I#{path}" }
    command = [env, RbConfig.ruby, "-W0", *paths, "-rminder", "-e", program, *arguments]
    reader, writer = IO.pipe
    pid = spawn(*command, out: writer, err: writer)
    writer.close
    output = in_time { reader.read }
    [output, Process.wait2(pid).last]
  ensure
    reader&.close
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Returns how long a block takes, in seconds.
  def time
    start = now
    yield
    now - start
  end

  # Returns how many descriptors are open.
  def descriptors
    Dir.children("/proc/self/fd").size
  end
end
