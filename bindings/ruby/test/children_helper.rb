# frozen_string_literal: true

require_relative "helper"

# What the tests of children share.
module ChildrenHelper
  include Helper

  MIB = 1 << 20

  # Definitions of tests.
  module Definitions
    # Defines a test that fails after Helper::LIMIT seconds.
    def limited(name, &block)
      define_method("test_#{name.tr(" ", "_")}") { in_time { instance_exec(&block) } }
    end

    # Defines a test that runs in a thread, and again in a fiber of a scheduler.
    def anywhere(name, &block)
      limited("#{name} in a thread", &block)
      define_method("test_#{name.tr(" ", "_")}_in_a_fiber") { in_scheduler { instance_exec(&block) } }
    end
  end

  def self.included(test_case)
    test_case.extend(Definitions)
  end

  def open(**options, &block)
    Minder::Children.open(**options, &block)
  end

  def shell(children, line, **options)
    children.spawn("sh", "-c", line, **options)
  end

  def resident_bytes
    File.read("/proc/self/statm").split[1].to_i * 4096
  end

  # Returns whether a process exists and is not a zombie.
  def running?(pid)
    File.read("/proc/#{pid}/stat").split(") ").last[0] != "Z"
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end

  # Waits until a process has ended that is not a child.
  def wait_for_end(pid)
    Thread.pass while running?(pid)
  end

  def kinds(events, child)
    events.select { |event| event.child.equal?(child) }.map(&:kind)
  end

  def waiters(children)
    children.instance_variable_get(:@waiters).size + children.instance_variable_get(:@groups).size
  end
end
