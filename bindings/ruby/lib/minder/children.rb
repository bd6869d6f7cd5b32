# frozen_string_literal: true

require "fiber"
require "io/wait"
require "rbconfig"

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

  # What happened to a child of a Children. It is frozen.
  #
  # +kind+ is one of these, and the members beside it are set:
  #
  # :output::         the child wrote +data+, a binary string, to +stream+, :stdout or :stderr.
  # :eof::            +stream+ is at its end.
  # :writable::       there is room again for Child#write_nonblock.
  # :stopped::        +signal+ stopped the child (job control). Needs the option +stop_poll+ of the
  #                   set.
  # :exited::         the child exited, and its last byte was reported. +status+ says how.
  # :restarting::     a run ended as +status+ says, and the child is started again after +delay+
  #                   seconds, for the +restarts+-th time.
  # :restarted::      it was started again as the process +pid+.
  # :restart_failed:: it could not be started again: +error+ says why. Another attempt or the end
  #                   follows.
  # :done::           everything has ended; +status+ says how. The last event of a child.
  #
  # For one child the events come in the order of this list: output, ends, :exited, :done. Each run
  # of a child that is started again is reported in this way, with :restarting in place of :done.
  Event = Struct.new(:kind, :child, :stream, :data, :status, :error, :delay, :restarts, :pid, :signal) do
    def inspect
      details = to_h.except(:kind, :child).compact.map { |name, value| " #{name}=#{value.inspect}" }
      "#<#{self.class} #{kind} #{child.inspect}#{details.join}>"
    end
  end

  # What Minder.run returns: two strings and a Status.
  Output = Struct.new(:stdout, :stderr, :status) do
    # Returns whether the command exited with the code 0.
    def success? = status.success?
  end

  # A small program that ends the children of this process when it is killed, +kill -9+ included.
  #
  # The program +minder-guardian+ lies beside the extension of this gem; the environment variable
  # MINDER_GUARDIAN names another one. It ends with this process. A process that was made by fork
  # has no guardian until it makes one.
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
      beside = extension && File.join(File.dirname(extension), "minder-guardian")
      beside if beside && File.executable?(beside)
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

  # What describes a command: shared by all methods that start one.
  module Launch # :nodoc:
    STDIO = { inherit: -1, null: -2, pipe: -3, stdout: -4 }.freeze
    GROUPS = { new: 0, inherit: 1, session: 2 }.freeze
    OVERFLOWS = { block: 0, spill: 1, drop_oldest: 2 }.freeze
    RESTARTS = { never: 0, on_failure: 1, always: 2 }.freeze
    INPUT_MODE = File::RDONLY
    OUTPUT_MODE = File::WRONLY | File::CREAT | File::TRUNC
    private_constant :STDIO, :GROUPS, :OVERFLOWS, :RESTARTS, :INPUT_MODE, :OUTPUT_MODE

    module_function

    # Calls a block with what the extension expects. Files that were opened for the streams are
    # closed after.
    def describe(command, env: nil, unsetenv_others: false, chdir: nil, stdin: nil, stdout: nil,
                 stderr: nil, group: nil, terminal: nil, nice: nil, timeout: nil, kill: 5,
                 overflow: :block, restart: :never, restart_delay: nil, restart_max_delay: nil,
                 restart_stable_after: nil, restart_max: nil)
      command = command.flatten(1) if command.size == 1 && command.first.is_a?(Array)
      env = (Hash.try_convert(command.first) || {}).merge(env || {}) if Hash.try_convert(command.first)
      command = command.drop(1) if Hash.try_convert(command.first)
      raise ArgumentError, "no program given" if command.empty?
      raise ArgumentError, "`terminal` and `group` exclude each other" if terminal && group

      files = []
      terminal &&= size(terminal)
      yield({ command: command.map { |word| text(word) }, env: env&.map { |name, value| pair(name, value) },
              unsetenv_others: unsetenv_others, chdir: chdir && text(chdir),
              stdin: stream(:stdin, stdin || (:null unless terminal), INPUT_MODE, files),
              stdout: stream(:stdout, stdout || (:pipe unless terminal), OUTPUT_MODE, files),
              stderr: stream(:stderr, stderr || (:pipe unless terminal), OUTPUT_MODE, files),
              group: choice("group", GROUPS, group || :new), terminal: terminal, nice: nice,
              timeout: timeout, kill: termination(kill), overflow: choice("overflow", OVERFLOWS, overflow),
              restart: choice("restart", RESTARTS, restart), restart_delay: restart_delay,
              restart_max_delay: restart_max_delay, restart_stable_after: restart_stable_after,
              restart_max: restart_max })
    ensure
      files&.each(&:close)
    end

    # Returns a time in seconds, or a list of numbers of signals with times.
    def termination(steps)
      return steps if steps.nil? || steps.is_a?(Numeric)

      steps.map { |signal, pause| [signal_number(signal), pause] }
    end

    def signal_number(signal)
      return signal if signal.is_a?(Integer)

      name = signal.to_s.delete_prefix("SIG")
      Signal.list.fetch(name) { raise ArgumentError, "unknown signal `#{signal}`" }
    end

    def text(word)
      string = word.respond_to?(:to_path) ? word.to_path : word
      String.try_convert(string) or raise TypeError, "no implicit conversion of #{word.class} into String"
    end

    def pair(name, value)
      [text(name.is_a?(Symbol) ? name.name : name), value && text(value)]
    end

    def size(terminal)
      rows, columns = terminal
      raise ArgumentError, "invalid `terminal`: expected [rows, columns]" unless rows && columns

      [rows, columns]
    end

    def choice(name, choices, value)
      choices.fetch(value) do
        expected = choices.keys.map(&:inspect).join(", ")
        raise ArgumentError, "invalid value #{value.inspect} for `#{name}`: expected one of #{expected}"
      end
    end

    # Returns the number of a way to connect a stream, or a descriptor; nil leaves the stream alone.
    def stream(name, value, mode, files)
      case value
      when nil then nil
      when Symbol
        raise ArgumentError, "`#{name}: :stdout` is for stderr" if value == :stdout && name != :stderr

        choice(name, STDIO, value)
      when Integer then value.negative? ? raise(ArgumentError, "invalid descriptor #{value}") : value
      else
        io = IO.try_convert(value)
        return io.fileno if io

        path, given = value.is_a?(Array) ? value : [value]
        files << File.open(text(path), given || mode, 0o666)
        files.last.fileno
      end
    end
  end
  private_constant :Launch

  # A fiber or thread that waits for news of a set.
  class Waiter # :nodoc:
    # The pump whose descriptor it waits for, if it does.
    attr_accessor :pump
    # It was woken, and has not looked since.
    attr_accessor :is_woken

    def initialize
      @fiber = Fiber.current
      @scheduler = Fiber.current_scheduler
      @condition = ConditionVariable.new unless @scheduler
    end

    # Consumers of one scheduler wait together; so do all threads without one.
    def context = @scheduler || :threads

    # Wakes it. The caller has locked the set.
    def wake
      return if @is_woken

      @is_woken = true
      if @pump then @pump.notify
      elsif @condition then @condition.signal
      elsif @is_parked
        @is_parked = false
        @scheduler.unblock(self, @fiber)
      end
    end

    # Waits until it is woken. The caller has locked the set, which is unlocked meanwhile.
    def sleep(lock, timeout)
      return @condition.wait(lock, timeout) if @condition

      @is_parked = true
      lock.unlock
      begin
        @scheduler.block(self, timeout)
      ensure
        lock.lock
        @is_parked = false
      end
    end
  end
  private_constant :Waiter

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
    # A set's descriptor for the waiters of one scheduler, or for all threads.
    class Pump # :nodoc:
      # The descriptor as an IO. Closing the pump closes it.
      def io
        @io ||= IO.for_fd(fd, "r", autoclose: false)
      end
    end
    private_constant :Pump

    # The waiters of one scheduler, or all threads.
    Group = Struct.new(:waiters, :holder)
    private_constant :Group

    # Interrupts of other threads are handled after a critical section.
    SHIELD = { Object => :never }.freeze
    # How often a waiter checks that the thread of the library lives, in seconds.
    CHECK_INTERVAL = 60
    # How long +stop+ waits for killed children beyond the grace, in seconds.
    STOP_TIMEOUT = 6
    # How long +spawn+ waits for a guardian that does not keep up, in seconds, and how long it
    # pauses.
    GUARDIAN_TIMEOUT = 10
    GUARDIAN_PAUSE = 0.005
    # After how many events in a row a fiber lets the others run.
    BURST = 16
    private_constant :SHIELD, :CHECK_INTERVAL, :STOP_TIMEOUT, :GUARDIAN_TIMEOUT, :GUARDIAN_PAUSE, :BURST

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
      @pumps = []
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

    # Waits for news of a key until the block returns something, which is returned; nil after the
    # deadline.
    #
    # Every waiter of one scheduler waits for a wake-up, except one of them, the holder, which waits
    # for the descriptor of the set. It moves events to the queues of their children, and wakes
    # whatever waits for these. When it leaves, another one takes its place. Schedulers do not
    # depend on each other: one that computes for long delays its own fibers only.
    def await(key, deadline) # :nodoc:
      value = yield
      return value if value

      waiter = nil
      begin
        rest if distribute
        value = yield
        return value if value
        return if deadline && clock >= deadline

        waiter = Waiter.new
        Thread.handle_interrupt(SHIELD) { enter(key, waiter) }
        loop do
          value = yield
          return value if value

          left = deadline ? deadline - clock : CHECK_INTERVAL
          return if left <= 0

          wait_once(waiter, [left, CHECK_INTERVAL].min)
        end
      rescue ClosedError
        # A stop may have brought what the block waits for.
        yield or raise
      ensure
        Thread.handle_interrupt(SHIELD) { leave(key, waiter) } if waiter
      end
    end

    # Keeps the events of a child for its own methods.
    def claim(child) # :nodoc:
      child.send(:native_claim)
      wake_events if streaming.zero?
    end

    # Returns the time of a time-out on the clock of +await+.
    def deadline(timeout) # :nodoc:
      timeout && clock + timeout
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

    def clock
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # Lets other fibers run from time to time, if the events never run out.
    def rest
      @burst += 1
      return if @burst < BURST || !Fiber.current_scheduler

      @burst = 0
      sleep 0
    end

    # Moves all events to the queues of their children, and wakes what waits for them. Returns
    # whether there were any.
    def distribute(except = nil)
      news = route
      return false unless news

      Thread.handle_interrupt(SHIELD) do
        @lock.synchronize do
          news.each { |child| wake(child, except) } unless @waiters.empty?
          wake(:events, except)
          wake(:end, except)
        end
      end
      true
    end

    def wake(key, except = nil)
      return unless @waiters.key?(key)

      @waiters[key].each { |waiter| waiter.wake unless waiter.equal?(except) }
    end

    # Ends the waits for events that will not come.
    def wake_events
      Thread.handle_interrupt(SHIELD) { @lock.synchronize { wake(:events) } }
    end

    def enter(key, waiter)
      @lock.synchronize do
        @waiters[key] << waiter
        @groups[waiter.context].waiters[waiter] = true
      end
    end

    def leave(key, waiter)
      @lock.synchronize do
        waiting = @waiters[key]
        waiting.delete(waiter)
        @waiters.delete(key) if waiting.empty?
        if waiter.pump
          waiter.pump.reset if waiter.is_woken
          closed? ? waiter.pump.close : @pumps.push(waiter.pump)
          waiter.pump = nil
        end
        group = @groups[waiter.context]
        group.waiters.delete(waiter)
        group.holder = nil if group.holder.equal?(waiter)
        if group.waiters.empty? then @groups.delete(waiter.context)
        elsif group.holder.nil? then group.waiters.first.first.wake
        end
      end
    end

    # Waits until the waiter is woken, or as the holder until the set has events, which are then
    # distributed.
    def wait_once(waiter, timeout)
      pump = nil
      @lock.synchronize do
        if waiter.is_woken
          waiter.is_woken = false
          waiter.pump&.reset
          return
        end
        group = @groups[waiter.context]
        group.holder ||= waiter
        if group.holder.equal?(waiter)
          pump = waiter.pump ||= @pumps.pop || Pump.new(self)
        else
          waiter.sleep(@lock, timeout)
          waiter.is_woken = false
          return
        end
      end
      pump.io.wait_readable(timeout)
      distribute(waiter)
    end

    # Frees the set, and wakes all that wait.
    def finish
      Thread.handle_interrupt(SHIELD) do
        close
      ensure
        @lock.synchronize do
          @pumps.each(&:close).clear
          @waiters.each_key { |key| wake(key) }
        end
      end
    end
  end

  # A child of a Children. Children#spawn and Minder.spawn return it.
  #
  #   child = Minder.spawn("sort", stdin: :pipe)
  #   child.write("b\na\n")
  #   child.close_stdin
  #   child.read          # => "a\nb\n"
  #   child.wait.success? # => true
  #
  # The class comment of Children says how methods here and Children#next_event share the events.
  # Several fibers or threads may use one child. Two that read one stream each get some of its
  # chunks.
  class Child
    # The program and its arguments, as they were given.
    attr_reader :command

    # The longest line that each_line yields whole, in bytes.
    LINE_MAX = 16 << 20

    private_class_method :new

    # Made by Children#spawn.
    def initialize(children, command)
      @children = children
      @command = command.flatten.reject { |word| word.is_a?(Hash) }.freeze
      @input = Mutex.new
      @kept = {}
      @readers = Hash.new(0)
    end

    # Returns how the child ended, as a Status; nil while it runs. A child that is started again
    # runs until its last end. Output may still wait to be read.
    def status
      @children.send(:distribute) unless done? || @children.closed? || @children.send(:forked?)
      @status ||= (values = exit_values) && Status.new(*values)
    end

    # Returns whether the child runs.
    def alive?
      status.nil?
    end

    # Waits until the child is done, for at most +timeout+ seconds or without a limit. Returns its
    # Status, or nil after the time-out.
    #
    # It reads no output. A child whose output nothing reads blocks beyond +child_memory+ bytes, and
    # does not exit: read it before, or in another fiber or thread, or let the output go to :null or
    # to a file, or spawn the child with <tt>overflow: :spill</tt>. What an exited child leaves in
    # its pipes can be read after +wait+.
    #
    # Raises ClosedError if the set is stopped before, and in a forked process.
    def wait(timeout: nil)
      @children.await(self, @children.deadline(timeout)) { done? || settle } && status
    end

    # Reads a stream, :stdout or :stderr, until its end, and returns what was not read before: "" at
    # the end. The other stream is read, too, and kept for a later call, unless another fiber or
    # thread reads it.
    #
    # With a restart policy the end is that of the last run. What it returns is not limited: see
    # Minder.run.
    #
    # Raises IOError if the stream is not a pipe, and ClosedError if the set is stopped meanwhile,
    # and in a forked process.
    def read(stream = :stdout, encoding: Encoding.default_external)
      @children.claim(self)
      collect([stream], @kept[stream] ||= String.new)
      (@kept.delete(stream) || String.new).force_encoding(encoding)
    end

    # Calls a block with each piece of output, a binary string, and its stream, in the order of
    # arrival, until the end. Without +stream+ both streams are read. With one of them, the other
    # one waits in memory, and the child may block for it. Returns self; without a block an
    # Enumerator.
    #
    #   child.each_chunk { |data, stream| (stream == :stdout ? $stdout : $stderr).write(data) }
    #
    # Raises as +read+.
    def each_chunk(stream = nil)
      return to_enum(:each_chunk, stream) unless block_given?

      while (data, from = read_chunk(stream))
        yield data, from
      end
      self
    end

    # Returns the next piece of output and its stream; nil at the end. See +each_chunk+.
    def read_chunk(stream = nil)
      @children.claim(self)
      wanted = streams(stream)
      wanted.each do |name|
        data = @kept.delete(name)
        return [data, name] if data && !data.empty?
      end
      reading(wanted) do
        found = @children.await(self, nil) { next_stream(wanted) || ended(wanted) }
        return [take(found), found] unless found == :end

        check_complete
      end
      nil
    end

    # Calls a block with each line and its stream, as +each_chunk+ does with chunks. The lines of
    # one stream are in order. The last one may lack its end. A line of more than +limit+ bytes
    # comes in pieces.
    #
    #   child.each_line(chomp: true) { |line| puts "#{child.id}: #{line}" }
    #
    # chomp:: true: a line comes without LF or CR LF.
    # limit:: the most bytes of a line. Default: 16 MiB.
    #
    # Returns self; without a block an Enumerator. Raises as +read+.
    def each_line(stream = nil, chomp: false, limit: LINE_MAX, encoding: Encoding.default_external)
      return to_enum(:each_line, stream, chomp: chomp, limit: limit, encoding: encoding) unless block_given?
      raise ArgumentError, "the limit is #{limit}: expected a positive number" unless limit.positive?

      rests = {}
      each_chunk(stream) do |data, from|
        data.each_line do |piece|
          rest = rests.delete(from)
          line = rest ? rest << piece : piece
          while line.bytesize > limit
            yield line.byteslice(0, limit).force_encoding(encoding), from
            line = line.byteslice(limit..)
          end
          if line.end_with?("\n")
            yield (chomp ? line.chomp : line).force_encoding(encoding), from
          else
            rests[from] = line
          end
        end
      end
      rests.each { |from, line| yield line.force_encoding(encoding), from }
      self
    end

    # Writes a string to the standard input of the child, all of it, and returns its size in bytes.
    # Waits while more than +input_memory+ bytes wait to be read by the child. Writes of several
    # fibers do not mix.
    #
    # The bytes are in memory of this process when it returns. Whether the child reads them is not
    # known.
    #
    # Raises IOError if the input is not a pipe or was closed, Errno::EPIPE if the child closed it
    # or is done, and ClosedError after the set was stopped, and in a forked process.
    def write(data)
      data = data.to_s.dup.freeze
      @input.synchronize do
        offset = 0
        loop do
          seen = room
          offset += push(data, offset)
          break if offset == data.bytesize

          @children.await(self, nil) { room != seen || done? }
        end
      end
      data.bytesize
    end

    # Writes a string, and returns self, so that writes can be chained.
    def <<(data)
      write(data)
      self
    end

    # Writes as many bytes of a string as there is room for, and returns how many: maybe 0. Then the
    # event :writable reports that there is room again. Raises as +write+.
    def write_nonblock(data)
      push(data.to_s, 0)
    end

    # Kills the child with everything that it started, and returns at once: +wait+ waits for the
    # end. Returns false if it is done. A child that would be started again is not.
    #
    # grace::   seconds between SIGTERM and SIGKILL. 0 kills at once.
    # signals:: in place of that, a list of signals, each with the seconds to wait after it, before
    #           the kill: <tt>[["INT", 1], ["TERM", 5]]</tt>, at most 8.
    #
    # It reaches the process group, and descendants that left it and can be found. Raises
    # Errno::EPERM for a child of another user, and ClosedError after the set was stopped, and in a
    # forked process.
    def kill(grace: 0, signals: nil)
      native_kill(Launch.termination(signals || grace))
    end

    # Kills the child with everything that it started, as +kill+ does, and starts it again. Returns
    # false if it is done. Raises ArgumentError if it was spawned without +restart+.
    def restart(grace: 0, signals: nil)
      native_restart(Launch.termination(signals || grace))
    end

    def inspect
      state = done? ? Status.new(*exit_values).to_s : "pid #{pid}"
      "#<#{self.class} #{@command.first} #{state}>"
    end

    # Writes an input and reads both outputs, until all are at their end. Returns both outputs.
    def communicate(input, max_bytes) # :nodoc:
      @children.claim(self)
      offset = 0
      outputs = { stdout: String.new, stderr: String.new }
      loop do
        seen = room
        offset, input = feed(input, offset) if input
        is_done = done?
        count = outputs.sum { |name, output| piped?(name) ? drain(name, output) : 0 }
        if outputs.sum { |_, output| output.bytesize } > max_bytes
          raise LimitError, "`#{@command.first}` wrote more than #{max_bytes} bytes"
        end
        break if count.zero? && is_done
        next unless count.zero?

        @children.await(self, nil) { older_stream || done? || (input && room != seen) }
      end
      check_complete
      outputs.values
    end

    private

    # Writes what there is room for, and closes the input at the end, or if the child does not want
    # it.
    def feed(input, offset)
      offset += push(input, offset)
      return [offset, input] if offset < input.bytesize

      close_stdin
      [offset, nil]
    rescue Errno::EPIPE
      [offset, nil]
    end

    def streams(stream)
      return [stream] if stream.nil? ? false : check_piped(stream)

      piped = %i[stdout stderr].select { |name| piped?(name) }
      raise IOError, "not opened for reading: no output of the child is a pipe" if piped.empty?

      piped
    end

    def check_piped(stream)
      piped?(stream) or raise IOError, "not opened for reading: #{stream} of the child is not a pipe"
    end

    # Appends the rest of a stream to a string, and keeps what the other one writes meanwhile.
    def collect(wanted, buffer)
      stream = wanted.first
      check_piped(stream)
      other = stream == :stdout ? :stderr : :stdout
      reading(wanted) do
        loop do
          drain(stream, buffer)
          drain(other, @kept[other] ||= String.new) if output?(other) && @readers[other].zero?
          break if @children.await(self, nil) do
            next true if output?(stream) || (output?(other) && @readers[other].zero?)

            ended(wanted)
          end == :end
        end
      end
      check_complete
    end

    # Returns the stream whose output comes next, if any waits.
    def next_stream(wanted)
      return older_stream if wanted.size > 1

      wanted.first if output?(wanted.first)
    end

    def ended(wanted)
      :end if wanted.all? { |name| ended?(name) } && wanted.none? { |name| output?(name) }
    end

    # Output that a stop has dropped is not an end.
    def check_complete
      raise ClosedError, "the set was stopped before all output was read" if lost?
    end

    # Notes which streams are being read.
    def reading(wanted)
      wanted.each { |name| @readers[name] += 1 }
      yield
    ensure
      wanted.each { |name| @readers[name] -= 1 }
    end
  end

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
