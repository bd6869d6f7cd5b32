# frozen_string_literal: true

module Minder
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
end
