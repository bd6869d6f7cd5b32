# frozen_string_literal: true

module Minder
  @children_lock = Mutex.new

  class << self
    # Starts a command in a set of this process that is made at the first call, and returns the
    # Child. It takes the arguments of Children#spawn, and raises the same. The output is read from
    # the child: there are no events. If this process ends, the guardian kills the child.
    #
    #   child = Minder.spawn("make", stderr: :stdout)
    #   child.each_line { |line| puts line }
    #   exit 1 unless child.wait.success?
    def spawn(*command, **options)
      default_children.spawn(*command, **options)
    end

    # Runs a command to its end, and returns an Output: +stdout+, +stderr+ and +status+. A child
    # that fails is not an error. It takes the options of Children#spawn, except restarts, and
    # these:
    #
    # input::     a string that the command reads. Default: nothing.
    # timeout::   how many seconds it may run. Then it is killed, and Status#timed_out? is true.
    # max_bytes:: the most bytes of output. More kills the command, and raises LimitError. Default:
    #             64 MiB.
    # encoding::  that of the outputs. Default: Encoding.default_external.
    #
    #   Minder.run("wc", "-c", input: "text").stdout # => "4\n"
    #
    # An exception that ends the wait, such as Timeout::Error, kills the command. Raises as
    # Children#spawn.
    def run(*command, input: nil, max_bytes: 64 << 20, encoding: Encoding.default_external, **options)
      raise ArgumentError, "`restart` is not for a command that is run once" if options.key?(:restart)
      raise ArgumentError, "`input` and `stdin` exclude each other" if input && options[:stdin]

      options[:stdin] = :pipe if input
      child = spawn(*command, **options)
      begin
        stdout, stderr = child.communicate(input&.to_s&.b&.freeze, max_bytes)
        Output.new(stdout.force_encoding(encoding), stderr.force_encoding(encoding), child.status)
      ensure
        child.kill if child.alive?
      end
    end

    private

    # Returns the set of this process.
    def default_children
      @children_lock.synchronize do
        unless @children && @children_pid == Process.pid
          @children = Children.new(events: false)
          @children_pid = Process.pid
        end
        @children
      end
    end
  end
end
