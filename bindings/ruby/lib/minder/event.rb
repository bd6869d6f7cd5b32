# frozen_string_literal: true

module Minder
  # What happened to a child of a Children. It is frozen.
  #
  # +kind+ is one of these, and the other members are set:
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
end
