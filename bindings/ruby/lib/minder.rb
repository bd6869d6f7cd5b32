# frozen_string_literal: true

# Children that never wait, and a fiber scheduler for thousands of connections.
#
# - Minder::Scheduler: a scheduler of fibers on epoll, kqueue, io_uring or poll.
# - Minder::Children, Minder.spawn and Minder.run: child processes, many at once.
# - Minder::Server: a server in several processes.
# - Minder::Guardian: ends the children of a program that is killed.
module Minder
end

require_relative "minder/version"
require "minder/minder_ext"
require_relative "minder/scheduler"
require_relative "minder/status"
require_relative "minder/event"
require_relative "minder/guardian"
require_relative "minder/launch"
require_relative "minder/children"
require_relative "minder/waiting"
require_relative "minder/child"
require_relative "minder/run"
require_relative "minder/server"
