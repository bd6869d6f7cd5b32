# frozen_string_literal: true

# Takes the place of `test/fiber/scheduler.rb` in Ruby's own tests: the same classes, on Minder::Scheduler.

require "minder"
require "socket"
require "io/nonblock"

class Scheduler < Minder::Scheduler
end

class IOBufferScheduler < Scheduler
end

class BrokenUnblockScheduler < Scheduler
  def unblock(blocker, fiber)
    super

    raise "Broken unblock!"
  end
end

class SleepingUnblockScheduler < Scheduler
  def unblock(blocker, fiber)
    super

    sleep(0.1)
  end
end
