;;; minder-bench-many.el --- Many live children in one Emacs  -*- lexical-binding: t; -*-

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

;; Children are started until a number of them lives; then a wait for nothing is
;; measured.  At the end all have to write what is expected, and to exit with the
;; right status.

;;; Code:

(require 'minder-bench-support)

(cl-defstruct (minder-bench-child (:constructor minder-bench--make-child)
                                  (:copier nil))
  "A live child."
  (number nil :documentation "Its number, from 0.")
  (terminalp nil :documentation "Whether it has a pseudo-terminal.")
  (process nil :documentation "Its process.")
  (text "" :documentation "What it has written.")
  (endedp nil :documentation "Whether its sentinel was called."))

(defvar minder-bench--ready 0
  "How many children have written their first line.")
(defvar minder-bench--ended 0
  "How many children have ended.")

(defun minder-bench--start-child (kind number terminalp)
  "Start the child NUMBER by a process of KIND.
Non-nil TERMINALP gives it a pseudo-terminal."
  (let ((child (minder-bench--make-child :number number :terminalp terminalp)))
    (setf (minder-bench-child-process child)
          (minder-bench-start
           kind :name "child" :noquery t :coding 'utf-8-unix
           :connection-type (if terminalp 'pty 'pipe)
           :command (list "sh" "-c" "test -t 1 && tty=terminal || tty=pipe
echo ready $0 $tty; read answer; echo $answer; exit $(($0 % 100))"
                          (number-to-string number))
           :filter (lambda (_ text)
                     (when (string-empty-p (minder-bench-child-text child))
                       (setq minder-bench--ready (1+ minder-bench--ready)))
                     (setf (minder-bench-child-text child)
                           (concat (minder-bench-child-text child) text)))
           :sentinel (lambda (process _)
                       (unless (or (minder-bench-live-p process)
                                   (minder-bench-child-endedp child))
                         (setf (minder-bench-child-endedp child) t)
                         (setq minder-bench--ended (1+ minder-bench--ended))))))
    child))

(defun minder-bench--right-p (child)
  "Return whether CHILD wrote what it should, and has the right status."
  (let ((number (minder-bench-child-number child)))
    (and (equal (minder-bench-child-text child)
                (format "ready %d %s\ngo %d\n" number
                        (if (minder-bench-child-terminalp child) "terminal" "pipe")
                        number))
         (= (minder-bench-exit-status (minder-bench-child-process child))
            (% number 100)))))

(defun minder-bench--idle-wait ()
  "Return the median time of `accept-process-output' without output, in us."
  (let ((times nil))
    ;; What the last children caused must be over.
    (while (accept-process-output nil 0.1))
    (dotimes (_ 101)
      (let ((begin (float-time)))
        (dotimes (_ 20)
          (accept-process-output nil 0))
        (push (/ (- (float-time) begin) 20) times)))
    (* 1e6 (minder-bench-median times))))

(defun minder-bench-many (kind every counts most)
  "Start as many children as COUNTS say, by processes of KIND, and then MOST.
Every child whose number is a multiple of EVERY has a pseudo-terminal; 0 is
none.  Return the time of an idle wait for each of COUNTS."
  (minder-bench-warm kind)
  (let ((children nil)
        (live 0)
        (waits nil)
        (begin (float-time))
        (started nil)
        (fullp nil))
    (dolist (count (delete-dups (append counts (list most))))
      (while (and (not fullp) (< live count))
        (condition-case problem
            (progn
              (push (minder-bench--start-child
                     kind live (and (> every 0) (zerop (% live every))))
                    children)
              (setq live (1+ live)))
          (error
           (message "%d children: %s" live (error-message-string problem))
           (setq fullp t))))
      (minder-bench-wait (lambda () (= minder-bench--ready live)) 0.02)
      (when (and (not fullp) (memq count counts))
        (setq started (float-time))
        (push (cons (format "wait_%d_us" count) (minder-bench--idle-wait)) waits)
        ;; The time of the starts is without that of the waits.
        (setq begin (+ begin (- (float-time) started)))))
    (let ((start (- (float-time) begin))
          (memory (minder-bench-memory "VmRSS"))
          (end (float-time)))
      (dolist (child children)
        (minder-bench-send (minder-bench-child-process child)
                           (format "go %d\n" (minder-bench-child-number child))))
      (minder-bench-wait (lambda () (= minder-bench--ended live)) 0.02)
      `(,@(nreverse waits)
        ("live" . ,live)
        ("wrong" . ,(cl-count-if-not #'minder-bench--right-p children))
        ("start_us" . ,(/ (* 1e6 start) live))
        ("end_us" . ,(/ (* 1e6 (- (float-time) end)) live))
        ("rss_kib" . ,memory)))))


(provide 'minder-bench-many)
;;; minder-bench-many.el ends here
