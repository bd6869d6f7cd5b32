# frozen_string_literal: true

# Starts fibers that sleep, and waits for all of them.
#   sleepers.rb MODE [COUNT] [SECONDS]
# Modes: a scheduler (measure.rb); `parked`, fibers that only call Fiber.yield, without a scheduler; `hook`,
# fibers that sleep on a scheduler that knows no time: its hook only calls Fiber.yield. What a scheduler
# remembers of a sleeper is the difference to `hook`, whose fibers have the same frames on their stacks.
# Ruby 3.1 ends at about 31,700 fibers, because of vm.max_map_count: each has two mappings.

require_relative "measure"

# A scheduler that remembers the fibers, and nothing else.
class Hook
  def initialize
    @fibers = []
  end

  def fiber(&block) = Fiber.new(blocking: false, &block).tap(&:resume)
  def run = @fibers.each(&:resume)
  def close = nil
  def block(*) = nil
  def unblock(*) = nil
  def io_wait(*) = nil

  def kernel_sleep(_duration = nil)
    @fibers << Fiber.current
    Fiber.yield
    true
  end
end

mode, count, seconds = ARGV[0], Integer(ARGV[1] || 30_000), Float(ARGV[2] || 1)
scheduler = mode == "hook" ? Hook.new : scheduler_of(mode) unless mode == "parked"
Fiber.set_scheduler(scheduler) if scheduler
woken = 0
parked = []
GC.start
memory = resident
begin_wall, begin_cpu = wall, cpu
if scheduler
  count.times { Fiber.schedule { sleep seconds; woken += 1 } }
else
  count.times { parked << Fiber.new { Fiber.yield; woken += 1 }.tap(&:resume) }
end
start_cpu = cpu - begin_cpu
start_wall = wall - begin_wall
expect("fibers that woke up before all had started", woken, 0)
memory = resident - memory
before_end = cpu
scheduler ? scheduler.run : parked.each(&:resume)
end_cpu = cpu - before_end
total_wall = wall - begin_wall
expect("fibers that ended", woken, count)
row("start_cpu_s", start_cpu)
row("end_cpu_s", end_cpu)
row("cpu_s", start_cpu + end_cpu)
row("cpu_us", (start_cpu + end_cpu) / count * 1e6)
row("start_wall_s", start_wall)
row("wall_s", total_wall)
row("bytes_each", memory.to_f / count)
row("fibers", count)
