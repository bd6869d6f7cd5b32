# frozen_string_literal: true

# Runs one command for at most ten seconds, and prints what it wrote.
#
#   ruby -Ilib samples/spawn_and_read.rb

require "minder"

output = Minder.run("sh", "-c", "echo text; echo message >&2; exit 3", stderr: :stdout, timeout: 10)
print output.stdout
puts output.status
