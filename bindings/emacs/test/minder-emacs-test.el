;;; minder-emacs-test.el --- Tests of light processes within Emacs  -*- lexical-binding: t; -*-

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

;; Many children, the module, the end of Emacs, and the commands.

;;; Code:

(require 'minder-test-support)

(declare-function minder--statistics "ext:minder-module")
(declare-function minder--version "ext:minder-module")

;;;; Many

(ert-deftest minder-test-2000-children ()
  (let ((right 0)
        (heard 0)
        processes)
    (dotimes (number 2000)
      (push (minder-make-process
             :name "many" :light t :noquery t :coding 'utf-8-unix
             :command (minder-test--sh "read x; echo $x; exit $1"
                                       (number-to-string (% number 200)))
             :plist (list 'number number)
             :filter (lambda (process text)
                       (when (equal text (format "n%d\n" (minder-process-get process 'number)))
                         (setq heard (1+ heard))))
             :sentinel (lambda (process _)
                         (when (= (minder-process-exit-status process)
                                  (% (minder-process-get process 'number) 200))
                           (setq right (1+ right)))))
            processes))
    (should (= (length (minder-process-list)) 2000))
    ;; Emacs still starts its own.
    (should (equal (shell-command-to-string "echo own") "own\n"))
    (let ((stock (start-process "own" nil "true")))
      (while (process-live-p stock)
        (accept-process-output stock 1))
      (should (= (process-exit-status stock) 0)))
    (dolist (process processes)
      (minder-process-send-string
       process (format "n%d\n" (minder-process-get process 'number))))
    (minder-test--until (lambda () (null (minder-process-list))))
    (should (equal (list heard right) '(2000 2000)))))

(ert-deftest minder-test-500-terminals ()
  (let ((right 0)
        processes)
    (dotimes (number 500)
      (push (minder-make-process
             :name "terminal" :light t :noquery t :connection-type 'pty
             :coding 'utf-8-unix :command (minder-test--sh "read x; echo got $x")
             :plist (list 'number number)
             :filter (lambda (process text)
                       (minder-process-put
                        process 'text (concat (minder-process-get process 'text) text)))
             :sentinel (lambda (process _)
                         (when (equal (minder-process-get process 'text)
                                      (format "got %d\n" (minder-process-get process 'number)))
                           (setq right (1+ right)))))
            processes))
    (dolist (process processes)
      (minder-process-send-string
       process (format "%d\n" (minder-process-get process 'number))))
    (minder-test--until (lambda () (null (minder-process-list))))
    (should (= right 500))))

;;;; Emacs

(ert-deftest minder-test-second-load-is-refused ()
  (minder-ensure-started)
  (let ((path (minder--file (concat "minder-module" module-file-suffix))))
    (should-error (module-load path) :type 'minder-error)
    (let ((copy (make-temp-file "minder-module" nil module-file-suffix)))
      (unwind-protect
          (progn
            (copy-file path copy t)
            (should-error (module-load copy) :type 'minder-error))
        (delete-file copy)))
    (should (stringp (minder--version)))))

(ert-deftest minder-test-kill-9-of-emacs-ends-its-children ()
  (should (minder--file "minder-guardian"))
  (let* ((emacs (minder-test--emacs
                 '(let ((pids nil))
                    (dotimes (_ 3)
                      (push (minder-process-id
                             (minder-make-process :name "sleep" :light t
                                                  :command '("sleep" "600")))
                            pids))
                    (message "%s" (mapconcat #'number-to-string pids " "))
                    (sleep-for 600))))
         pids)
    (minder-test--until (lambda () (string-suffix-p "\n" (minder-test--text emacs))))
    (setq pids (mapcar #'string-to-number (split-string (minder-test--text emacs))))
    (should (= (length pids) 3))
    (should (cl-notany #'minder-test--gone-p pids))
    (minder-signal-process emacs 9)
    (minder-test--finish emacs)
    (minder-test--until (lambda () (cl-every #'minder-test--gone-p pids)))))

(ert-deftest minder-test-leaving-emacs-ends-its-children ()
  (let* ((emacs (minder-test--emacs
                 '(princ (minder-process-id
                          (minder-make-process :name "sleep" :light t
                                               :command '("sleep" "600"))))))
         pid)
    (minder-test--finish emacs)
    (should (= (minder-process-exit-status emacs) 0))
    (setq pid (string-to-number (minder-test--text emacs)))
    (should (> pid 0))
    (minder-test--until (lambda () (minder-test--gone-p pid)))))

(ert-deftest minder-test-leaving-emacs-with-a-last-word ()
  (let ((emacs (minder-test--emacs
                '(let (process)
                   (add-hook 'kill-emacs-hook
                             (lambda ()
                               (process-send-string process "last\n")
                               (process-send-eof process)
                               (while (process-live-p process)
                                 (accept-process-output process 1))))
                   (setq process (minder-make-process
                                  :name "cat" :command '("cat") :noquery t
                                  :filter (lambda (_ text) (princ text))))))))
    (minder-test--finish emacs)
    (should (equal (minder-test--text emacs) "last\n"))))

(ert-deftest minder-test-questions ()
  (let* ((buffer (generate-new-buffer "minder-test"))
         (process (minder-make-process :name "sleep" :light t :buffer buffer
                                       :command '("sleep" "600") :sentinel #'ignore))
         (asked nil))
    (with-current-buffer buffer
      (text-mode))
    (cl-letf (((symbol-function 'yes-or-no-p) (lambda (text) (push text asked) nil)))
      (should-not (minder--kill-emacs-p))
      (should-not (kill-buffer buffer))
      (should (= (length asked) 2))
      (let ((confirm-kill-processes nil))
        (should (minder--kill-emacs-p)))
      (minder-set-process-query-on-exit-flag process nil)
      (should (minder--kill-emacs-p))
      (should (kill-buffer buffer))
      (should (= (length asked) 2)))
    (should-not (minder-process-live-p process))))

(ert-deftest minder-test-list-and-doctor ()
  (let ((process (minder-test--start '("cat"))))
    (save-window-excursion
      (minder-list)
      (should (string-search "cat" (buffer-string)))
      (goto-char (point-min))
      (minder-list-stop-or-continue)
      (should (eq (minder-process-status process) 'stop))
      (minder-list-stop-or-continue)
      (should (eq (minder-process-status process) 'run))
      (should-error (minder-list-show-output) :type 'user-error)
      (with-temp-buffer
        (minder-set-process-buffer process (current-buffer))
        (with-current-buffer "*minder*"
          (minder-list-show-output))
        (minder-set-process-buffer process nil))
      (minder-list-terminate)
      (minder-test--finish process)
      (should (= (minder-process-exit-status process) 15))
      (should-error (progn (revert-buffer) (minder-list-kill)) :type 'user-error)
      (kill-buffer)))
  (should (cl-find "version: " (minder-doctor--lines) :test #'string-prefix-p)))

(ert-deftest minder-test-compile-command ()
  (let* ((directory (make-temp-file "minder test" t))
         (default-directory (file-name-as-directory directory))
         (target (expand-file-name "a b" directory)))
    (unwind-protect
        (progn
          (make-directory "bin")
          (make-directory "target/release" t)
          (with-temp-file "bin/cargo" (insert "#!/bin/sh\n"))
          (set-file-modes "bin/cargo" #o755)
          (with-temp-file "target/release/minder-guardian")
          (with-temp-file (concat "target/release/libminder_module" module-file-suffix))
          (let ((process-environment
                 (cons (concat "PATH=" (expand-file-name "bin") ":" (getenv "PATH"))
                       process-environment)))
            (should (= (call-process shell-file-name nil nil nil "-c"
                                     (minder--compile-command target))
                       0)))
          (should (equal (directory-files target nil "minder")
                         (list "minder-guardian"
                               (concat "minder-module" module-file-suffix)))))
      (delete-directory directory t))))

(ert-deftest minder-test-stop-and-start-again ()
  (let ((process (minder-test--start '("sleep" "600"))))
    (minder-stop)
    (should (minder-test--gone-p (minder-process-id process)))
    (should (equal (minder-process-get process 'end) "killed\n"))
    (should-not (minder-process-list))
    (should (equal (minder-test--text (minder-test--run '("echo" "again"))) "again\n"))))

(provide 'minder-emacs-test)
;;; minder-emacs-test.el ends here
