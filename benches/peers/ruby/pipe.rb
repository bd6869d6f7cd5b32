# frozen_string_literal: true

# Moves bytes through a pipe within one process: a writer and a reader.
#   pipe.rb MODE CHUNK [BYTES]
# Modes: `threads`, two threads with blocking descriptors; two fibers on a scheduler otherwise (measure.rb).
# The reader checks the first and the last byte of each read, at their place in the stream.

require_relative "measure"
require "io/nonblock"

# 251 is prime: the pattern fits to no power of two.
def pattern(size) = Array.new(size) { |n| n % 251 }.pack("C*")

def write_all(writer, chunk, bytes)
  (bytes / chunk.bytesize).times { writer.write(chunk) }
  writer.close
end

# Returns the number of bytes and of reads.
def read_all(reader, chunk)
  size = chunk.bytesize
  buffer = String.new(capacity: size)
  offset = reads = 0
  until reader.closed?
    begin
      reader.readpartial(size, buffer)
    rescue EOFError
      break reader.close
    end
    last = offset + buffer.bytesize - 1
    unless buffer.getbyte(0) == chunk.getbyte(offset % size) &&
           buffer.getbyte(-1) == chunk.getbyte(last % size)
      abort "a byte differs in the read at #{offset}"
    end
    offset = last + 1
    reads += 1
  end
  [offset, reads]
end

def on_threads(chunk, bytes)
  reader, writer = IO.pipe(binmode: true)
  [reader, writer].each { |io| io.nonblock = false }
  thread = Thread.new { write_all(writer, chunk, bytes) }
  result = read_all(reader, chunk)
  thread.join
  result
end

def on_fibers(scheduler, chunk, bytes)
  reader, writer = IO.pipe(binmode: true)
  result = nil
  Fiber.set_scheduler(scheduler)
  Fiber.schedule { write_all(writer, chunk, bytes) }
  Fiber.schedule { result = read_all(reader, chunk) }
  scheduler.run
  result
end

mode, chunk, bytes = ARGV[0], pattern(Integer(ARGV[1])), Integer(ARGV[2] || 1 << 30)
abort "BYTES is not a multiple of CHUNK" unless (bytes % chunk.bytesize).zero?
scheduler = scheduler_of(mode) unless mode == "threads"
result = nil
wall_s, cpu_s = timed { result = scheduler ? on_fibers(scheduler, chunk, bytes) : on_threads(chunk, bytes) }
expect("bytes read", result[0], bytes)
row("wall_s", wall_s)
row("cpu_s", cpu_s)
row("bytes", result[0])
row("reads", result[1])
