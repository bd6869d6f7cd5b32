;;; minder-list.el --- A list of processes, and a report  -*- lexical-binding: t; -*-

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

;; `minder-list' shows the processes of minder in a table.  `minder-doctor' shows
;; what works on this machine.

;;; Code:

(require 'minder)
(require 'tabulated-list)

(declare-function minder--version "ext:minder-module")
(declare-function minder--statistics "ext:minder-module")

(defvar minder-list-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "k" #'minder-list-kill)
    (define-key map "t" #'minder-list-terminate)
    (define-key map "s" #'minder-list-stop-or-continue)
    (define-key map (kbd "RET") #'minder-list-show-output)
    map)
  "The keys of `minder-list-mode'.")

(define-derived-mode minder-list-mode tabulated-list-mode "Minder"
  "A table of the processes of minder."
  (setq tabulated-list-format
        (vector '("Name" 20 t)
                '("State" 6 t)
                (minder-list--column "Pid" 8 2)
                (minder-list--column "CPU" 7 3)
                (minder-list--column "Memory" 8 4)
                (minder-list--column "Output" 8 5)
                (minder-list--column "Age" 7 6)
                '("Command" 0 nil))
        tabulated-list-entries #'minder-list--entries)
  (tabulated-list-init-header))

(defun minder-list--column (name width number)
  "Return the column NUMBER, with NAME and WIDTH, that is sorted by numbers."
  (list name width
        (lambda (one other)
          (< (minder-list--number one number) (minder-list--number other number)))
        :right-align t))

(defun minder-list--number (row column)
  "Return the number in COLUMN of ROW."
  (or (get-text-property 0 'minder-number (aref (cadr row) column)) -1))

(defun minder-list--cell (text number)
  "Return TEXT as a cell with NUMBER as its place."
  (propertize (if number text "-") 'minder-number number))

(defun minder-list--entries ()
  "Return the rows of the table."
  (mapcar #'minder-list--row (minder--all)))

(defun minder-list--row (process)
  "Return the row of PROCESS."
  (let* ((pid (minder-process-id process))
         (system (process-attributes pid))
         (cpu (alist-get 'time system))
         (memory (alist-get 'rss system))
         (bytes (minder-process-bytes process))
         (age (float-time (time-since (minder-process-started process)))))
    (list process
          (vector (minder-process-name process)
                  (symbol-name (minder-process-status process))
                  (minder-list--cell (number-to-string pid) pid)
                  (minder-list--cell (format "%.1f s" (float-time (or cpu 0)))
                                     (and cpu (float-time cpu)))
                  (minder-list--cell (file-size-human-readable (* 1024 (or memory 0)))
                                     memory)
                  (minder-list--cell (file-size-human-readable bytes) bytes)
                  (minder-list--cell (format "%d s" age) age)
                  (mapconcat #'identity (minder-process-command process) " ")))))

;;;###autoload
(defun minder-list ()
  "Show the processes of minder, light and native, in a table."
  (interactive)
  (let ((buffer (get-buffer-create "*minder*")))
    (with-current-buffer buffer
      (minder-list-mode)
      (tabulated-list-print))
    (pop-to-buffer buffer)))

(defun minder-list--process ()
  "Return the process of the current line."
  (or (tabulated-list-get-id)
      (user-error "There is no process on this line")))

(defun minder-list-kill ()
  "Kill the process of this line with everything that it started."
  (interactive)
  (let ((process (minder-list--process)))
    (minder-kill-process process)
    (minder-list--after process)))

(defun minder-list-terminate ()
  "Ask the process of this line to exit, and kill it after a moment."
  (interactive)
  (let ((process (minder-list--process)))
    (minder-terminate-process process)
    (minder-list--after process)))

(defun minder-list--after (process)
  "Wait for the end of PROCESS for a moment, and show the table again."
  (minder-accept-output process 0.3)
  (revert-buffer))

(defun minder-list-stop-or-continue ()
  "Suspend the process of this line, or resume it."
  (interactive)
  (let ((process (minder-list--process)))
    (if (eq (minder-process-status process) 'stop)
        (minder-continue-process process)
      (minder-stop-process process)))
  (revert-buffer))

(defun minder-list-show-output ()
  "Show the buffer of the process of this line."
  (interactive)
  (let ((buffer (minder--output-buffer (minder-list--process))))
    (unless (buffer-live-p buffer)
      (user-error "The process of this line has no buffer"))
    (pop-to-buffer buffer)))

(defun minder-doctor--lines ()
  "Return the lines of the report."
  (let* ((module (minder--file (concat "minder-module" (or module-file-suffix ""))))
         (guardian (minder--file "minder-guardian"))
         (problem (condition-case problem
                      (progn (minder-ensure-started) nil)
                    (error (error-message-string problem))))
         (numbers (and (null problem) (minder--statistics))))
    (list
     (format "Emacs: %s, modules %s" emacs-version
             (if module-file-suffix "work" "do not work"))
     (format "module: %s" (or module "is not in the directory of minder.el"))
     (format "guardian: %s"
             (cond ((null guardian) "is missing; kill -9 of Emacs leaves children")
                   ((nth 2 numbers) (format "%s, process %d" guardian (nth 2 numbers)))
                   (t guardian)))
     (if problem (format "problem: %s" problem)
       (format "version: %s" (minder--version)))
     (format "children: %d, bytes that wait: %d"
             (or (nth 0 numbers) 0) (or (nth 1 numbers) 0))
     (format "last error: %s" (or (nth 3 numbers) "none")))))

;;;###autoload
(defun minder-doctor ()
  "Show whether the module works, and its state."
  (interactive)
  (let ((lines (minder-doctor--lines)))
    (if noninteractive
        (dolist (line lines) (message "%s" line))
      (with-help-window "*minder doctor*"
        (dolist (line lines) (princ line) (terpri))))))

(provide 'minder-list)
;;; minder-list.el ends here
