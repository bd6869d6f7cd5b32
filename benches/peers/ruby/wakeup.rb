# frozen_string_literal: true

# A thread pushes to a queue on which a fiber waits: the time from each push to the return of `pop`.
#   wakeup.rb MODE [PUSHES] [PAUSE]
# Modes: `threads`, a thread that waits in place of the fiber; a scheduler otherwise (measure.rb). The pause
# between pushes, in seconds, is long enough for the fiber's thread to wait in the kernel again.

require_relative "measure"

def push_all(queue, pushes, pause)
  pushes.times do
    sleep pause
    queue.push(wall)
  end
  queue.push(nil)
end

# Returns the times, in seconds.
def pop_all(queue)
  times = []
  while (pushed = queue.pop)
    times << wall - pushed
  end
  times
end

mode, pushes, pause = ARGV[0], Integer(ARGV[1] || 2_000), Float(ARGV[2] || 0.001)
scheduler = scheduler_of(mode) unless mode == "threads"
queue = Thread::Queue.new
times = nil
pusher = nil
_, cpu_s = timed do
  if scheduler
    Fiber.set_scheduler(scheduler)
    Fiber.schedule { times = pop_all(queue) }
    pusher = Thread.new { push_all(queue, pushes, pause) }
    scheduler.run
  else
    popper = Thread.new { times = pop_all(queue) }
    pusher = Thread.new { push_all(queue, pushes, pause) }
    popper.join
  end
  pusher.join
end
expect("wake-ups", times.size, pushes)
times.sort!
row("p50_us", times[pushes / 2] * 1e6)
row("p99_us", times[pushes * 99 / 100] * 1e6)
row("max_us", times.last * 1e6)
row("cpu_us", cpu_s / pushes * 1e6)
row("pushes", pushes)
