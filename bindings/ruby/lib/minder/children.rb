# frozen_string_literal: true

module Minder
  # Many children, and a thread of the library that reads their outputs all the time.
  #
  #   Minder::Children.open do |children|
  #     100.times { |number| children.spawn("echo", number.to_s) }
  #     children.each { |event| print event.data if event.kind == :output }
  #   end
  #
  # Waiting never blocks a scheduler: in a fiber of one it suspends the fiber, elsewhere the thread.
  # Threads and fibers may use one set together. A start (+spawn+) and the methods that kill or
  # suspend wait for the thread of the library, for some microseconds and for as long as the kernel
  # takes to execute the program. They do that without the interpreter's lock, and keep the thread
  # of their fiber.
  #
  # = Two ways to consume
  #
  # *All* *events*, by +next_event+ or +each+: one place that handles whatever happens to any child.
  #
  # *Child* *by* *child*, by Child#read, Child#each_chunk and Child#each_line, each in a fiber or
  # thread of its own, for example. The first call of one of these claims the child: from then on
  # its events, including those that wait, are for its own methods, and +next_event+ does not return
  # them. Child#wait, Child#write and Child#kill claim nothing, and may be used with both. With
  # <tt>events: false</tt> all children are claimed from the start, and nothing has to call
  # +next_event+.
  #
  # = Memory and back-pressure
  #
  # Output in memory is limited, for each child (+child_memory+) and for the set (+memory+). Where
  # there is no room, the library stops reading that child, which then blocks when its pipe is full,
  # or spills its output to a file, or drops its oldest bytes: see +overflow+ of +spawn+. A child
  # with nothing in memory may always go on by one read of 64 KiB. So a consumer that is stuck holds
  # up its own child only.
  #
  # Small pieces of output are copied and joined, apart from these limits, up to the same sizes: so
  # twice as much may be in memory. Beyond that each small piece takes some KiB.
  #
  # = The end
  #
  # +stop+ kills what still runs. If this process ends in any other way, the guardian kills it. A
  # set that is collected without +stop+ leaves its children alone.
  #
  # A process that was made by fork cannot use the set: methods raise ClosedError there, and +stop+
  # has no effect.
  #
  # Handlers of signals (+trap+) may call Child#kill, Child#suspend, Child#resume, Child#close_stdin
  # and Child#write_nonblock. Everything else takes a lock, which Ruby forbids there.
  class Children
    # How long +stop+ waits for killed children beyond the grace, in seconds.
    STOP_TIMEOUT = 6
    # How long +spawn+ waits for a guardian that does not keep up, in seconds, and how long it
    # pauses.
    GUARDIAN_TIMEOUT = 10
    GUARDIAN_PAUSE = 0.005
    private_constant :STOP_TIMEOUT, :GUARDIAN_TIMEOUT, :GUARDIAN_PAUSE

    # Opens a set, calls a block with it, and stops the set at the end of the block. Returns the
    # value of the block. Takes the options of +new+.
    def self.open(**options)
      children = new(**options)
      return children unless block_given?

      begin
        yield children
      ensure
        children.stop
      end
    end

    # Starts the thread of a set. Each limit has a default.
    #
    # max_children:: the most children at once; those whose end was not taken count. Default:
    #                65,536.
    # memory::       the most bytes of output in memory. Default: 16 MiB.
    # child_memory:: the most bytes of output in memory for one child. Default: 1 MiB.
    # input_memory:: the most bytes that wait to be written to one child. Default: 256 KiB.
    # backend::      the wait mechanism of the thread: "epoll", "io_uring", "kqueue", "poll".
    #                Default: the best.
    # guardian::     true: Guardian.default ends the children when this process is killed. A
    #                Guardian: that one does. false: nothing does.
    # grace::        how many seconds +stop+ gives the children between SIGTERM and SIGKILL.
    #                Default: 0.
    # leak_timeout:: how many seconds an output may be silent after the exit of its child before it
    #                is closed; Float::INFINITY never closes it. Default: 0.1.
    # coalesce::     how many seconds the thread waits for more after a small piece of output.
    #                Default: none.
    # spill_dir::    the directory for output that is spilled. Default: that for temporary files.
    # stop_poll::    how often the thread polls for children that a signal stopped, in seconds.
    #                Default: never.
    # events::       false: the children are only consumed one by one.
    #
    # Raises Errno::ENOENT or Minder::Error if the guardian's program cannot be started,
    # ArgumentError for an option that is invalid, and ExhaustedError if no thread or descriptor is
    # free.
    def initialize(max_children: nil, memory: nil, child_memory: nil, input_memory: nil, backend: nil,
                   guardian: true, grace: 0, leak_timeout: nil, coalesce: nil, spill_dir: nil, stop_poll: nil,
                   events: true)
      guardian = Guardian.default if guardian == true
      @grace = grace
      @max_children = max_children || 65_536
      @lock = Mutex.new
      # Who waits for what: a child, :events or :end.
      @waiters = Hash.new { |hash, key| hash[key] = [] }.compare_by_identity
      @groups = Hash.new { |hash, key| hash[key] = Group.new({}.compare_by_identity) }.compare_by_identity
      @pollers = []
      @burst = 0
      open({ max_children: max_children, memory: memory, child_memory: child_memory,
             input_memory: input_memory, backend: backend&.to_s, leak_timeout: leak_timeout,
             coalesce: coalesce, spill_dir: spill_dir && Launch.text(spill_dir),
             stop_poll: stop_poll, events: events }, guardian || nil)
    end

    # Starts a command, and returns the Child.
    #
    #   children.spawn("make", "-j4", chdir: "/src", timeout: 600)
    #   children.spawn({ "LANG" => "C" }, "sort", stdin: "names", stdout: ["sorted", "a"])
    #
    # The first string is the program, the others are its arguments, which it receives unchanged. No
    # shell is used, even for one string: <tt>spawn("sh", "-c", line)</tt> calls one. A name with a
    # slash is used as it is, and any other is searched for in PATH.
    #
    # env::             variables of the environment to set, or with nil to remove. A Hash as the
    #                   first argument does the same.
    # unsetenv_others:: true: the child has no other variables.
    # chdir::           its working directory.
    # stdin::           :null (default), :pipe for +write+, :inherit, an IO or a descriptor, or a
    #                   path.
    # stdout::          :pipe (default), :null, :inherit, an IO or a descriptor, or a path, which is
    #                   emptied; [path, mode] as for File.open.
    # stderr::          the same, and :stdout for what stdout is connected to.
    # group::           :new (default), a process group; :session, a session; :inherit, the group of
    #                   this process, so that descendants cannot be killed with the child.
    # terminal::        [rows, columns]: the three streams are a new pseudo-terminal, whose output
    #                   is :stdout (Linux, macOS, FreeBSD).
    # nice::            is added to the niceness.
    # timeout::         how many seconds the child may run, restarts included. Then it is killed.
    # kill::            how it is killed then: seconds between SIGTERM and SIGKILL (default: 5), or
    #                   a list as for Child#kill.
    # overflow::        what happens to output without room in memory. :block (default): the child
    #                   blocks. :spill: it goes to a private file, and comes back in order.
    #                   :drop_oldest: the oldest bytes are dropped and counted; the newest
    #                   +child_memory+ bytes stay.
    # restart::         :never (default), :on_failure (a signal, or a code that is not 0), :always.
    # restart_delay::   seconds before the first restart. It doubles. Default: 0.1.
    # restart_max_delay:: the longest delay in seconds. Default: 60.
    # restart_stable_after:: how many seconds a child has to run so that the delay begins anew.
    #                        Default: 10.
    # restart_max::     the most restarts in a row. Default: any number.
    #
    # A child inherits nothing else: no other descriptor, and no blocked signal.
    #
    # Raises Errno::ENOENT if there is no such program or directory, Errno::EACCES if it may not be
    # executed, Errno::E2BIG if the arguments are too long, LimitError beyond +max_children+,
    # ExhaustedError if no process or descriptor is free or the guardian does not keep up for 10 s,
    # ClosedError after +stop+ and in a forked process.
    def spawn(*command, **options)
      raise ClosedError, "the set is being stopped" if @is_stopping
      raise LimitError, "#{@max_children} children wait for next_event" if streaming >= @max_children

      child = Child.allocate
      child.send(:initialize, self, command)
      Launch.describe(command, **options) { |description| launch(child, description) }
      # A stop that came meanwhile does not know this child.
      child.kill if @is_stopping
      child
    end

    # Returns the next event of a child that is not claimed, as an Event. Waits for at most
    # +timeout+ seconds, or without a limit. Returns nil after that, and at once if no child is
    # left: then +empty?+ is true.
    #
    # After +stop+ it returns the events that are left. Raises ClosedError in a forked process, and
    # Minder::Error for a set with <tt>events: false</tt>.
    def next_event(timeout: nil)
      raise Error, "the set has no events: it was made with `events: false`" unless stream?

      values = await(:events, deadline(timeout)) { pop || (streaming.zero? && :empty) }
      return if values.nil? || values == :empty

      wake_events if streaming.zero?
      values[4] &&= Status.new(*values[4])
      Event.new(*values).freeze
    end

    # Calls a block with each event until no child is left that is not claimed. Returns self. With
    # +timeout+ it takes at most that many seconds, and returns nil if the time was too short.
    # Without a block it returns an Enumerator.
    def each(timeout: nil)
      return to_enum(:each, timeout: timeout) unless block_given?

      limit = deadline(timeout)
      loop do
        event = next_event(timeout: limit && [limit - clock, 0].max)
        return empty? ? self : nil unless event

        yield event
      end
    end

    # Returns whether no event will come: every child is claimed, or its end was taken.
    def empty?
      streaming.zero?
    end

    # Returns how many children run, as far as this process knows.
    def size
      distribute unless closed? || forked?
      running_count
    end

    # Kills all children with everything that they started, ends the thread, and frees the set. The
    # children get SIGTERM, and SIGKILL after +grace+ seconds; at once if that is 0. Returns nil.
    #
    # Output of these children that was not taken is dropped, and a consumer that misses it gets a
    # ClosedError. Other events can still be taken, and the status of each child is known. In a
    # forked process, and after the first call, it has no effect.
    #
    # Raises Minder::Error if some processes are still there 6 s after the grace: they may run as
    # another user, or be in a system call that cannot be interrupted.
    def stop(grace: @grace)
      return if forked? || closed?

      @is_stopping = true
      limit = clock + grace + STOP_TIMEOUT
      running.each do |child|
        child.send(:discard)
        child.kill(grace: grace)
      rescue SystemCallError, Error
        next # The end reports what is left.
      end
      await(:end, limit) { running_count.zero? }
      nil
    rescue ClosedError
      nil # Another fiber or thread was faster.
    ensure
      finish
    end

    def inspect
      "#<#{self.class} #{closed? ? "stopped" : "#{running_count} running"}>"
    end

    private

    # Starts a child, and tries again if what is in the way may be gone soon.
    def launch(child, description)
      limit = clock + GUARDIAN_TIMEOUT
      begin
        start(child, description)
      rescue LimitError
        # Children that are done count until their end is taken.
        raise unless distribute

        retry
      rescue ExhaustedError => error
        raise unless error.message.include?("its guardian does not read") && clock < limit

        sleep GUARDIAN_PAUSE
        retry
      end
    end

    # Frees the set, and wakes all that wait.
    def finish
      Thread.handle_interrupt(SHIELD) do
        close
      ensure
        @lock.synchronize do
          @pollers.each(&:close).clear
          @waiters.each_key { |key| wake(key) }
        end
      end
    end
  end
end
