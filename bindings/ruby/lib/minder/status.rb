# frozen_string_literal: true

module Minder
  # How a child ended and what it used, including the descendants that it waited for.
  #
  #   status = Minder.run("sh", "-c", "exit 3").status
  #   status.code     # => 3
  #   status.success? # => false
  class Status
    # The exit code; nil if a signal killed the child, or other code of this process took its
    # status.
    attr_reader :code
    # The number of the signal that killed the child, or nil.
    attr_reader :signal
    # The processor time in user mode and in the kernel, in seconds; nil where it is not known.
    attr_reader :user_time, :system_time
    # How long the child was suspended by Child#suspend, in seconds.
    attr_reader :suspended_time
    # The largest resident set in bytes, or nil. On Unix it is at least that of this process at the
    # start.
    attr_reader :max_rss
    # How many bytes of output were dropped: see +overflow: :drop_oldest+ of Children#spawn.
    attr_reader :dropped

    alias exitstatus code
    alias termsig signal

    # Made by the library.
    def initialize(code, signal, core_dumped, timed_out, killed, leaked, left_running, user_time, system_time,
                   suspended_time, max_rss, dropped)
      @code, @signal, @core_dumped, @timed_out, @killed, @leaked, @left_running =
        code, signal, core_dumped, timed_out, killed, leaked, left_running
      @user_time, @system_time, @suspended_time, @max_rss, @dropped =
        user_time, system_time, suspended_time, max_rss, dropped
      freeze
    end

    # Returns whether it exited with the code 0.
    def success? = @code == 0

    # Returns whether it exited with a code.
    def exited? = !@code.nil?

    # Returns whether a signal killed it.
    def signaled? = !@signal.nil?

    # Returns whether it wrote a core file.
    def core_dumped? = @core_dumped

    # Returns whether its time-out came while it ran.
    def timed_out? = @timed_out

    # Returns whether a kill was requested while it ran, by a call or by its time-out.
    def killed? = @killed

    # Returns whether its outputs were closed, because a process that it left behind kept them open
    # and wrote nothing for the time +leak_timeout+.
    def leaked? = @leaked

    # Returns whether members of its process group still run.
    def left_running? = @left_running

    # Returns what happened, such as "exit 3" or "SIGKILL".
    def to_s
      text = if @code then "exit #{@code}"
             elsif @signal then "SIG#{Signal.signame(@signal) || @signal}"
             else "unknown exit"
             end
      text += ", core dumped" if @core_dumped
      @timed_out ? "#{text}, timed out" : text
    end

    def inspect
      "#<#{self.class} #{self}>"
    end
  end
end
