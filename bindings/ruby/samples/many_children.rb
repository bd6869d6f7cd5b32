# frozen_string_literal: true

# Runs a hundred children at once on one thread, and counts what they write.
#
#   ruby -Ilib samples/many_children.rb

require "minder"

bytes = done = failed = 0
Minder::Children.open do |children|
  100.times { children.spawn("echo", "text") }
  children.each do |event|
    case event.kind
    when :output then bytes += event.data.bytesize
    when :done
      done += 1
      failed += 1 unless event.status.success?
    end
  end
end
puts "#{done} children, #{failed} failed, #{bytes} bytes"
