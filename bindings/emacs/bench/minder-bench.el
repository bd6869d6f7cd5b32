;;; minder-bench.el --- Compares minder with processes of Emacs  -*- lexical-binding: t; -*-

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

;; The command "cargo bench-lab" starts Emacs for each sample:
;;
;;   Emacs -Q --batch -L DIRECTORY -l minder-bench -f minder-bench PROGRAM KIND ...
;;
;; The directory has these files and those of the package, compiled, and the
;; module.  A sample prints its numbers as lines "name,value".  The program `kinds'
;; prints the kinds of processes that work here.

;;; Code:

(require 'minder-bench-support)
(require 'minder-bench-output)
(require 'minder-bench-many)
(require 'minder-bench-bytes)

;; It loads eshell and compile.
(autoload 'minder-bench-library "minder-bench-library")

(defun minder-bench--works-p (kind)
  "Return whether a process of KIND can be started and heard."
  (condition-case problem
      (let ((text "")
            (donep nil))
        (minder-bench-prepare kind)
        (minder-bench-start kind :name "try" :command '("echo" "heard")
                            :connection-type 'pipe
                            :filter (lambda (_ part) (setq text (concat text part)))
                            :sentinel (lambda (&rest _) (setq donep t)))
        (minder-bench-wait (lambda () donep) 0.02)
        (equal text "heard\n"))
    (error (message "%s: %s" kind (error-message-string problem))
           nil)))

(defun minder-bench--kinds ()
  "Print the kinds that work here."
  (dolist (kind '(stock stock-nil native light relay))
    (when (minder-bench--works-p kind)
      (princ (format "%s\n" kind)))))

(defun minder-bench--numbers (words)
  "Return the numbers of WORDS, which are separated by commas."
  (mapcar #'string-to-number (split-string words "," t)))

(defun minder-bench--run (program kind words)
  "Return the rows of PROGRAM for processes of KIND, with WORDS for the rest."
  (let ((numbers (mapcar #'string-to-number words)))
    (pcase program
      ("output" (minder-bench-output kind (intern (nth 0 words)) (nth 1 words)
                                     (nth 2 numbers) (nth 3 numbers)))
      ("burst" (minder-bench-burst kind (intern (nth 0 words)) (nth 1 numbers)))
      ("library" (minder-bench-library kind (nth 0 words) (nth 1 numbers)
                                       (nth 2 numbers)))
      ("many" (minder-bench-many kind (nth 0 numbers)
                                 (minder-bench--numbers (nth 1 words))
                                 (nth 2 numbers)))
      ("bytes" (minder-bench-bytes kind (intern (nth 0 words)) (nth 1 words)
                                   (nth 2 numbers) (nth 3 numbers)))
      (_ (error "Unknown program: %s" program)))))

(defun minder-bench ()
  "Run the program that the command line names, and print its numbers."
  (let ((words command-line-args-left))
    (setq command-line-args-left nil)
    (if (equal words '("kinds"))
        (minder-bench--kinds)
      (pcase-dolist (`(,name . ,value)
                     (minder-bench--run (nth 0 words) (intern (nth 1 words))
                                        (nthcdr 2 words)))
        (princ (format "%s,%s\n" name value))))))

(provide 'minder-bench)
;;; minder-bench.el ends here
