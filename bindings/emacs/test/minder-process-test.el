;;; minder-process-test.el --- Tests of light processes  -*- lexical-binding: t; -*-

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

;; Starts, ends, accessors, filters, waiting, signals and terminals.

;;; Code:

(require 'minder-test-support)

(declare-function minder--statistics "ext:minder-module")
(declare-function minder--version "ext:minder-module")

;;;; Start and end

(ert-deftest minder-test-output-and-status ()
  (let ((process (minder-test--run (minder-test--sh "echo one; echo two; exit 3"))))
    (should (equal (minder-test--text process) "one\ntwo\n"))
    (should (eq (minder-process-status process) 'exit))
    (should (= (minder-process-exit-status process) 3))
    (should (equal (minder-process-get process 'end) "exited abnormally with code 3\n"))
    (should-not (minder-process-live-p process))))

(ert-deftest minder-test-finished-and-signal ()
  (let ((good (minder-test--run '("true")))
        (bad (minder-test--run (minder-test--sh "kill -15 $$"))))
    (should (equal (minder-process-get good 'end) "finished\n"))
    (should (eq (minder-process-status bad) 'signal))
    (should (= (minder-process-exit-status bad) 15))
    (should (equal (minder-process-get bad 'end) "terminated\n"))))

(ert-deftest minder-test-accessors ()
  (let* ((buffer (generate-new-buffer "minder-test"))
         (process (minder-make-process :name "cat" :light t :noquery t :buffer buffer
                                       :command '("cat") :plist '(a 1))))
    (unwind-protect
        (progn
          (should (minder-process-p process))
          (should-not (minder-process-p 1))
          (should-not (processp process))
          (should (equal (minder-process-name process) "cat"))
          (should (memq process (minder-process-list)))
          (should (eq (minder-get-process "cat") process))
          (should (eq (minder-get-buffer-process buffer) process))
          (should (eq (minder-process-buffer process) buffer))
          (should (equal (minder-process-command process) '("cat")))
          (should (eq (minder-process-status process) 'run))
          (should (= (minder-process-exit-status process) 0))
          (should (equal (alist-get 'comm (process-attributes (minder-process-id process)))
                         "cat"))
          (should (= (minder-process-get process 'a) 1))
          (minder-process-put process 'b 2)
          (should (equal (minder-process-plist process) '(a 1 b 2)))
          (should (eq (marker-buffer (minder-process-mark process)) buffer))
          (should-not (minder-process-query-on-exit-flag process))
          (minder-set-process-query-on-exit-flag process t)
          (should (minder-process-query-on-exit-flag process))
          (minder-set-process-query-on-exit-flag process nil)
          (should-not (minder-process-tty-name process))
          (minder-set-process-filter process #'ignore)
          (should (eq (minder-process-filter process) #'ignore))
          (minder-set-process-sentinel process #'ignore)
          (should (eq (minder-process-sentinel process) #'ignore)))
      (minder-delete-process process)
      (kill-buffer buffer))
    (should-not (memq process (minder-process-list)))))

(ert-deftest minder-test-names-are-unique ()
  (let ((one (minder-test--start '("cat")))
        (two (minder-test--start '("cat"))))
    (should-not (equal (minder-process-name one) (minder-process-name two)))
    (minder-delete-process one)
    (minder-delete-process two)))

(ert-deftest minder-test-default-filter-and-sentinel ()
  (with-temp-buffer
    (insert "before\n")
    (let ((process (minder-make-process :name "echo" :light t :buffer (current-buffer)
                                        :command '("echo" "text"))))
      (minder-test--finish process)
      (should (equal (buffer-string) "before\ntext\n\nProcess echo finished\n"))
      (should (= (minder-process-mark process) (point-max))))))

(ert-deftest minder-test-environment-and-directory ()
  (let* ((process-environment (append '("MINDER_A=1" "MINDER_B" "MINDER_A=2")
                                      process-environment '("MINDER_B=3")))
         (default-directory "/usr/")
         (process (minder-test--run
                   (minder-test--sh "echo $MINDER_A ${MINDER_B-none} $(pwd) $PWD"))))
    (should (equal (minder-test--text process) "1 none /usr /usr\n"))))

(ert-deftest minder-test-errors-of-a-start ()
  (should-error (minder-test--start '("/nowhere/program")) :type 'file-missing)
  (should-error (minder-test--start '("no-such-program-of-minder")) :type 'file-missing)
  (let ((default-directory "/nowhere/"))
    (should-error (minder-test--start '("true")) :type 'file-missing))
  (should-error (minder-test--start '("true") :framing 'nonsense) :type 'minder-error)
  (should-error (minder-test--start nil) :type 'wrong-type-argument)
  (should-error (minder-test--start '("echo" 1)) :type 'wrong-type-argument)
  (should-not (minder-make-process))
  (should-not (minder-process-list)))

(ert-deftest minder-test-set-the-buffer ()
  (with-temp-buffer
    (let ((process (minder-make-process :name "cat" :light t :noquery t :command '("cat")
                                        :sentinel #'ignore)))
      (minder-set-process-buffer process (current-buffer))
      (minder-process-send-string process "text")
      (minder-process-send-eof process)
      (minder-test--finish process)
      (should (equal (buffer-string) "text")))))

(ert-deftest minder-test-default-filter-keeps-point-and-narrowing ()
  (with-temp-buffer
    (insert "head\n")
    (let ((process (minder-make-process :name "echo" :light t :buffer (current-buffer)
                                        :command '("echo" "text") :sentinel #'ignore)))
      (goto-char (point-min))
      (narrow-to-region 1 3)
      (setq buffer-read-only t)
      (minder-test--finish process)
      (should (= (point) 1))
      (should (equal (buffer-string) "he"))
      (widen)
      (should (equal (buffer-string) "head\ntext\n")))))

(ert-deftest minder-test-stock-processes ()
  (let ((process (minder-make-process :name "stock" :command '("true") :plist nil)))
    (should (processp process))
    (while (process-live-p process)
      (accept-process-output process 1))
    (should (= (process-exit-status process) 0))))

(ert-deftest minder-test-read-max-of-zero ()
  (let* ((minder-read-max 0)
         (process (minder-test--run '("echo" "text"))))
    (should (equal (minder-test--text process) "text\n"))))

(ert-deftest minder-test-quoted-file-name ()
  (let* ((default-directory "/:/usr/")
         (process (minder-test--run '("/:/bin/sh" "-c" "pwd"))))
    (should (equal (minder-test--text process) "/usr\n"))))

(ert-deftest minder-test-wrong-arguments ()
  (let ((process (minder-test--start '("cat"))))
    (should-not (minder-get-buffer-process "no such buffer of minder"))
    (should-not (minder-get-buffer-process nil))
    (should-error (minder-set-process-buffer process "name") :type 'wrong-type-argument)
    (should-error (minder-set-process-coding-system process 'no-such-coding)
                  :type 'coding-system-error)
    (should-error (minder-signal-process process nil))
    (minder-process-send-string process "text")
    (minder-test--until (lambda () (equal (minder-test--text process) "text")))
    (minder-delete-process process)))

;;;; Filters that fail, and quits

(ert-deftest minder-test-error-in-a-filter ()
  (let* ((inhibit-message t)
         (debug-on-error nil)
         (bad (minder-test--start '("yes") :filter (lambda (&rest _) (error "Bad filter"))))
         (good (minder-test--run '("seq" "1000"))))
    (should (string-suffix-p "\n1000\n" (minder-test--text good)))
    (should (minder-process-live-p bad))
    (minder-delete-process bad)))

(ert-deftest minder-test-quit-in-a-filter ()
  (let* ((debug-on-quit nil)
         (calls 0)
         (size 0)
         (process (minder-test--start
                   '("head" "-c" "2000000" "/dev/zero") :coding 'binary
                   :filter (lambda (_ bytes)
                             (setq calls (1+ calls)
                                   size (+ size (length bytes)))
                             (when (= calls 1)
                               (let ((inhibit-quit nil))
                                 (signal 'quit nil))))))
         (quits 0)
         (deadline (+ (float-time) minder-test-seconds)))
    (while (and (minder-process-live-p process) (< (float-time) deadline))
      (condition-case nil
          (minder-accept-output process 0.2)
        (quit (setq quits (1+ quits)))))
    (should (= quits 1))
    (should (= size 2000000))))

(ert-deftest minder-test-throw-out-of-a-filter ()
  (let* ((size 0)
         (process (minder-test--start
                   '("head" "-c" "2000000" "/dev/zero") :coding 'binary
                   :filter (lambda (_ bytes)
                             (setq size (+ size (length bytes)))
                             (throw 'minder-test t)))))
    (while (minder-process-live-p process)
      (catch 'minder-test
        (minder-accept-output process 0.2)))
    (should (= size 2000000))))

(ert-deftest minder-test-filter-that-waits ()
  (let* ((inner nil)
         (process (minder-test--start
                   '("echo" "outer")
                   :filter (lambda (&rest _)
                             (setq inner (minder-test--run '("echo" "inner")))))))
    (minder-test--finish process)
    (should (equal (minder-test--text inner) "inner\n"))))

(defun minder-test--pausing-filter (process text)
  "Collect TEXT of PROCESS, and pause its output in between."
  (minder-process-put process 'text (concat (minder-process-get process 'text) text))
  (let ((depth (or (minder-process-get process 'depth) 0)))
    (when (< depth 3)
      (minder-process-put process 'depth (1+ depth))
      (minder-set-process-filter process t)
      (minder-accept-output nil 0.001)
      (minder-set-process-filter process #'minder-test--pausing-filter)
      (minder-accept-output nil 0.001)
      (minder-process-put process 'depth depth))))

(ert-deftest minder-test-pauses-keep-the-order ()
  (dolist (framing '(nil lines))
    (let* ((minder-read-max 100)
           (process (minder-test--run '("seq" "1" "300") :framing framing
                                      :filter #'minder-test--pausing-filter)))
      (should (equal (minder-test--text process)
                     (mapconcat (lambda (number) (format (if framing "%d" "%d\n") number))
                                (number-sequence 1 300) ""))))))

(ert-deftest minder-test-wait-in-a-filter-after-a-pause ()
  (let* ((lines nil)
         (later (lambda (process line)
                  (push line lines)
                  (when (equal line "2")
                    (minder-process-send-string process "\n")
                    (let ((deadline (+ (float-time) 5)))
                      (while (and (not (member "4" lines)) (< (float-time) deadline))
                        (minder-accept-output process 0.2))))))
         (process (minder-test--start
                   (minder-test--sh "printf '1\\n2\\n3\\n'; read x; echo 4") :framing 'lines
                   :filter (lambda (process line)
                             (push line lines)
                             (minder-set-process-filter process t)))))
    (minder-test--until (lambda () lines))
    (minder-accept-output nil 0.1)
    (minder-set-process-filter process later)
    (minder-test--finish process)
    (should (equal (nreverse lines) '("1" "2" "3" "4")))))

(ert-deftest minder-test-pause-with-many-messages ()
  (let* ((count 0)
         (filter (lambda (&rest _) (setq count (1+ count))))
         (process (minder-test--start '("seq" "1" "100000") :framing 'lines
                                      :filter (lambda (process _)
                                                (setq count (1+ count))
                                                (minder-set-process-filter process t))))
         (start (float-time)))
    (minder-test--until (lambda () (= count 1)))
    (minder-accept-output nil 0.2)
    (minder-set-process-filter process filter)
    (minder-test--finish process)
    (should (= count 100000))
    (should (< (- (float-time) start) 20))))

(ert-deftest minder-test-back-pressure ()
  (let* ((process (minder-test--start '("yes") :coding 'binary :filter #'ignore))
         (deadline (+ (float-time) 0.3))
         bytes)
    (while (< (float-time) deadline))
    (setq bytes (nth 1 (minder--statistics)))
    (should (<= 100000 bytes (* 3 1024 1024)))
    (minder-delete-process process)))

;;;; Waiting

(ert-deftest minder-test-accept-output ()
  (let ((process (minder-test--start (minder-test--sh "read x; echo $x")))
        (other (minder-test--start (minder-test--sh "echo other; read x"))))
    (should-not (minder-accept-output process 0.05))
    (minder-test--until (lambda () (equal (minder-test--text other) "other\n")))
    (should-not (minder-accept-output nil 0))
    (minder-process-send-string process "line\n")
    (should (minder-accept-output process 10))
    (should (equal (minder-test--text process) "line\n"))
    (minder-test--finish process)
    (should-not (minder-accept-output process))
    (minder-delete-process other)))

(ert-deftest minder-test-stock-wait-serves-light-processes ()
  (let ((process (minder-test--start '("echo" "text")))
        (deadline (+ (float-time) minder-test-seconds)))
    (while (and (minder-process-live-p process) (< (float-time) deadline))
      (accept-process-output nil 0.2))
    (should (equal (minder-test--text process) "text\n"))))

(ert-deftest minder-test-stock-wait-serves-many-ends ()
  (let ((ended 0)
        (deadline (+ (float-time) minder-test-seconds)))
    (dotimes (_ 600)
      (minder-test--start '("true") :sentinel (lambda (&rest _) (setq ended (1+ ended)))))
    (while (and (minder-process-list) (< (float-time) deadline))
      (accept-process-output nil 0.2))
    (should (= ended 600))))

(ert-deftest minder-test-event-pipe-is-replaced ()
  (let ((process (minder-test--start '("cat"))))
    (delete-process minder--event-pipe)
    (minder-test--until (lambda () (process-live-p minder--event-pipe)))
    (minder-process-send-string process "text")
    (minder-test--until (lambda () (equal (minder-test--text process) "text")))
    (minder-delete-process process)))

;;;; Signals

(ert-deftest minder-test-kill-the-tree ()
  (let ((process (minder-test--start
                  (minder-test--sh "sleep 600 & setsid sleep 601 & echo $! $(jobs -p); wait"))))
    (minder-test--until (lambda () (string-suffix-p "\n" (minder-test--text process))))
    (let ((pids (mapcar #'string-to-number (split-string (minder-test--text process)))))
      (should (cl-notany #'minder-test--gone-p pids))
      (minder-kill-process process)
      (minder-test--finish process)
      (should (eq (minder-process-status process) 'signal))
      (should (equal (minder-process-get process 'end) "killed\n"))
      (should (cl-every #'minder-test--gone-p pids)))))

(ert-deftest minder-test-signals ()
  (let ((process (minder-test--start
                  (minder-test--sh "trap 'echo int' INT; trap 'exit 5' TERM; echo ready
                                    while :; do sleep 0.05; done"))))
    (minder-test--until (lambda () (equal (minder-test--text process) "ready\n")))
    (minder-interrupt-process process)
    (minder-test--until (lambda () (equal (minder-test--text process) "ready\nint\n")))
    (should-error (minder-signal-process process 'SIGNONE))
    (minder-signal-process process 'SIGTERM)
    (minder-test--finish process)
    (should (= (minder-process-exit-status process) 5))
    (should (eq (minder-kill-process process) process)))
  (let ((process (minder-test--start '("sleep" "600"))))
    (minder-quit-process process)
    (minder-test--finish process)
    (should (= (minder-process-exit-status process) 3)))
  (let ((process (minder-test--start '("sleep" "600"))))
    (minder-terminate-process process)
    (minder-test--finish process)
    (should (= (minder-process-exit-status process) 15))))

(ert-deftest minder-test-stop-and-continue ()
  (let ((process (minder-test--start '("cat") :stop t)))
    (should (eq (minder-process-status process) 'stop))
    (should (minder-process-live-p process))
    (minder-process-send-string process "text")
    (should-not (minder-accept-output process 0.1))
    (minder-continue-process process)
    (should (eq (minder-process-status process) 'run))
    (minder-test--until (lambda () (equal (minder-test--text process) "text")))
    (minder-stop-process process)
    (minder-delete-process process)
    (should (equal (minder-process-get process 'end) "killed\n"))))

;;;; Terminals

(ert-deftest minder-test-terminal ()
  (let ((process (minder-test--start
                  (minder-test--sh "tty; stty size; read x; stty size; echo got $x; cat; exit 4")
                  :connection-type 'pty)))
    (minder-test--until (lambda () (string-search "24 80\n" (minder-test--text process))))
    (should (string-prefix-p (concat (minder-process-tty-name process) "\n")
                             (minder-test--text process)))
    (should (minder-set-process-window-size process 50 132))
    (minder-process-send-string process "line\n")
    (minder-process-send-eof process)
    (minder-test--finish process)
    (should (string-suffix-p "24 80\n50 132\ngot line\n" (minder-test--text process)))
    (should (= (minder-process-exit-status process) 4))))

(ert-deftest minder-test-interrupt-the-foreground-of-a-terminal ()
  (let ((process (minder-test--start
                  (minder-test--sh "trap 'echo int' INT; echo ready; read x; echo got $x")
                  :connection-type 'pty)))
    (minder-test--until (lambda () (equal (minder-test--text process) "ready\n")))
    (minder-interrupt-process process t)
    (minder-test--until (lambda () (string-search "int" (minder-test--text process))))
    (minder-delete-process process)))

(provide 'minder-process-test)
;;; minder-process-test.el ends here
