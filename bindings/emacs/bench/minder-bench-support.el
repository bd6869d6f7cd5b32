;;; minder-bench-support.el --- Kinds of processes, clocks and children  -*- lexical-binding: t; -*-

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

;; What the programs in this directory share: how a process of each kind is
;; started, what a run costs, and the children whose output is read.
;;
;; The kinds are `stock' (a process of Emacs with its default settings),
;; `stock-nil' (with `process-adaptive-read-buffering' nil), `native' and `light'
;; (of minder), and `relay' (a process of Emacs whose child is `minder relay').

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(declare-function minder-ensure-started "minder")
(declare-function minder-make-process "minder")
(declare-function minder--make-relay "minder-relay")
(declare-function minder-default-filter "minder-dispatch")
(declare-function minder-delete-process "minder-process")
(declare-function minder-process-exit-status "minder-process")
(declare-function minder-process-live-p "minder-process")
(declare-function minder-process-send-string "minder-process")
(defvar minder-program)

(defconst minder-bench--directory (file-name-directory load-file-name)
  "The directory of this file, with the package and the command minder.")

(defconst minder-bench-seconds 500
  "How long the children of one run may take.")

(defun minder-bench-prepare (kind)
  "Load what processes of KIND need."
  (setq process-adaptive-read-buffering (not (eq kind 'stock-nil)))
  (pcase kind
    ((or 'native 'light)
     (require 'minder)
     (minder-ensure-started))
    ('relay
     (require 'minder)
     (require 'minder-relay)
     (setq minder-program (expand-file-name "minder" minder-bench--directory)
           ;; As its documentation recommends.
           read-process-output-max (* 1024 1024)))))

(defun minder-bench-start (kind &rest plist)
  "Start a process of KIND with the keywords of PLIST."
  (pcase kind
    ('native (apply #'minder-make-process plist))
    ('light (apply #'minder-make-process :light t plist))
    ('relay (minder--make-relay plist))
    (_ (apply #'make-process plist))))

(defun minder-bench-warm (kind)
  "Prepare processes of KIND, and run one.
What only the first process of an Emacs costs is not measured."
  (minder-bench-prepare kind)
  (minder-bench-cost
   (lambda (done)
     (minder-bench-start kind :name "warm" :command '("true") :connection-type 'pipe
                         :sentinel (lambda (&rest _) (funcall done))))))

(defun minder-bench-live-p (process)
  "Return whether PROCESS lives."
  (if (processp process)
      (process-live-p process)
    (minder-process-live-p process)))

(defun minder-bench-exit-status (process)
  "Return the exit status of PROCESS."
  (if (processp process)
      (process-exit-status process)
    (minder-process-exit-status process)))

(defun minder-bench-send (process text)
  "Send TEXT to PROCESS."
  (if (processp process)
      (process-send-string process text)
    (minder-process-send-string process text)))

(defun minder-bench-delete (process)
  "Delete PROCESS."
  (if (processp process)
      (delete-process process)
    (minder-delete-process process)))

(defun minder-bench-insert (process text)
  "Insert TEXT as the default filter of PROCESS does."
  (if (processp process)
      (internal-default-process-filter process text)
    (minder-default-filter process text)))

(defun minder-bench-wait (donep pause)
  "Run Emacs until the result of the function DONEP is non-nil.
It is called after each wait, of at most PAUSE seconds: a sentinel alone does
not end a wait.  Emacs waits for all processes, as it does for the next key: a
wait for one process skips the delay of `process-adaptive-read-buffering'."
  (let ((deadline (+ (float-time) minder-bench-seconds)))
    (while (not (funcall donep))
      (when (> (float-time) deadline)
        (error "The children did not end in %d s" minder-bench-seconds))
      (accept-process-output nil pause))))

(defun minder-bench-cpu ()
  "Return the processor time of this Emacs and its threads, in seconds.
That of its children is not in it."
  (float-time (get-internal-run-time)))

(defun minder-bench-cost (function)
  "Call FUNCTION with a function that it has to call at the end.
Run Emacs until then.  Return the wall time and the processor time, as rows."
  (garbage-collect)
  (let* ((gc gc-elapsed)
         (rows nil)
         (cpu (minder-bench-cpu))
         (wall (float-time)))
    (funcall function
             (lambda ()
               (unless rows
                 (setq rows `(("wall_s" . ,(- (float-time) wall))
                              ("cpu_s" . ,(- (minder-bench-cpu) cpu))
                              ("gc_s" . ,(- gc-elapsed gc)))))))
    ;; A short pause would cut the delays of Emacs short.
    (minder-bench-wait (lambda () rows) 1)
    rows))

(defun minder-bench-memory (field)
  "Return FIELD of /proc/self/status in KiB."
  (with-temp-buffer
    (insert-file-contents "/proc/self/status")
    (if (re-search-forward (concat "^" field ":[ \t]*\\([0-9]+\\)") nil t)
        (string-to-number (match-string 1))
      0)))

(defun minder-bench-median (numbers)
  "Return the median of NUMBERS."
  (nth (/ (length numbers) 2) (sort (copy-sequence numbers) #'<)))

(defun minder-bench-lines (bytes)
  "Return a shell command that prints BYTES in lines of 80 characters.
No line is printed twice."
  (format "seq 100000000 999999999 | sed 's/$/ %s/' | head -c %d"
          (substring (apply #'concat (make-list 8 "a child writes ")) 0 69) bytes))

(defun minder-bench-file (bytes)
  "Return a new file with such lines, BYTES in all."
  (let ((file (make-temp-file "minder-bench-")))
    (call-process "sh" nil nil nil "-c"
                  (format "{ %s; } > %s 2>/dev/null" (minder-bench-lines bytes)
                          (shell-quote-argument file)))
    (add-hook 'kill-emacs-hook (lambda () (delete-file file)))
    file))

(defun minder-bench-script (file lines)
  "Return a new shell script that writes LINES short lines, and then FILE.
The pauses between the short lines make each of them one read."
  (let ((script (make-temp-file "minder-bench-" nil ".sh")))
    (with-temp-file script
      (dotimes (_ lines)
        (insert "echo short; sleep 0.01\n"))
      (insert (format "exec cat %s\n" (shell-quote-argument file))))
    (add-hook 'kill-emacs-hook (lambda () (delete-file script)))
    script))

(defun minder-bench-script-size (bytes lines)
  "Return the size of what is printed by a script of LINES and BYTES."
  (+ bytes (* 6 lines)))


(provide 'minder-bench-support)
;;; minder-bench-support.el ends here
