# frozen_string_literal: true

require_relative "children_helper"
require "tmpdir"

# The samples about children do what they say.
class TestSamples < Test::Unit::TestCase
  include ChildrenHelper

  limited("samples") do
    samples = File.expand_path("../samples", __dir__)
    run = ->(name, *arguments) { ruby("load ARGV.shift", File.join(samples, name), *arguments) }
    assert_equal "text\nmessage\nexit 3\n", run.call("spawn_and_read.rb").first
    assert_equal "100 children, 0 failed, 500 bytes\n", run.call("many_children.rb").first
    assert_equal "it runs\nsignal 15\n", run.call("kill_tree.rb").first
    Dir.mktmpdir do |directory|
      texts = { "good.rb" => "puts 1; warn 2", "bad.rb" => "puts 3; exit 4", "slow.rb" => "sleep" }
      files = texts.map do |name, text|
        File.join(directory, name).tap { |path| File.write(path, text) }
      end
      output, status = run.call("parallel_tests.rb", "-j", "3", "-t", "2", *files)
      assert_match(/good.rb: exit 0.*\n2\n1\n/, output)
      assert_match(/bad.rb: exit 4.*\n3\n/, output)
      assert_match(/slow.rb: .*timed out/, output)
      assert_match(/3 files, 2 failed/, output)
      assert_equal 2, status.exitstatus
    end
  end
end
