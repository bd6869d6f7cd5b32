# frozen_string_literal: true

# Runs files of tests at the same time, each in a child of its own, and prints the output of each
# file in one piece as soon as it is done. Exits with the number of files that failed, at most 255.
#
#   ruby -Ilib samples/parallel_tests.rb [-j COUNT] [-t SECONDS] FILE...
#
# -j  How many run at once. Default: as many as there are processors. -t  How long a file may take.
# Then it is killed with everything that it started. Default: 600.
#
# The files are run by `ruby -w`, with the directories that this program searches for libraries.

require "etc"
require "minder"
require "optparse"

options = { jobs: Etc.nprocessors, limit: 600.0 }
files = OptionParser.new do |parser|
  parser.on("-j COUNT", Integer) { |count| options[:jobs] = count }
  parser.on("-t SECONDS", Float) { |seconds| options[:limit] = seconds }
end.parse(ARGV)
abort "parallel_tests: no files given" if files.empty?

def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

paths = $LOAD_PATH.map { |path| "-I#{path}" }
started = clock
failed = []
waiting = files.dup
Minder::Children.open do |children|
  tests = {}
  start = lambda do
    file = waiting.shift or return
    child = children.spawn(RbConfig.ruby, "-w", *paths, file, stderr: :stdout, timeout: options[:limit])
    tests[child] = [file, clock, String.new]
  end
  options[:jobs].times { start.call }
  children.each do |event|
    file, since, output = tests[event.child]
    case event.kind
    when :output then output << event.data
    when :done
      failed << file unless event.status.success?
      puts "== #{file}: #{event.status}, #{format("%.1f", clock - since)} s"
      print output
      $stdout.flush
      tests.delete(event.child)
      start.call
    end
  end
end
puts "#{files.size} files, #{failed.size} failed, #{format("%.1f", clock - started)} s"
failed.each { |file| puts "failed: #{file}" }
exit [failed.size, 255].min
