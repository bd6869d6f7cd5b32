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

(ert-deftest minder-test-just-this-one-and-a-timer-that-waits ()
  (dolist (args '((0.2) (0.2 nil t)))
    (let* ((process (minder-test--native (minder-test--sh "read x; echo text; read x")))
           (other (minder-test--native (minder-test--sh "echo one; sleep 0.3; echo two")))
           (waited nil))
      (run-at-time 0.1 nil
                   (lambda ()
                     (let ((deadline (+ (float-time) 5)))
                       (while (and (process-live-p other) (< (float-time) deadline))
                         (apply #'accept-process-output other args)))
                     (setq waited (not (process-live-p other)))
                     (process-send-string process "\n")))
      (should (accept-process-output process 10 nil t))
      (should waited)
      (should (equal (minder-test--native-text process) "text\n"))
      (should (equal (minder-test--native-text other) "one\ntwo\n"))
      (delete-process process))))

(ert-deftest minder-test-just-this-one-and-a-filter-that-waits ()
  (let* ((other (minder-test--native (minder-test--sh "echo one; sleep 0.2; echo two")))
         (process (minder-test--native
                   (minder-test--sh "echo a; sleep 0.1; echo b; read x; echo c; read x")
                   :filter (lambda (process text)
                             (process-put process 'text
                                          (concat (process-get process 'text) text))
                             (while (process-live-p other)
                               (sit-for 0.1)
                               (accept-process-output other 0.2 nil t))))))
    (while (not (equal (minder-test--native-text process) "a\nb\n"))
      (should (accept-process-output process 10 nil t)))
    (should-not (process-live-p other))
    (process-send-string process "\n")
    (should (accept-process-output process 10 nil t))
    (should (equal (minder-test--native-text process) "a\nb\nc\n"))
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

(ert-deftest minder-test-native-names-the-lack-of-a-descriptor ()
  (let* ((form '(let ((count 0)
                      problem)
                  (while (null problem)
                    (condition-case error
                        (make-network-process
                         :name (format "test %d" count) :type 'datagram :family 'local
                         :service "/test" :stop t :noquery t)
                      (error (setq problem error)))
                    (setq count (1+ count)))
                  (princ (format "%S" (condition-case error
                                          (minder--program "sh")
                                        (error (car error)))))))
         (process (minder-test--emacs form)))
    (minder-test--finish process)
    (should (equal (minder-test--text process) "minder-no-descriptor"))))

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

(ert-deftest minder-test-mode-without-the-module ()
  (skip-unless (getenv "MINDER_PROGRAM"))
  (let* ((form `(progn
                  (require 'minder-mode)
                  (setq minder-module-directory ,temporary-file-directory
                        minder-program ,(getenv "MINDER_PROGRAM")
                        minder-mode-predicates (list #'always))
                  (minder-mode 1)
                  (let* ((text "")
                         (process (make-process
                                   :name "test" :noquery t
                                   :command '("sh" "-c" "test -t 1 && echo terminal; exit 3")
                                   :filter (lambda (_ part) (setq text (concat text part))))))
                    (while (process-live-p process)
                      (accept-process-output process 1))
                    (princ (format "%s%d %d %s" text (process-exit-status process)
                                   minder-mode-carried (featurep 'minder-module))))))
         (process (minder-test--emacs form)))
    (minder-test--finish process)
    (should (equal (minder-test--text process) "terminal\n3 1 nil"))))

;;;; What differs from a process of Emacs is a fault

(defun minder-test--both (function &rest args)
  "Check that a stock process and a native one are the same for FUNCTION.
It gets the process, which runs in the current buffer.  ARGS are keywords."
  (with-temp-buffer
    (let* ((all (append args (list :command '("cat") :noquery t :connection-type 'pipe
                                   :buffer (current-buffer) :sentinel #'ignore)))
           (one (apply #'make-process :name "stock" all))
           (stock (prog1 (funcall function one)
                    (delete-process one)
                    (accept-process-output nil 0)))
           (other (apply #'minder-make-process :name "native" all))
           (native (prog1 (funcall function other)
                     (delete-process other))))
      (should (equal native stock)))))

(defmacro minder-test--result-of (&rest body)
  "Return the value of BODY, or the symbol and the text of its error."
  `(condition-case problem
       (progn ,@body)
     (wrong-type-argument (list (car problem) (nth 1 problem)))
     (error (list (car problem)
                  (replace-regexp-in-string "native\\|stock" "NAME"
                                            (error-message-string problem))))))

(ert-deftest minder-test-native-what-primitives-take ()
  (dolist (primitive '(process-status process-exit-status process-command process-tty-name
                                      process-type process-contact process-sentinel
                                      process-running-child-p))
    (minder-test--both
     (lambda (process)
       (list primitive
             (mapcar (lambda (object)
                       (minder-test--result-of (funcall primitive object)))
                     (list process nil (process-name process) (current-buffer)
                           (buffer-name) "no such process" 5 'symbol)))))))

(ert-deftest minder-test-native-what-primitives-take-for-a-number ()
  (minder-test--both
   (lambda (process)
     (list (integerp (process-id process))
           (minder-test--result-of (process-id nil))
           (minder-test--result-of (process-id (process-name process)))
           (minder-test--result-of (accept-process-output (process-name process) 0))
           (minder-test--result-of (set-process-window-size nil 1 1))))))

(ert-deftest minder-test-native-signal-process ()
  (minder-test--both
   (lambda (process)
     (mapcar (lambda (signal) (minder-test--result-of (signal-process process signal)))
             '(0 -1 1000 SIGCONT sigcont CONT URG SIGNONE nil "CONT" 2.0 18)))))

(ert-deftest minder-test-native-errors-after-the-end ()
  (minder-test--both
   (lambda (process)
     (delete-process process)
     (mapcar (lambda (primitive) (minder-test--result-of (funcall primitive process)))
             '(kill-process interrupt-process quit-process stop-process continue-process
                            process-send-eof process-running-child-p process-live-p
                            delete-process process-tty-name)))))

(ert-deftest minder-test-native-interrupt-process-functions ()
  (let* (seen
         (interrupt-process-functions
          (cons (lambda (process group) (push (cons process group) seen) nil)
                interrupt-process-functions))
         (process (minder-test--native '("cat"))))
    (interrupt-process process t)
    (minder-test--end process)
    (should (equal seen (list (cons process t))))
    (should (= (process-exit-status process) 2))))

(ert-deftest minder-test-native-kill-the-foreground ()
  (dolist (make (list #'make-process #'minder-make-process))
    (let ((process (funcall make :name "test" :noquery t :connection-type 'pty
                            :command (minder-test--sh
                                      "set -m; sh -c 'echo ready; exec sleep 600'; echo next")
                            :filter (lambda (process text)
                                      (process-put process 'text
                                                   (concat (process-get process 'text)
                                                           text))))))
      (minder-test--eventually (lambda () (string-search "ready" (or (process-get process 'text) ""))))
      (minder-test--eventually (lambda () (integerp (process-running-child-p process))))
      (kill-process process t)
      (minder-test--end process)
      ;; Emacs may notice the end before it has read the last output.
      (minder-test--eventually
       (lambda () (string-suffix-p "next\n" (minder-test--native-text process))))
      (should (= (process-exit-status process) 0)))))

(ert-deftest minder-test-native-stderr-is-deleted ()
  (dolist (delete (list #'delete-process (lambda (process)
                                           (kill-buffer (process-buffer process)))))
    (let* ((buffer (generate-new-buffer "minder-test"))
           (ends 0)
           (process (minder-test--native (minder-test--sh "read x; echo err >&2; echo out")
                                         :stderr buffer))
           (other (get-buffer-process buffer)))
      (set-process-sentinel other (lambda (&rest _) (setq ends (1+ ends))))
      (funcall delete other)
      (should-not (process-live-p other))
      (should-not (memq other (process-list)))
      (process-send-string process "\n")
      (minder-test--end process)
      (should (equal (minder-test--native-text process) "out\n"))
      (should (= ends 1))
      (kill-buffer buffer))))

(ert-deftest minder-test-wrong-keywords-start-nothing ()
  (let ((stock (start-process "stock" nil "sleep" "600"))
        (before (length (minder--all))))
    (dolist (kind '(nil t))
      (dolist (wrong (list (list :stderr 5) (list :stderr stock) (list :stderr "")
                           (list :connection-type 'nonsense) (list :framing "lines")
                           (list :command '("cat" . "text")) (list :coding 5)))
        (should-error (apply #'minder-make-process
                             (append wrong (list :name "wrong" :command '("cat") :light kind))))
        (should-not (get-process "wrong"))
        (should-not (get-process "wrong stderr"))
        (should (= (length (minder--all)) before))))
    (should (process-live-p stock))
    (delete-process stock)))

(ert-deftest minder-test-primitives-cannot-be-redirected ()
  (let ((minder--advisedp nil)
        (before (process-list)))
    (cl-letf (((symbol-function 'advice-add) (lambda (&rest _) (error "No trampoline"))))
      (should-error (minder-test--native '("cat"))))
    (should (equal (process-list) before))
    (minder--advise)
    (should minder--advisedp)))

(declare-function native-comp-available-p "comp.c")
(declare-function native-compile "comp")
(defvar comp-installed-trampolines-h)

(ert-deftest minder-test-one-file-has-all-trampolines ()
  (skip-unless (and (fboundp 'native-comp-available-p) (native-comp-available-p)
                    (minder--trampoline-directory)))
  (let ((process (minder-test--native '("cat" "-u"))))
    (should (directory-files (minder--trampoline-directory) nil
                             "\\`minder-trampolines-[0-9a-f]+\\.eln\\'"))
    (dolist (primitive (mapcar #'car minder--advices))
      (should (gethash primitive comp-installed-trampolines-h)))
    ;; Natively compiled code calls these without their symbols.
    (let ((caller (native-compile '(lambda (process)
                                     (list (process-command process)
                                           (process-status process)
                                           (process-type process))))))
      (should (subr-native-elisp-p caller))
      (should (equal (funcall caller process) '(("cat" "-u") run real))))
    (delete-process process)))

(ert-deftest minder-test-input-that-ends-while-other-code-sends ()
  (let* ((size 0)
         (endp nil)
         (process (minder-test--native
                   '("cat") :coding 'binary
                   :filter (lambda (process text)
                             (setq size (+ size (length text)))
                             (unless endp
                               (setq endp t)
                               (process-send-eof process))))))
    (process-send-string process (make-string 4000000 ?x))
    (minder-test--end process)
    (should (= size 4000000))))

(ert-deftest minder-test-throw-out-of-the-last-call ()
  ;; The half of a character comes with the end of the child.
  (let ((process (minder-test--native
                  '("printf" "\\303") :coding 'utf-8-unix
                  :filter (lambda (&rest _) (throw 'minder-test t)))))
    (dotimes (_ 20)
      (catch 'minder-test
        (accept-process-output process 0.1)))
    (minder-test--end process)
    (should (equal (process-get process 'end) "finished\n"))))

(ert-deftest minder-test-delete-in-the-last-call ()
  (let* ((ends 0)
         (process (minder-test--native
                   '("printf" "\\303") :coding 'utf-8-unix
                   :filter (lambda (process _) (delete-process process))
                   :sentinel (lambda (&rest _) (setq ends (1+ ends))))))
    (minder-test--end process)
    (should (= ends 1))))

(ert-deftest minder-test-throw-out-of-the-sentinels-of-a-stop ()
  (let* ((ends 0)
         (all (cl-loop repeat 3 collect
                       (minder-test--native '("cat")
                                            :sentinel (lambda (&rest _)
                                                        (setq ends (1+ ends))
                                                        (throw 'minder-test t)))))
         (deadline (+ (float-time) minder-test-seconds)))
    (catch 'minder-test (minder-stop))
    (while (and (< ends 3) (< (float-time) deadline))
      (catch 'minder-test (accept-process-output nil 0.1)))
    (should (= ends 3))
    (should (cl-notany #'process-live-p all))
    (should-not (minder--all))))

(ert-deftest minder-test-unload ()
  (let ((process (minder-test--emacs
                  '(progn
                     (require 'minder-mode)
                     (minder-mode 1)
                     (let ((minder-mode-predicates (list #'always)))
                       (delete-process (start-process "one" nil "cat")))
                     (dolist (feature '(minder-mode minder minder-relay minder-start
                                                    minder-native minder-process))
                       (unload-feature feature t))
                     (let ((two (start-process "two" nil "cat")))
                       (princ (process-status two))
                       (delete-process two))))))
    (minder-test--finish process)
    (should (string-suffix-p "run" (minder-test--text process)))))

(ert-deftest minder-test-start-that-fails-leaves-no-pipe ()
  (minder-ensure-started)
  (let ((before (process-list))
        (minder--event-pipe nil))
    (cl-letf (((symbol-function 'minder--attach) (lambda (&rest _) (error "No thread"))))
      (should-error (minder-ensure-started)))
    (should (equal (process-list) before))))

(ert-deftest minder-test-event-pipe-has-no-buffer ()
  (minder-ensure-started)
  (should-not (process-buffer minder--event-pipe))
  (should-not (get-buffer "minder-events")))

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

(ert-deftest minder-test-mode-with-a-predicate-that-fails ()
  (minder-mode 1)
  (unwind-protect
      (let* ((minder-mode-predicates (list (lambda (_) (error "Bad predicate"))))
             (process (start-process "test" nil "true")))
        (should-not (minder--record process))
        (should (string-search "fails: Bad predicate"
                               (with-current-buffer "*minder log*" (buffer-string)))))
    (minder-mode -1)))

(ert-deftest minder-test-mode-with-a-killed-buffer ()
  (minder-mode 1)
  (unwind-protect
      (let ((buffer (generate-new-buffer "minder-test")))
        (kill-buffer buffer)
        (should (processp (make-process :name "test" :buffer buffer :command '("true")))))
    (minder-mode -1)))

(ert-deftest minder-test-mode-line ()
  (should (equal (minder--with-status '(":%s"))
                 '((":" (:eval (minder--mode-line-status)) ""))))
  (should (equal (minder--with-status '((:propertize ":%s" face bold) " x"))
                 '((:eval (propertize (minder--mode-line-text ":%s") 'face 'bold)) " x")))
  (should (equal (minder--mode-line-text ":%s") ":no process")))

(provide 'minder-native-test)
;;; minder-native-test.el ends here
