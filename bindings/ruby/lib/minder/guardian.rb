# frozen_string_literal: true

require "rbconfig"

module Minder
  # A small program that ends the children of this process when it is killed, +kill -9+ included.
  #
  # The program +minder-guardian+ lies in the directory of the extension of this gem; the
  # environment variable MINDER_GUARDIAN names another one. It ends with this process. A process
  # that was made by fork has no guardian until it makes one.
  #
  # It kills the process group of each child, and descendants outside of the group whose parents
  # still live. With +tag+ (Linux) it also finds those that lost their parents. It cannot reach
  # processes of another user, and work that was handed to a server that ran before. On Windows no
  # program is needed: +pid+ is 0 there.
  class Guardian
    # The path of the program, or nil: then the library looks in the directory of this program and
    # in PATH.
    PROGRAM = begin
      name = "/minder/minder_ext.#{RbConfig::CONFIG["DLEXT"]}"
      extension = $LOADED_FEATURES.find { |path| path.end_with?(name) }
      program = extension && File.join(File.dirname(extension), "minder-guardian")
      program if program && File.executable?(program)
    end

    @lock = Mutex.new

    class << self
      # Returns the guardian of this process, which is started at the first call. It is started
      # again if it was killed. Raises as +new+.
      def default
        @lock.synchronize do
          unless @default && @default_pid == Process.pid
            @default = new(restart: true)
            @default_pid = Process.pid
          end
          @default
        end
      end
    end

    # Starts the program, and waits until it is ready.
    #
    # tag::            descendants are found even if they left the group and lost their parent
    #                  (Linux).
    # restart::        the program is started again if it has exited. Otherwise the next start of a
    #                  child fails.
    # grace::          seconds between SIGTERM and SIGKILL. 0 kills at once.
    # inherit_stderr:: the program prints to our standard error what it could not kill.
    # program::        its path.
    #
    # Raises Errno::ENOENT if there is no such program, and Minder::Error if it does not become
    # ready.
    def initialize(tag: false, restart: false, grace: 0, inherit_stderr: false, start_timeout: nil,
                   program: nil)
      program ||= PROGRAM unless ENV["MINDER_GUARDIAN"]
      grace = nil if grace.zero?
      open({ tag: tag, restart: restart, grace: grace, inherit_stderr: inherit_stderr,
             start_timeout: start_timeout, program: program&.to_s })
    end
  end

  # A process on the list of a guardian: see Guardian#guard.
  class Guarded
  end
end
