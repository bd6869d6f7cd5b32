# frozen_string_literal: true

# Runs all tests of the gem.

Dir[File.join(__dir__, "test_*.rb")].sort.each { |file| require file }
