# frozen_string_literal: true

module Minder
  VERSION = "0.1.0"
end
