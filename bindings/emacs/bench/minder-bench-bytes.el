;;; minder-bench-bytes.el --- Whether every byte of a child comes  -*- lexical-binding: t; -*-

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

;; The same child is run many times, and the digest of what came is compared with
;; that of the file.  The reader `sentinel' waits until the sentinel is called.
;; The reader `live' stops as soon as the process does not live, as much code does.

;;; Code:

(require 'minder-bench-support)

(defun minder-bench--read-file (kind connection reader file)
  "Return what a child that writes FILE wrote, by a process of KIND.
CONNECTION is the type of the connection, READER is `sentinel' or `live'."
  (let* ((parts nil)
         (donep nil)
         (process (minder-bench-start
                   kind :name "bytes" :connection-type connection :noquery t
                   :coding 'no-conversion :command (list "cat" file)
                   :sentinel (lambda (&rest _) (setq donep t))
                   :filter (lambda (_ text) (push text parts)))))
    (minder-bench-wait (if (equal reader "live")
                           (lambda () (not (minder-bench-live-p process)))
                         (lambda () donep))
                       0.02)
    ;; What comes later does not count.
    (prog1 (apply #'concat (nreverse parts))
      (minder-bench-delete process))))

(defun minder-bench-bytes (kind connection reader bytes runs)
  "Run a child with BYTES by a process of KIND, again and again.
Return in how many of RUNS something was missing.  CONNECTION is the type of
the connection, READER is `sentinel' or `live'."
  (minder-bench-prepare kind)
  (let* ((file (minder-bench-file bytes))
         (expected (with-temp-buffer
                     (set-buffer-multibyte nil)
                     (insert-file-contents-literally file)
                     (md5 (current-buffer) nil nil 'no-conversion)))
         (failures 0)
         (missing 0))
    (dotimes (_ runs)
      (let ((text (minder-bench--read-file kind connection reader file)))
        (unless (equal (md5 text nil nil 'no-conversion) expected)
          (setq failures (1+ failures)
                missing (+ missing (- bytes (length text)))))))
    `(("runs" . ,runs) ("failures" . ,failures) ("missing" . ,missing))))


(provide 'minder-bench-bytes)
;;; minder-bench-bytes.el ends here
