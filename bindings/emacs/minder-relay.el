;;; minder-relay.el --- Processes behind the command minder relay  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The minder authors

;; SPDX-License-Identifier: GPL-3.0-or-later

;; This file is part of the package minder.  It is free software: you can
;; redistribute it and/or modify it under the terms of the GNU General Public
;; License as published by the Free Software Foundation, either version 3 of
;; the License, or (at your option) any later version.
;;
;; This program is distributed in the hope that it will be useful, but
;; WITHOUT ANY WARRANTY; without even the implied warranty of MERCHANTABILITY
;; or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License
;; for more details.
;;
;; You should have received a copy of the GNU General Public License along
;; with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; An Emacs without dynamic modules can have children that do not wait for it,
;; too: the command `minder relay' is the child of Emacs, and starts the program.
;; It reads the program all the time, and hands its output on in large pieces.
;; The result is a stock process object.  The relay has the exit status of the
;; program, forwards signals, and exits after Emacs has read everything.

;;; Code:

(require 'minder-start)

(defcustom minder-program "minder"
  "The command minder: a name that is in the variable `exec-path', or a file."
  :type 'string
  :group 'minder)

(defun minder--relay-p ()
  "Return whether the command minder can be found."
  (and (minder--relay-program) t))

(defun minder--relay-program ()
  "Return the file of the command minder, or nil."
  (if (file-name-absolute-p minder-program)
      (and (file-executable-p minder-program) (expand-file-name minder-program))
    (executable-find minder-program)))

(defun minder--make-relay (plist)
  "Start a process with the keywords of PLIST through the relay.
PLIST has the keywords of `make-process'; the result is a process object as of
that function.  Its property `minder-command' is the command of PLIST, and
`process-command' is that of the relay.

With the value `pty' of `:connection-type' the relay makes the pseudo-terminal.
For Emacs the process is connected by a pipe: `process-tty-name' is nil, and
after `process-send-eof' nothing more can be sent.  What is sent before the
program has written anything may find the terminal with its echo, which is
switched off by the first command on it.  With `:stderr' there is no terminal.

Emacs 28 and 29 read at most 4096 bytes at once.  To get large pieces, enlarge
that for all processes: (setq read-process-output-max (* 1024 1024)).  Emacs 28
reads the variable each time, so it can be set at any time."
  (let* ((command (minder--checked-command (plist-get plist :command)))
         (words (cons (minder--program (car command)) (cdr command)))
         (relay (or (minder--relay-program)
                    (signal 'file-missing
                            (list "Searching for program" "No such file or directory"
                                  minder-program))))
         (terminalp (and (null (plist-get plist :stderr))
                         (minder--wants-terminal-p plist)))
         (process-adaptive-read-buffering nil)
         (process (apply #'make-process
                         :command (append (list relay "relay")
                                          (and terminalp (minder--relay-terminal plist))
                                          (list "--")
                                          (if terminalp
                                              (minder--with-terminal words)
                                            words))
                         :connection-type 'pipe
                         plist)))
    (process-put process 'minder-command command)
    process))

(defun minder--relay-terminal (plist)
  "Return the flags of the relay for a terminal of the size of the buffer of PLIST."
  (let* ((given (plist-get plist :buffer))
         (size (minder--window-size (and given (get-buffer given)))))
    (list "--pty"
          "--rows" (number-to-string (max 1 (aref size 0)))
          "--columns" (number-to-string (max 1 (aref size 1))))))

(provide 'minder-relay)
;;; minder-relay.el ends here
