;;; minder-bench-output.el --- Cost of the output of one child  -*- lexical-binding: t; -*-

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

;; `output' reads the output of one child with one of three filters.  `burst'
;; reads 256 MiB, and watches the memory of Emacs and a timer meanwhile.

;;; Code:

(require 'minder-bench-support)

(defun minder-bench--spin (count)
  "Count to COUNT, without any allocation."
  (let ((n 0))
    (while (< n count)
      (setq n (1+ n)))))

(defun minder-bench--calibrate (seconds)
  "Return how far `minder-bench--spin' counts in SECONDS of processor time."
  (let ((best 0)
        (count 1000000))
    (dotimes (_ 5)
      (let ((begin (minder-bench-cpu)))
        (minder-bench--spin count)
        (setq best (max best (/ count (- (minder-bench-cpu) begin))))))
    (round (* best seconds))))

(defun minder-bench--filter (name)
  "Return the filter NAME: `trivial', `insert' or `slow'."
  (pcase name
    ("trivial" #'ignore)
    ("insert" #'minder-bench-insert)
    ("slow" (let ((count (minder-bench--calibrate 0.001)))
              (lambda (&rest _) (minder-bench--spin count))))))

(defun minder-bench-output (kind connection filter bytes lines)
  "Read BYTES after LINES short lines by a process of KIND with FILTER.
CONNECTION is the type of the connection."
  (minder-bench-warm kind)
  (let* ((calls 0)
         (count 0)
         (function (minder-bench--filter filter))
         (script (minder-bench-script (minder-bench-file bytes) lines))
         (cost (with-temp-buffer
                 (minder-bench-cost
                  (lambda (done)
                    (minder-bench-start
                     kind :name "bench" :buffer (current-buffer)
                     :connection-type connection :coding 'utf-8-unix
                     :command (list "sh" script)
                     :sentinel (lambda (&rest _) (funcall done))
                     :filter (lambda (process text)
                               (setq calls (1+ calls)
                                     count (+ count (length text)))
                               (funcall function process text))))))))
    `(,@cost
      ("calls" . ,calls)
      ("missing" . ,(- (minder-bench-script-size bytes lines) count)))))

(defun minder-bench-burst (kind connection bytes)
  "Count and drop BYTES from a process of KIND with CONNECTION.
A timer of 100 ms notes how late it is."
  (minder-bench-warm kind)
  (garbage-collect)
  (let* ((count 0)
         (calls 0)
         (late 0)
         (last (float-time))
         (tick (lambda ()
                 (let ((now (float-time)))
                   (setq late (max late (- now last 0.1))
                         last now))))
         (before (minder-bench-memory "VmRSS"))
         (timer (run-at-time 0.1 0.1 tick))
         (cost (minder-bench-cost
                (lambda (done)
                  (setq last (float-time))
                  (minder-bench-start
                   kind :name "burst" :connection-type connection :coding 'no-conversion
                   :command (list "sh" "-c" (format "yes %s | head -c %d"
                                                    (make-string 79 ?y) bytes))
                   :sentinel (lambda (&rest _)
                               (funcall tick)
                               (funcall done))
                   :filter (lambda (_ text)
                             (setq calls (1+ calls)
                                   count (+ count (length text)))))))))
    (cancel-timer timer)
    `(,@cost
      ("calls" . ,calls)
      ("missing" . ,(- bytes count))
      ("late_ms" . ,(* 1000.0 late))
      ("peak_kib" . ,(- (minder-bench-memory "VmHWM") before)))))


(provide 'minder-bench-output)
;;; minder-bench-output.el ends here
