;;; minder-native-test.el --- Tests of native processes and of the mode  -*- lexical-binding: t; -*-

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

;; What other libraries do with process objects, and the libraries themselves.

;;; Code:

(require 'minder-test-support)
(require 'minder-mode)
(require 'compile)
(require 'shell)
(require 'eshell)
(require 'esh-mode)
(require 'em-hist)

(defun minder-test--native (command &rest args)
  "Start COMMAND as a native process with the keywords ARGS.
Output is collected in the property `text'."
  (apply #'minder-make-process
         (append args
                 (list :name "test" :command command :noquery t
                       :filter (lambda (process text)
                                 (process-put process 'text
                                              (concat (process-get process 'text) text)))
                       :sentinel (lambda (process text) (process-put process 'end text))))))

(defun minder-test--native-text (process)
  "Return what PROCESS has written."
  (or (process-get process 'text) ""))

(defun minder-test--end (&rest processes)
  "Wait until PROCESSES, process objects, have ended."
  (dolist (process processes)
    (let ((deadline (+ (float-time) minder-test-seconds)))
      (while (and (process-live-p process) (< (float-time) deadline))
        (accept-process-output process 0.2))
      (should-not (process-live-p process)))))

(defun minder-test--eventually (condition)
  "Wait for a non-nil value of CONDITION, as a loop of commands would."
  (let ((deadline (+ (float-time) minder-test-seconds)))
    (while (and (not (funcall condition)) (< (float-time) deadline))
      (accept-process-output nil 0.1))
    (should (funcall condition))))

;;;; The object

(ert-deftest minder-test-native-is-a-process ()
  (with-temp-buffer
    (let* ((buffer (current-buffer))
           (process (minder-make-process :name "cat" :buffer buffer :command '("cat")
                                         :plist (list 'a 1))))
      (should (processp process))
      (should-not (minder-process-p process))
      (should (eq (get-buffer-process buffer) process))
      (should (eq (get-process (process-name process)) process))
      (should (memq process (process-list)))
      (should-not (memq process (minder-process-list)))
      (should (eq (process-status process) 'run))
      (should (eq (process-status buffer) 'run))
      (should (eq (process-type process) 'real))
      (should (eq (process-contact process) t))
      (should (equal (process-command process) '("cat")))
      (should (alist-get 'state (process-attributes (process-id process))))
      (should (= (process-exit-status process) 0))
      (should (= (process-get process 'a) 1))
      (should (process-query-on-exit-flag process))
      (should (eq (process-sentinel process) #'internal-default-process-sentinel))
      (should (eq (process-filter process) #'internal-default-process-filter))
      (set-process-query-on-exit-flag process nil)
      (insert "text\n")
      (process-send-region process (point-min) (point-max))
      (process-send-eof process)
      (minder-test--end process)
      (should (eq (process-status process) 'exit))
      (should-not (memq process (process-list)))
      (should-not (get-buffer-process buffer))
      ;; The mark was before what was inserted.
      (should (equal (buffer-string) "text\n\nProcess cat finished\ntext\n")))))

(ert-deftest minder-test-native-of-the-current-buffer ()
  (with-temp-buffer
    (let ((process (minder-test--native '("cat") :buffer (current-buffer))))
      (process-send-string nil "text")
      (process-send-eof)
      (minder-test--end process)
      (should (equal (minder-test--native-text process) "text")))))

(ert-deftest minder-test-native-sentinel-is-changed ()
  (let* (seen
         (process (minder-test--native '("cat"))))
    (add-function :before (process-sentinel process) (lambda (&rest args) (push args seen)))
    (set-process-filter process nil)
    (kill-process process)
    (minder-test--end process)
    (should (equal seen (list (list process "killed\n"))))
    (should (equal (process-get process 'end) "killed\n"))))

(ert-deftest minder-test-native-kill-buffer ()
  (let* ((buffer (generate-new-buffer "minder-test"))
         (process (minder-test--native '("sleep" "600") :buffer buffer))
         (pid (process-id process)))
    (kill-buffer buffer)
    (should-not (memq process (process-list)))
    (minder-test--end process)
    (should (equal (process-get process 'end) "hangup\n"))
    (should (minder-test--gone-p pid))))

(ert-deftest minder-test-native-delete ()
  (let ((process (minder-test--native '("sleep" "600"))))
    (delete-process process)
    (should (eq (process-status process) 'signal))
    (should (= (process-exit-status process) 9))
    (should-not (memq process (process-list)))
    (should (equal (process-get process 'end) "killed\n"))
    (delete-process process)))

(ert-deftest minder-test-native-filter-t ()
  (let ((process (minder-test--native (minder-test--sh "echo one; read x; echo two")
                                      :filter t)))
    (should-not (accept-process-output process 0.2))
    (set-process-filter process (lambda (process text) (process-put process 'text text)))
    (minder-test--eventually (lambda () (process-get process 'text)))
    (should (equal (minder-test--native-text process) "one\n"))
    (set-process-filter process t)
    (process-send-string process "\n")
    (accept-process-output nil 0.2)
    (should (process-live-p process))
    (set-process-filter process (lambda (process text) (process-put process 'text text)))
    (minder-test--end process)
    (should (equal (minder-test--native-text process) "two\n"))))

(ert-deftest minder-test-filter-t-holds-back-a-child ()
  (let ((process (minder-test--start '("yes") :coding 'binary :filter t))
        (other (minder-test--run '("echo" "text"))))
    (should (equal (minder-test--text other) "text\n"))
    (should-not (minder-accept-output process 0.2))
    (should (<= (nth 1 (minder--statistics)) (* 3 1024 1024)))
    (minder-delete-process process)))

(ert-deftest minder-test-just-this-one ()
  (let ((process (minder-test--native (minder-test--sh "read x; echo text; read x")))
        (other (minder-test--native '("yes"))))
    (minder-test--eventually (lambda () (process-get other 'text)))
    (let ((before (length (minder-test--native-text other))))
      (should-not (accept-process-output process 0.2 nil t))
      (process-send-string process "\n")
      (should (accept-process-output process 10 nil 1))
      (should (equal (minder-test--native-text process) "text\n"))
      (should (= (length (minder-test--native-text other)) before))
      (minder-test--eventually
       (lambda () (< before (length (minder-test--native-text other))))))
    (delete-process other)
    (delete-process process)))

(ert-deftest minder-test-native-coding-is-changed ()
  (let ((process (minder-test--native
                  (minder-test--sh "read x; printf '\\344\\n'; read x; echo \"$x\" | od -An -tx1")
                  :coding 'utf-8-unix)))
    (set-process-coding-system process 'latin-1-unix 'latin-1-unix)
    (should (equal (process-coding-system process) '(latin-1-unix . latin-1-unix)))
    (process-send-string process "\n")
    (minder-test--eventually (lambda () (process-get process 'text)))
    (process-send-string process "\u00e4\n")
    (minder-test--end process)
    (should (equal (minder-test--native-text process) "\u00e4\n e4 0a\n"))))

(ert-deftest minder-test-native-stderr ()
  (with-temp-buffer
    (let* ((stderr (current-buffer))
           (process (minder-test--native
                     (minder-test--sh "echo err >&2; echo out; read x; exit 2") :stderr stderr))
           (other (get-buffer-process stderr)))
      (should (processp other))
      (should (eq (process-status other) 'open))
      (should (eq (process-type other) 'pipe))
      (minder-test--eventually (lambda () (equal (buffer-string) "err\n")))
      (process-send-eof process)
      (minder-test--end process)
      (should (equal (minder-test--native-text process) "out\n"))
      (should (eq (process-status other) 'closed))
      (should-not (get-buffer-process stderr)))))

(ert-deftest minder-test-native-stderr-to-a-pipe-process ()
  (let* (text end
              (pipe (make-pipe-process :name "err" :noquery t
                                       :filter (lambda (_ part) (setq text (concat text part)))
                                       :sentinel (lambda (_ part) (setq end part))))
              (process (minder-test--native (minder-test--sh "echo err >&2") :stderr pipe)))
    (minder-test--end process)
    (should (equal text "err\n"))
    (should (equal end "finished\n"))
    (should-not (process-live-p pipe))))

(ert-deftest minder-test-native-terminal ()
  (let ((process (minder-test--native
                  (minder-test--sh "trap 'echo int' INT; tty; while :; do read x && stty size; done")
                  :connection-type 'pty)))
    (minder-test--eventually (lambda () (string-search "\n" (minder-test--native-text process))))
    (should (equal (concat (process-tty-name process) "\n")
                   (minder-test--native-text process)))
    (should-not (process-running-child-p process))
    (should (set-process-window-size process 50 132))
    (process-send-string process "\n")
    (minder-test--eventually
     (lambda () (string-search "50 132\n" (minder-test--native-text process))))
    (interrupt-process process t)
    (minder-test--eventually
     (lambda () (string-search "int\n" (minder-test--native-text process))))
    (delete-process process)))

(ert-deftest minder-test-native-stop-and-continue ()
  (let ((process (minder-test--native '("cat"))))
    (stop-process process)
    (should (eq (process-status process) 'stop))
    (process-send-string process "text")
    (should-not (accept-process-output process 0.1))
    (continue-process process)
    (minder-test--eventually (lambda () (process-get process 'text)))
    (should (= (signal-process process 'SIGTERM) 0))
    (minder-test--end process)
    (should (equal (process-get process 'end) "terminated\n"))))

(ert-deftest minder-test-native-is-collected ()
  (let ((before (hash-table-count minder--carriers)))
    ;; `should' would keep the objects.
    (dotimes (_ 50)
      (let ((process (minder-test--native '("true"))))
        (while (process-live-p process)
          (accept-process-output process 1))))
    (garbage-collect)
    (should (< (hash-table-count minder--carriers) (+ before 25)))))

(ert-deftest minder-test-native-error-leaves-nothing ()
  (let ((before (process-list)))
    (should-error (minder-test--native '("no-such-program-of-minder")) :type 'file-missing)
    (should-error (minder-test--native '("true") :coding 'no-such-coding))
    (should (equal (process-list) before))))

(ert-deftest minder-test-native-without-a-descriptor ()
  ;; Another Emacs, which has no descriptor left after it.
  (let* ((form '(let* ((text "")
                       (all (let (made)
                              (dotimes (n 940)
                                (push (minder-make-process
                                       :name (format "test %d" n) :noquery t :command '("cat")
                                       :filter (lambda (_ part) (setq text (concat text part))))
                                      made))
                              made)))
                  (dolist (process all)
                    (process-send-string process "x"))
                  (while (< (length text) 940)
                    (accept-process-output nil 1))
                  (princ (format "%d " (length (process-list))))
                  (mapc #'delete-process (seq-take all 20))
                  (mapc #'process-send-eof (seq-drop all 20))
                  (while (cl-some #'process-live-p all)
                    (accept-process-output nil 1))
                  (princ (format "%d " (length (process-list))))
                  (princ (shell-command-to-string "printf end"))))
         (process (minder-test--emacs form)))
    (minder-test--finish process)
    (should (equal (minder-test--text process) "941 1 end"))))

;;;; The libraries

(defmacro minder-test--with-mode (&rest body)
  "Run BODY with `minder-mode'; fail unless it has started a process."
  `(let ((before minder-mode-carried))
     (minder-mode 1)
     (unwind-protect
         (progn ,@body
                (should (< before minder-mode-carried)))
       (minder-mode -1))))

(ert-deftest minder-test-mode-compile ()
  (minder-test--with-mode
   (let* ((compilation-finish-functions nil)
          (finished nil)
          (default-directory temporary-file-directory)
          (buffer (save-window-excursion
                    (compile "echo 'file.c:3: error: text'; exit 2"))))
     (with-current-buffer buffer
       (add-hook 'compilation-finish-functions (lambda (_ text) (setq finished text)) nil t)
       (minder-test--eventually (lambda () finished))
       (should (equal finished "exited abnormally with code 2\n"))
       (should (string-search "file.c:3: error: text\n" (buffer-string)))
       (should (string-search "exited abnormally with code 2" (buffer-string))))
     (kill-buffer buffer))))

(defun minder-test--type (line)
  "Send LINE to the shell of the current buffer."
  (goto-char (point-max))
  (insert line)
  (comint-send-input))

(ert-deftest minder-test-mode-shell ()
  (minder-test--with-mode
   (let* ((explicit-shell-file-name "/bin/sh")
          (buffer (save-window-excursion (shell (generate-new-buffer "minder-shell")))))
     (with-current-buffer buffer
       (let ((process (get-buffer-process buffer)))
         (should (process-tty-name process))
         (set-process-query-on-exit-flag process nil)
         (minder-test--eventually (lambda () (< 1 (point-max))))
         (minder-test--type "echo $((40 + 2))")
         (minder-test--eventually (lambda () (string-search "\n42\n" (buffer-string))))
         (should (equal (minder--mode-line-status) "run"))
         (minder-test--type "sleep 600")
         (minder-test--eventually (lambda () (process-running-child-p process)))
         (comint-interrupt-subjob)
         (minder-test--eventually (lambda () (not (process-running-child-p process))))
         (minder-test--type "exit 3")
         (minder-test--end process)
         (should (= (process-exit-status process) 3))))
     (kill-buffer buffer))))

(ert-deftest minder-test-mode-eshell ()
  (minder-test--with-mode
   (let* ((eshell-directory-name (make-temp-file "minder-eshell" t))
          (eshell-history-file-name nil)
          (buffer (save-window-excursion (eshell t))))
     (with-current-buffer buffer
       (goto-char (point-max))
       (insert "*printf 'a%s\\n' bc")
       (eshell-send-input)
       (minder-test--eventually (lambda () (string-search "\nabc\n" (buffer-string))))
       (minder-test--eventually (lambda () (null (get-buffer-process buffer)))))
     (let ((kill-buffer-query-functions nil))
       (kill-buffer buffer))
     (delete-directory eshell-directory-name t))))

(ert-deftest minder-test-mode-leaves-others-alone ()
  (minder-mode 1)
  (unwind-protect
      (let ((before minder-mode-carried)
            (process (make-process :name "test" :command '("true"))))
        (should (= before minder-mode-carried))
        (should-not (minder--record process)))
    (minder-mode -1)))

(ert-deftest minder-test-mode-logs-what-it-cannot-do ()
  (minder-mode 1)
  (unwind-protect
      (let* ((minder-mode-predicates (list #'always))
             (process (make-process :name "no-command" :command nil
                                    :connection-type 'pty :noquery t)))
        (should-not (minder--record process))
        (delete-process process)
        (should (string-search "no-command: started by Emacs: a terminal without a program"
                               (with-current-buffer "*minder log*" (buffer-string)))))
    (minder-mode -1)))

(ert-deftest minder-test-mode-line ()
  (should (equal (minder--with-status '(":%s"))
                 '((":" (:eval (minder--mode-line-status)) ""))))
  (should (equal (minder--with-status '((:propertize ":%s" face bold) " x"))
                 '((:eval (propertize (minder--mode-line-text ":%s") 'face 'bold)) " x")))
  (should (equal (minder--mode-line-text ":%s") ":no process")))

(provide 'minder-native-test)
;;; minder-native-test.el ends here
