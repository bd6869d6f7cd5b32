;;; minder-bench-library.el --- Cost of output in eshell and compile  -*- lexical-binding: t; -*-

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

;; The libraries are those of Emacs, and so are their filters.  An advice counts
;; the calls of the filter and what it gets.

;;; Code:

(require 'minder-bench-support)
(require 'compile)
(require 'eshell)
(require 'esh-mode)

(declare-function minder-mode "minder-mode")
(declare-function minder--make-relay "minder-relay")
(defvar minder-mode-carried)

(defun minder-bench--eshell (command done)
  "Run COMMAND in an eshell, and call DONE after the next prompt."
  (switch-to-buffer "*eshell*")
  (unless (derived-mode-p 'eshell-mode)
    (eshell-mode))
  (add-hook 'eshell-post-command-hook done t t)
  (goto-char (point-max))
  (insert command)
  (eshell-send-input))

(defun minder-bench--compile (command done)
  "Run COMMAND by `compile', and call DONE when it has ended."
  (setq compilation-finish-functions (list (lambda (&rest _) (funcall done))))
  (compile command))

(defun minder-bench--around-make-process (original &rest plist)
  "Start a process with PLIST by `minder relay'; ORIGINAL is `make-process'."
  (advice-remove 'make-process #'minder-bench--around-make-process)
  (unwind-protect
      (if (plist-get plist :command)
          (minder--make-relay plist)
        (apply original plist))
    (advice-add 'make-process :around #'minder-bench--around-make-process)))

(defun minder-bench--carry (kind)
  "Let libraries start processes of KIND."
  (pcase kind
    ('native (require 'minder-mode)
             (minder-mode 1))
    ('relay (advice-add 'make-process :around #'minder-bench--around-make-process))))

(defun minder-bench-library (kind library bytes lines)
  "Run a child with LINES short lines and BYTES in LIBRARY, by a process of KIND."
  (minder-bench-prepare kind)
  (minder-bench--carry kind)
  (let* ((eshellp (equal library "eshell"))
         (run (if eshellp #'minder-bench--eshell #'minder-bench--compile))
         (filter (if eshellp 'eshell-output-filter 'compilation-filter))
         (command (concat "sh " (minder-bench-script (minder-bench-file bytes) lines)))
         (calls 0)
         (count 0))
    ;; What is loaded and compiled by the first command is not measured.
    (minder-bench-cost
     (lambda (done)
       (funcall run (concat "sh " (minder-bench-script null-device 1)) done)))
    (advice-add filter :before (lambda (process text)
                                 ;; The prompt of eshell comes from no process.
                                 (when process
                                   (setq calls (1+ calls)
                                         count (+ count (length text))))))
    (let ((cost (minder-bench-cost (lambda (done) (funcall run command done)))))
      (when (and (eq kind 'native) (< minder-mode-carried 2))
        (error "The processes were not started by minder"))
      `(,@cost
        ("calls" . ,calls)
        ("missing" . ,(- (minder-bench-script-size bytes lines) count))))))


(provide 'minder-bench-library)
;;; minder-bench-library.el ends here
