# frozen_string_literal: true

module Minder
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
end
