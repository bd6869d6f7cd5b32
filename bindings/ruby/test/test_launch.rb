# frozen_string_literal: true

require_relative "children_helper"
require "pathname"
require "tmpdir"

# The description of a command: its words, environment, streams and group.
class TestLaunch < Test::Unit::TestCase
  include ChildrenHelper

  limited("arguments are passed unchanged") do
    odd = ["", " ", "a b", "\"'`$HOME\\", "line\nline", "*", "-n", "\xFF\xFE".b, "é", "%s\t"]
    program = "ARGV.each { |word| print word, 0.chr }"
    output = Minder.run(RbConfig.ruby, "-e", program, "--", *odd, encoding: "BINARY").stdout
    assert_equal odd.map(&:b), output.split("\0", -1)[0..-2]
  end

  limited("a program may have an odd name") do
    Dir.mktmpdir do |directory|
      ["a b", "quote\"'", "new\nline", "caf\xE9".b].each do |name|
        path = File.join(directory, name)
        File.write(path, "#!/bin/sh\necho \"$1\"\n", perm: 0o755)
        assert_equal "text\n", Minder.run(path, "text").stdout
      end
    end
  end

  limited("one string is a program and not a line") do
    assert_raise(Errno::ENOENT) { Minder.spawn("echo text") }
    assert_equal "a b\n", Minder.run(["echo", "a b"]).stdout
    assert_equal "x\n", Minder.run("echo", Pathname("x")).stdout
  end

  limited("errors of a start have their class") do
    open(guardian: false) do |children|
      error = assert_raise(Errno::ENOENT) { children.spawn("no-such-program-here") }
      assert_match(/no-such-program-here/, error.message)
      assert_raise(Errno::ENOENT) { children.spawn("true", chdir: "/no/such/directory") }
      assert_raise(Errno::EACCES) { children.spawn("/etc/passwd") }
      assert_raise(Errno::ENOENT) { children.spawn("true", stdin: "/no/such/file") }
      assert_raise(Errno::E2BIG) { children.spawn("true", "x" * (8 * MIB)) }
      assert_raise(ArgumentError) { children.spawn }
      assert_raise(ArgumentError) { children.spawn("a\0b") }
      assert_raise(ArgumentError) { children.spawn("true", "a\0b") }
      assert_raise(ArgumentError) { children.spawn("true", nonsense: 1) }
      assert_raise(ArgumentError) { children.spawn("true", stdout: :stdout) }
      assert_raise(ArgumentError) { children.spawn("true", overflow: :nonsense) }
      assert_raise(ArgumentError) { children.spawn("true", stdin: 99_999) }
      assert_raise(ArgumentError) { children.spawn("true", kill: [["NONSENSE", 1]]) }
      assert_raise(ArgumentError) { children.spawn("true", terminal: [24, 80], group: :session) }
      assert_raise(TypeError) { children.spawn("true", 1) }
      assert_raise(TypeError) { children.spawn("true", terminal: %w[a b]) }
      assert_raise(RangeError) { children.spawn("true", terminal: [1 << 20, 80]) }
      assert_equal 0, children.size
      assert_true children.empty?
    end
  end

  limited("environment and directory") do
    line = "echo \"$A-$B-$C\"; pwd"
    ENV["B"] = "inherited"
    text = Minder.run({ "A" => "1", "B" => nil }, "sh", "-c", line, env: { "C" => "3" }, chdir: "/usr").stdout
    assert_equal "1--3\n/usr\n", text
    assert_equal "-inherited-\n", Minder.run("sh", "-c", "echo \"$A-$B-$C\"").stdout
    text = Minder.run({ "A" => "\xFF" }, "/usr/bin/env", unsetenv_others: true, encoding: "BINARY").stdout
    assert_equal "A=\xFF\n".b, text
  ensure
    ENV.delete("B")
  end

  limited("streams are connected as the options say") do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "file")
      open do |children|
        assert_true shell(children, "echo one; echo two >&2", stdout: path, stderr: :null).wait.success?
        assert_equal "one\n", File.read(path)
        assert_true shell(children, "echo three >&2", stderr: [path, "a"]).wait.success?
        assert_equal "one\nthree\n", File.read(path)
        assert_true shell(children, "cat; echo four", stdin: path, stdout: [path, "a"]).wait.success?
        assert_match(/\Aone\nthree\n.*four\n\z/m, File.read(path))
        reader, writer = IO.pipe
        child = shell(children, "echo five; echo six >&2", stdout: writer, stderr: writer.fileno)
        assert_true child.wait.success?
        writer.close
        assert_equal "five\nsix\n", reader.read
        merged = shell(children, "echo a; echo b >&2; echo c", stderr: :stdout)
        assert_equal "a\nb\nc\n", merged.read
        assert_raise(IOError) { merged.read(:stderr) }
        assert_raise(IOError) { children.spawn("true", stdout: :null, stderr: :null).each_chunk {} }
        assert_raise(ArgumentError) { merged.read(:nonsense) }
        assert_equal "", shell(children, "cat").read
      end
    end
    assert_equal "inherited\n", ruby("Minder.spawn('echo', 'inherited', stdout: :inherit).wait").first
  end

  limited("groups and niceness") do
    ids = lambda do |**options|
      stat = Minder.run("sh", "-c", "cat /proc/$$/stat", **options).stdout
      [stat.to_i, *stat.split(") ").last.split.values_at(2, 3, 16).map(&:to_i)]
    end
    pid, group, session, nice = ids.call(nice: 3)
    assert_equal [pid, Process.getsid], [group, session]
    assert_equal Process.getpriority(Process::PRIO_PROCESS, 0) + 3, nice
    pid, group, session, = ids.call(group: :session)
    assert_equal [pid, pid], [group, session]
    assert_equal Process.getpgrp, ids.call(group: :inherit)[1]
  end

  limited("no descriptor is inherited") do
    reader, writer = IO.pipe
    [reader, writer].each { |io| io.close_on_exec = false }
    assert_equal %w[0 1 2 3], Minder.run("ls", "/proc/self/fd").stdout.split
  end
end
