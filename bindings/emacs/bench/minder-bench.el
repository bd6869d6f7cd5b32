;;; minder-bench.el --- Cost of output, stock and light processes  -*- lexical-binding: t; -*-

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

;; Each row is one run: a child writes four short lines, and then many bytes.
;; The kinds are run by turns.  The time of the processor is that of Emacs with
;; all its threads, without the child.
;;
;;   emacs -Q --batch -L DIRECTORY -l minder-bench.el -f minder-bench
;;
;; Environment: ROUNDS (5), KINDS (minder nil), SIZES (8 20), in MiB.  The kinds
;; `nil' and `t' are stock processes with this value of
;; `process-adaptive-read-buffering'.

;;; Code:

(require 'cl-lib)
(require 'minder)

(defun minder-bench--cpu ()
  "Return the processor time of this Emacs, in seconds."
  (let ((attributes (process-attributes (emacs-pid))))
    (+ (float-time (alist-get 'utime attributes))
       (float-time (alist-get 'stime attributes)))))

(defun minder-bench--words (name default)
  "Return the words of the environment variable NAME, or of DEFAULT."
  (split-string (or (getenv name) default) " " t))

(defun minder-bench--filter (name)
  "Return the filter NAME: `count', `insert' or `slow'."
  (pcase name
    ("count" #'ignore)
    ("insert" (lambda (process text)
                (if (processp process)
                    (internal-default-process-filter process text)
                  (minder-default-filter process text))))
    ;; A millisecond for each call.
    ("slow" (lambda (&rest _)
              (let ((end (time-add nil 0.001)))
                (while (time-less-p nil end)))))))

(defun minder-bench--run (kind connection name size)
  "Run one child of KIND with CONNECTION, the filter NAME and SIZE MiB.
Return the times and the numbers of calls and bytes."
  (garbage-collect)
  (with-temp-buffer
    (let* ((calls 0)
           (bytes 0)
           (filter (minder-bench--filter name))
           (process-adaptive-read-buffering (equal kind "t"))
           (begin (float-time))
           (cpu (minder-bench--cpu))
           (process
            (apply (if (equal kind "minder") #'minder-make-process #'make-process)
                   :name "bench" :buffer (current-buffer) :connection-type connection
                   :coding 'utf-8-unix :sentinel #'ignore
                   :filter (lambda (process text)
                             (setq calls (1+ calls)
                                   bytes (+ bytes (length text)))
                             (funcall filter process text))
                   :command
                   (list "sh" "-c"
                         (format "for i in 1 2 3 4; do echo short; sleep 0.01; done
                                  seq 1 10000000 | head -c %d" (* size 1024 1024)))
                   (and (equal kind "minder") '(:light t)))))
      (if (minder-process-p process)
          (while (minder-process-live-p process)
            (accept-process-output nil 1))
        (while (process-live-p process)
          (accept-process-output nil 1))
        (while (accept-process-output process 0)))
      (list (- (float-time) begin) (- (minder-bench--cpu) cpu) calls bytes))))

(defun minder-bench ()
  "Measure, and print a row for each run."
  (let ((kinds (minder-bench--words "KINDS" "minder nil"))
        (sizes (mapcar #'string-to-number (minder-bench--words "SIZES" "8 20"))))
    (minder-ensure-started)
    (princ "kind\tconnection\tfilter\tMiB\twall\tcpu\tcalls\tbytes\n")
    (dotimes (_ (string-to-number (or (getenv "ROUNDS") "5")))
      (dolist (connection '(pipe pty))
        (dolist (filter '("count" "insert" "slow"))
          (dolist (size sizes)
            (dolist (kind kinds)
              (princ (apply #'format "%s\t%s\t%s\t%d\t%.3f\t%.2f\t%d\t%d\n"
                            kind connection filter size
                            (minder-bench--run kind connection filter size))))))))))

(provide 'minder-bench)
;;; minder-bench.el ends here
