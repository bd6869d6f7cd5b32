# frozen_string_literal: true

# Starts timers of the scheduler without fibers; all fire, or every second one is cancelled.
#   timers.rb MODE [COUNT]
# The times are pseudo-random, so that the timers fire in another order than they started; 1,000,000 fire in a
# second.

require_relative "measure"

# Returns the times, in seconds: all timers have started when the first one fires.
def times(count)
  random = Random.new(17)
  lead = 1 + count / 250_000.0
  Array.new(count) { lead + random.rand * count / 1_000_000 }
end

# Starts the timers, and returns them.
def start(scheduler, times, &block)
  times.map { |seconds| scheduler.after(seconds, &block) }
end

mode, count = ARGV[0], Integer(ARGV[1] || 1_000_000)
times = times(count)
fired = 0

# All fire.
scheduler = scheduler_of(mode)
Fiber.set_scheduler(scheduler)
GC.start
memory = resident
timers = nil
_, start_cpu = timed { timers = start(scheduler, times) { fired += 1 } }
memory = resident - memory
expect("timers that fired before all had started", fired, 0)
_, fire_cpu = timed { scheduler.run }
expect("timers that fired", fired, count)
Fiber.set_scheduler(nil)
timers = nil
GC.start

# Every second one is cancelled.
scheduler = scheduler_of(mode)
Fiber.set_scheduler(scheduler)
timers = start(scheduler, times) { fired += 1 }
_, cancel_cpu = timed { timers.each_with_index { |timer, n| timer.cancel if n.even? } }
scheduler.run
expect("timers that fired with half of them cancelled", fired, count + count / 2)

cancelled = (count + 1) / 2
row("start_ns", start_cpu / count * 1e9)
row("fire_ns", fire_cpu / count * 1e9)
row("cancel_ns", cancel_cpu / cancelled * 1e9)
row("bytes_each", memory.to_f / count)
row("timers", count)
