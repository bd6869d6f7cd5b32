# frozen_string_literal: true

# Kills a shell with everything that it started: it is asked first, and killed after a second.
#
#   ruby -Ilib samples/kill_tree.rb

require "minder"

child = Minder.spawn("sh", "-c", "sleep 600 & sleep 600; true")
puts "it runs" unless child.wait(timeout: 0.01)

child.kill(grace: 1)
puts "signal #{child.wait.signal}"
