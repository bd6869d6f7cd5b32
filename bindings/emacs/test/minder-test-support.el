;;; minder-test-support.el --- What the tests of light processes share  -*- lexical-binding: t; -*-

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

;; Each test waits for events, with a deadline, and ends the processes that it
;; has started.

;;; Code:

(require 'ert)
(require 'cl-lib)
(require 'subr-x)
(require 'minder)
(require 'minder-list)

;; The tests run in any locale.
(set-language-environment "UTF-8")

(defvar minder-test-seconds 30
  "The longest time that a test waits for something.")

(defconst minder-test--directory (file-name-directory (or load-file-name buffer-file-name))
  "The directory of the tests.")

(defun minder-test--until (condition &optional process)
  "Wait for a non-nil value of CONDITION; fail after a time.  Hear PROCESS."
  (let ((deadline (+ (float-time) minder-test-seconds)))
    (while (not (funcall condition))
      (when (> (float-time) deadline)
        (ert-fail (list "timed out" condition)))
      (minder-accept-output process 0.2))))

(defun minder-test--finish (&rest processes)
  "Wait until PROCESSES have ended."
  (dolist (process processes)
    (minder-test--until (lambda () (not (minder-process-live-p process))) process)))

(defun minder-test--start (command &rest args)
  "Start COMMAND as a light process with the keywords ARGS.
Output is collected in the property `text'."
  (apply #'minder-make-process
         (append args
                 (list :name "test" :command command :light t :noquery t
                       :filter (lambda (process text)
                                 (minder-process-put
                                  process 'text
                                  (concat (minder-process-get process 'text) text)))
                       :sentinel (lambda (process text)
                                   (minder-process-put process 'end text))))))

(defun minder-test--text (process)
  "Return what PROCESS has written."
  (or (minder-process-get process 'text) ""))

(defun minder-test--run (command &rest args)
  "Run COMMAND with the keywords ARGS to its end; return its process."
  (let ((process (apply #'minder-test--start command args)))
    (minder-test--finish process)
    process))

(defun minder-test--sh (script &rest args)
  "Return a shell command for SCRIPT with ARGS."
  (append (list "sh" "-c" script "sh") args))

(defun minder-test--gone-p (pid)
  "Return whether the process PID does not exist or is a zombie."
  (let ((state (alist-get 'state (process-attributes pid))))
    (or (null state) (equal state "Z"))))

(defun minder-test--emacs (form)
  "Start another Emacs for FORM; return its light process."
  (minder-test--start
   (list (expand-file-name invocation-name invocation-directory)
         "-Q" "--batch" "-L" (file-name-directory (locate-library "minder"))
         "-l" "minder" "--eval" (prin1-to-string form))))

(provide 'minder-test-support)
;;; minder-test-support.el ends here
