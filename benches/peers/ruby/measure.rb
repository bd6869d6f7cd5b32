# frozen_string_literal: true

# What the programs of this directory share: clocks, memory, schedulers, and rows `name,value`.

def wall = Process.clock_gettime(Process::CLOCK_MONOTONIC)
def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

# Returns the resident memory of this process, in bytes. /proc/self/statm may be many pages behind.
def resident
  File.read("/proc/self/smaps_rollup")[/^Rss:\s+(\d+) kB/, 1].to_i * 1024
end

# Returns wall time and processor time of the block, in seconds.
def timed
  before = [wall, cpu]
  yield
  [wall - before[0], cpu - before[1]]
end

# Prints a row.
def row(name, value)
  puts "#{name},#{value.is_a?(Float) ? format("%.9f", value) : value}"
end

# Ends the program with an error unless the value is the expected one.
def expect(what, value, expected)
  abort "#{what}: #{value}, expected #{expected}" if value != expected
end

# Returns a new scheduler: `reference` (the scheduler of Ruby's own tests, in the file that
# MINDER_RUBY_REFERENCE names), `minder` (with the best backend) or `minder:BACKEND`.
def scheduler_of(mode)
  name, backend = mode.split(":")
  case name
  when "reference"
    require ENV.fetch("MINDER_RUBY_REFERENCE")
    Scheduler.new
  when "minder"
    require "minder"
    # Ruby opens pipes in nonblocking mode.
    Minder::Scheduler.new(backend: backend, blocking_io: false)
  else abort "invalid mode \"#{mode}\": expected reference, minder or minder:BACKEND"
  end
end
