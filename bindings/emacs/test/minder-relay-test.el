;;; minder-relay-test.el --- Tests of processes behind the relay  -*- lexical-binding: t; -*-

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

;; The command is that of the variable MINDER_PROGRAM, or else `minder-program',
;; or else the one that cargo has built in this tree.  No module is needed.

;;; Code:

(require 'ert)
(require 'cl-lib)
(require 'minder-relay)

(defvar minder-relay-test-seconds 30
  "The longest time that a test waits for something.")

(let ((built (expand-file-name "../../../target/debug/minder"
                               (file-name-directory (or load-file-name buffer-file-name))))
      (given (getenv "MINDER_PROGRAM")))
  (cond (given (setq minder-program given))
        ((minder--relay-p))
        ((file-executable-p built) (setq minder-program built))))

(defun minder-relay-test--until (condition)
  "Wait for a non-nil value of CONDITION, and fail after a time."
  (let ((deadline (+ (float-time) minder-relay-test-seconds)))
    (while (not (funcall condition))
      (when (> (float-time) deadline)
        (ert-fail (list "timed out" condition)))
      (accept-process-output nil 0.05))))

(defun minder-relay-test--text (process)
  "Return what PROCESS has written."
  (apply #'concat (reverse (process-get process 'pieces))))

(defun minder-relay-test--start (command &rest args)
  "Start COMMAND with the keywords ARGS; keep its output."
  (minder--make-relay
   (append args
           (list :name "relay test" :command command :noquery t
                 :coding 'binary :connection-type 'pipe
                 :filter (lambda (process text)
                           (process-put process 'pieces
                                        (cons text (process-get process 'pieces))))
                 :sentinel #'ignore))))

(defun minder-relay-test--finish (process)
  "Wait for the end of PROCESS as most code does; return its exit status."
  (let ((deadline (+ (float-time) minder-relay-test-seconds)))
    (while (process-live-p process)
      (when (> (float-time) deadline)
        (delete-process process)
        (ert-fail (list "timed out" (process-command process))))
      (accept-process-output process 1)))
  (process-exit-status process))

(defmacro minder-relay-test--deftest (name doc &rest body)
  "Define the test NAME with the documentation DOC.
BODY runs with `type' bound to `pipe' and then to `pty'."
  (declare (indent 1) (doc-string 2))
  `(ert-deftest ,name ()
     ,doc
     (skip-unless (and (minder--relay-p) (not (eq system-type 'windows-nt))))
     (dolist (type '(pipe pty))
       (ert-info ((format "with a %s" type))
         ,@body))))

(minder-relay-test--deftest minder-relay-bytes
  "A reader that stops when the process is not live has every byte."
  (let ((file (make-temp-file "minder-relay"))
        (size (* 8 1024 1024))
        (coding-system-for-write 'binary)
        (read-process-output-max (* 1024 1024)))
    (unwind-protect
        (let* ((bytes (let ((line (concat (make-string 1023 ?x) "\n")))
                        (with-temp-buffer
                          (set-buffer-multibyte nil)
                          (dotimes (number (/ size 1024))
                            (insert (format "%07d" number) (substring line 7)))
                          (write-region nil nil file nil 'silent)
                          (buffer-string))))
               (expected (md5 bytes nil nil 'binary)))
          (dotimes (_ 20)
            (let ((process (minder-relay-test--start (list "cat" file)
                                                     :connection-type type)))
              (should (= (minder-relay-test--finish process) 0))
              (let ((text (minder-relay-test--text process)))
                (should (= (length text) size))
                (should (equal (md5 text nil nil 'binary) expected))))))
      (delete-file file))))

(minder-relay-test--deftest minder-relay-few-pieces
  "A filter is called less often than the program writes."
  (let* ((read-process-output-max (* 1024 1024))
         (process (minder-relay-test--start
                   '("dd" "if=/dev/zero" "bs=4096" "count=2048" "status=none")
                   :connection-type type)))
    (should (= (minder-relay-test--finish process) 0))
    (should (= (length (minder-relay-test--text process)) (* 4096 2048)))
    (should (< (length (process-get process 'pieces)) 300))))

(minder-relay-test--deftest minder-relay-status
  "The exit status and the signal are those of the program."
  (dolist (status '(0 3 255))
    (let ((process (minder-relay-test--start
                    (list "sh" "-c" (format "exit %d" status)) :connection-type type)))
      (should (= (minder-relay-test--finish process) status))
      (should (eq (process-status process) 'exit))))
  (let ((process (minder-relay-test--start '("sh" "-c" "kill -TERM $$")
                                           :connection-type type)))
    (should (= (minder-relay-test--finish process) 15))
    (should (eq (process-status process) 'signal))))

(minder-relay-test--deftest minder-relay-signals
  "Signals reach the program, and `kill-process' ends it."
  (dolist (case '((interrupt-process . 2) (quit-process . 3) (kill-process . 9)))
    (let ((process (minder-relay-test--start '("sh" "-c" "echo $$; exec sleep 600")
                                             :connection-type type)))
      (minder-relay-test--until
       (lambda () (string-suffix-p "\n" (minder-relay-test--text process))))
      (let ((pid (string-to-number (minder-relay-test--text process))))
        (funcall (car case) process)
        (should (= (minder-relay-test--finish process) (cdr case)))
        (should (eq (process-status process) 'signal))
        (minder-relay-test--until
         (lambda () (member (alist-get 'state (process-attributes pid)) '(nil "Z"))))))))

(minder-relay-test--deftest minder-relay-delete
  "`delete-process' leaves no program."
  (let ((process (minder-relay-test--start '("sh" "-c" "echo $$; exec sleep 600")
                                           :connection-type type)))
    (minder-relay-test--until
     (lambda () (string-suffix-p "\n" (minder-relay-test--text process))))
    (let ((pid (string-to-number (minder-relay-test--text process))))
      (delete-process process)
      (minder-relay-test--until
       (lambda () (member (alist-get 'state (process-attributes pid)) '(nil "Z")))))))

(minder-relay-test--deftest minder-relay-input
  "Input reaches the program, and its end ends the program."
  (let ((process (minder-relay-test--start '("sh" "-c" "echo ready; exec cat")
                                           :connection-type type)))
    ;; What comes earlier may find the terminal with its echo.
    (minder-relay-test--until
     (lambda () (equal (minder-relay-test--text process) "ready\n")))
    (process-send-string process "one\n")
    (minder-relay-test--until
     (lambda () (equal (minder-relay-test--text process) "ready\none\n")))
    (process-send-string process "two\n")
    (process-send-eof process)
    (should (= (minder-relay-test--finish process) 0))
    (should (equal (minder-relay-test--text process) "ready\none\ntwo\n"))))

(minder-relay-test--deftest minder-relay-stop
  "`stop-process' suspends the program, and `continue-process' resumes it."
  (let* ((process (minder-relay-test--start
                   '("sh" "-c" "while :; do echo line; sleep 0.02; done")
                   :connection-type type))
         (written (lambda () (length (minder-relay-test--text process)))))
    (minder-relay-test--until (lambda () (> (funcall written) 10)))
    (stop-process process)
    (minder-relay-test--until (lambda () (eq (process-status process) 'stop)))
    (while (accept-process-output process 0.1))
    (let ((before (funcall written)))
      (accept-process-output process 0.3)
      (should (= (funcall written) before))
      (continue-process process)
      (minder-relay-test--until (lambda () (> (funcall written) before))))
    (should (eq (process-status process) 'run))
    (delete-process process)))

(ert-deftest minder-relay-terminal ()
  "The program is on a terminal without echo, of the size of the window."
  (skip-unless (and (minder--relay-p) (not (eq system-type 'windows-nt))))
  (let ((process (minder-relay-test--start '("sh" "-c" "test -t 0 && stty size")
                                           :connection-type 'pty)))
    (should (= (minder-relay-test--finish process) 0))
    (should (equal (minder-relay-test--text process) "24 80\n"))))

(ert-deftest minder-relay-object ()
  "The process object has the original command; errors are those of Emacs."
  (skip-unless (minder--relay-p))
  (let ((process (minder-relay-test--start '("echo" "text"))))
    (should (equal (process-get process 'minder-command) '("echo" "text")))
    (should (equal (last (process-command process)) '("text")))
    (should (= (minder-relay-test--finish process) 0)))
  (should-error (minder-relay-test--start '("no-such-program")) :type 'file-missing)
  (should-error (minder-relay-test--start '(1)) :type 'wrong-type-argument)
  (let ((minder-program "no-such-minder"))
    (should-not (minder--relay-p))
    (should-error (minder-relay-test--start '("echo")) :type 'file-missing)))

(ert-deftest minder-relay-errors ()
  "Errors are part of the output, in order, or go to `:stderr'."
  (skip-unless (and (minder--relay-p) (not (eq system-type 'windows-nt))))
  (let* ((command '("sh" "-c" "echo a; echo b >&2; echo c; echo d >&2"))
         (process (minder-relay-test--start command)))
    (should (= (minder-relay-test--finish process) 0))
    (should (equal (minder-relay-test--text process) "a\nb\nc\nd\n")))
  (with-temp-buffer
    (let* ((errors (current-buffer))
           (process (minder-relay-test--start
                     '("sh" "-c" "echo a; echo b >&2; test -t 0") :stderr errors
                     :connection-type 'pty)))
      (set-process-sentinel (get-buffer-process errors) #'ignore)
      (should (= (minder-relay-test--finish process) 1))
      (minder-relay-test--until (lambda () (equal (buffer-string) "b\n")))
      (should (equal (minder-relay-test--text process) "a\n")))))

(provide 'minder-relay-test)
;;; minder-relay-test.el ends here
