;;; minder-differential-test.el --- Processes of Emacs and minder do the same  -*- lexical-binding: t; -*-

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

;; Each program runs with processes of Emacs, with light ones and with native
;; ones.  The results are equal.

;;; Code:

(require 'minder-test-support)

(defvar minder-test--kind 'stock
  "What the program uses: `stock', `light' or `native' processes.")

(defun minder-test--lightp ()
  "Return whether the program uses light processes."
  (eq minder-test--kind 'light))

(defun minder-test--call (name &rest args)
  "Call the function NAME of Emacs, or that of light processes, with ARGS."
  (apply (cond ((not (minder-test--lightp)) name)
               ((eq name 'accept-process-output) #'minder-accept-output)
               (t (intern (concat "minder-" (symbol-name name)))))
         args))

(defun minder-test--collector (property)
  "Return a filter or sentinel that collects texts in PROPERTY."
  ;; It may run when the other kind has its turn.
  (let ((put (if (minder-test--lightp) #'minder-process-put #'process-put))
        (get (if (minder-test--lightp) #'minder-process-get #'process-get)))
    (lambda (process text)
      (funcall put process property (concat (funcall get process property) text)))))

(defun minder-test--make (command &rest args)
  "Start COMMAND with the keywords ARGS; collect output and end in its properties."
  (apply (if (eq minder-test--kind 'stock) #'make-process #'minder-make-process)
         (append args
                 (list :name "test" :command command :noquery t :connection-type 'pipe)
                 (unless (plist-get args :buffer)
                   (list :filter (minder-test--collector 'text)
                         :sentinel (minder-test--collector 'end)))
                 (and (minder-test--lightp) '(:light t)))))

(defun minder-test--wait (process)
  "Wait until PROCESS has ended; return what there is to see."
  (let ((deadline (+ (float-time) minder-test-seconds)))
    (while (and (or (minder-test--call 'process-live-p process)
                    ;; Emacs calls the sentinel later.
                    (null (or (minder-test--call 'process-buffer process)
                              (minder-test--call 'process-get process 'end))))
                (< (float-time) deadline))
      (minder-test--call 'accept-process-output process 0.2)
      ;; Emacs calls no sentinel while it waits for one process.
      (accept-process-output nil 0)))
  (minder-test--result process))

(defun minder-test--result (process)
  "Return what there is to see of PROCESS."
  (list (minder-test--call 'process-status process)
        (minder-test--call 'process-exit-status process)
        (minder-test--call 'process-get process 'text)
        (minder-test--call 'process-get process 'end)))

(defun minder-test--shell (script &rest args)
  "Run SCRIPT with the keywords ARGS to its end; return what there is to see."
  (minder-test--wait (apply #'minder-test--make (list "sh" "-c" script) args)))

(defun minder-test--ready (process text)
  "Wait until PROCESS has written TEXT."
  (let ((deadline (+ (float-time) minder-test-seconds)))
    (while (and (not (equal (minder-test--call 'process-get process 'text) text))
                (< (float-time) deadline))
      (minder-test--call 'accept-process-output process 0.2))))

(defmacro minder-test--same (name &rest program)
  "Define the tests of NAME: PROGRAM has the same result with all kinds."
  (declare (indent 1))
  `(progn
     ,@(mapcar (lambda (kind)
                 `(ert-deftest ,(intern (format "minder-same-%s-%s" name kind)) ()
                    (let ((run (lambda () ,@program)))
                      (should (equal (let ((minder-test--kind ',kind)) (funcall run))
                                     (funcall run))))))
               '(light native))))

(minder-test--same exit-codes
  (mapcar (lambda (code) (minder-test--shell (format "echo text; exit %d" code)))
          '(0 1 3 127 255)))

(minder-test--same signals
  (mapcar (lambda (signal) (minder-test--shell (format "kill -%d $$" signal)))
          '(1 2 9 10 12 13 14 15)))

(minder-test--same kill-and-interrupt
  (mapcar (lambda (function)
            (let ((process (minder-test--make '("sleep" "600"))))
              (minder-test--call function process)
              (minder-test--wait process)))
          '(kill-process interrupt-process quit-process)))

(minder-test--same delete
  (let ((process (minder-test--make '("sleep" "600"))))
    (minder-test--call 'delete-process process)
    (minder-test--result process)))

(minder-test--same default-filter-and-sentinel
  (with-temp-buffer
    (insert "before")
    (let ((process (minder-test--make '("sh" "-c" "echo one; echo two >&2; exit 4")
                                      :buffer (current-buffer))))
      (minder-test--wait process)
      (while (not (string-suffix-p "code 4\n" (buffer-string)))
        (accept-process-output nil 0.1))
      (list (buffer-string) (point)
            (marker-position (minder-test--call 'process-mark process))))))

(minder-test--same separate-stderr
  (with-temp-buffer
    (rename-buffer " *minder-test-stderr*" t)
    (let ((result (minder-test--shell "echo out; echo err >&2" :stderr (current-buffer)))
          (deadline (+ (float-time) 0.3)))
      (while (< (float-time) deadline)
        (accept-process-output nil 0.05))
      (list result (replace-regexp-in-string "\nProcess.*\n" "END" (buffer-string))))))

(minder-test--same echo
  (mapcar (lambda (coding)
            (let ((process (minder-test--make '("cat") :coding coding)))
              (minder-test--call 'process-send-string process "aé日本\r\n\200\n")
              (minder-test--call 'process-send-eof process)
              (minder-test--wait process)))
          '(utf-8-unix utf-8-dos latin-1-unix binary raw-text-unix
                       (utf-8-unix . latin-1-unix) utf-16le-unix)))

(minder-test--same coding-is-detected
  (mapcar #'minder-test--shell
          '("printf 'a\\r\\nb\\r\\n'" "printf 'a\\nb\\r\\n'" "printf '\\303\\244\\n'"
            "printf '\\344\\n'" "printf 'a\\r'" "printf '\\000\\001'")))

(minder-test--same names
  (let* ((one (minder-test--make '("cat")))
         (two (minder-test--make '("cat")))
         (three (minder-test--make '("cat")))
         (names (mapcar (lambda (process) (minder-test--call 'process-name process))
                        (list one two three))))
    (minder-test--call 'delete-process two)
    (let ((four (minder-test--make '("cat"))))
      (prog1 (append names (list (minder-test--call 'process-name four)))
        (dolist (process (list one three four))
          (minder-test--call 'delete-process process))))))

(minder-test--same changed-filter
  (let* ((process (minder-test--make '("sh" "-c" "echo one; read x; echo two")))
         (later nil))
    (minder-test--ready process "one\n")
    (minder-test--call 'set-process-filter process
                       (lambda (_ text) (setq later (concat later text))))
    (minder-test--call 'process-send-string process "\n")
    (list (minder-test--wait process) later)))

(minder-test--same errors
  (mapcar (lambda (form)
            (condition-case problem
                (progn (apply #'minder-test--make form) 'started)
              (error (list (car problem) (nth 1 problem)))))
          ;; "/nowhere/program" differs: Emacs starts a child, which exits.
          '((("no-such-program-of-minder"))
            (("true") :coding no-such-coding)
            (("true") :name 1))))

(minder-test--same environment
  (let ((process-environment (append '("A=1" "B" "A=2") process-environment '("B=3"))))
    (minder-test--shell "echo $A ${B-none} $TERM ${INSIDE_EMACS-none} ${LINES-none}")))

(minder-test--same odd-environment
  (let ((initial-environment '("DISPLAY=:7"))
        (process-environment (list "PATH=/bin:/usr/bin" "" "A=1")))
    (minder-test--shell "echo $A ${DISPLAY-none}; env | grep -c PWD=")))

(minder-test--same arguments-are-encoded
  (mapcar (lambda (coding)
            (minder-test--wait (minder-test--make '("printf" "a\u00e4\n") :coding coding)))
          '(utf-8-unix latin-1-unix binary (binary . latin-1-unix) (binary . utf-8-dos))))

(minder-test--same input-after-its-end
  ;; It lives on after the end of its input: to one that has exited, sending is an error.
  (let ((process (minder-test--make '("sh" "-c" "cat; sleep 0.3"))))
    (minder-test--call 'process-send-string process "text")
    (minder-test--call 'process-send-eof process)
    (minder-test--call 'process-send-string process "lost")
    (minder-test--call 'process-send-eof process)
    (list (minder-test--wait process)
          (condition-case problem
              (minder-test--call 'process-send-string process "text")
            (error (car problem))))))

(minder-test--same signal-of-one-process
  (let ((process (minder-test--make
                  '("sh" "-c" "trap 'echo outer' USR1
                               sh -c 'echo ready; sleep 0.3; echo inner'; echo end"))))
    (minder-test--ready process "ready\n")
    (minder-test--call 'signal-process process 'SIGUSR1)
    (minder-test--wait process)))

(minder-test--same suspend-the-foreground
  (let ((process (minder-test--make
                  ;; It lives on, so that its status is the same on a slow machine.
                  '("sh" "-c" "set -m; sh -c 'echo ready; exec sleep 600'; echo next; sleep 0.5")
                  :connection-type 'pty)))
    (minder-test--ready process "ready\n")
    (minder-test--call 'stop-process process t)
    (list (minder-test--call 'process-status process)
          (minder-test--wait process))))

(minder-test--same signals-of-a-child
  (list (minder-test--shell "kill -PIPE $$; echo alive")
        ;; Children of the module ignore SIGPROF, as Emacs does.
        (minder-test--shell "grep -E '^Sig(Blk|Cgt)' /proc/self/status")))

(minder-test--same terminal
  (list (minder-test--shell "stty -a | sed -e 1d" :connection-type 'pty)
        (minder-test--shell "echo $TERM; printf 'a\\tb\\n'; exit 5" :connection-type 'pty)))

(minder-test--same input-of-a-terminal
  (let ((process (minder-test--make '("cat") :connection-type 'pty)))
    (minder-test--call 'process-send-string process "line\n")
    (minder-test--ready process "line\n")
    (minder-test--call 'process-send-eof process)
    (minder-test--wait process)))

(minder-test--same much-output
  (let ((result (minder-test--shell "seq 1 50000")))
    (list (car result) (md5 (nth 2 result)))))

(provide 'minder-differential-test)
;;; minder-differential-test.el ends here
