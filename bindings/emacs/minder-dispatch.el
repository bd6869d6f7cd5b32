;;; minder-dispatch.el --- Events of children, filters and sentinels  -*- lexical-binding: t; -*-

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

;; The module keeps what children write.  When a byte comes from the pipe
;; process `minder--event-pipe', Lisp takes some events, and calls filters and
;; sentinels for them.  What is not taken stays in the module, whose memory is
;; bounded: the child then waits.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'minder-coding)

(declare-function minder--take "ext:minder-module")
(declare-function minder--write "ext:minder-module")
(declare-function minder--pause "ext:minder-module")
(declare-function minder--drop-carrier "minder-native")
(declare-function minder-ensure-started "minder")

(defcustom minder-read-max (* 768 1024)
  "The most bytes that a filter gets in one call.
Emacs handles no key during a call.  The default suits filters that need up to
a microsecond for a byte."
  :type 'natnum
  :group 'minder)

(cl-defstruct (minder-process (:constructor minder--make-record)
                              (:copier nil))
  "A child of the module: a light process, or what is behind a native one."
  (name nil :documentation "Its name, which no other live one has.")
  (key nil :documentation "Its number in the module.")
  (id nil :documentation "The number of the process in the operating system.")
  (command nil :documentation "The program and its arguments.")
  (buffer nil :documentation "The buffer that its output goes to, or nil.")
  (filter nil :documentation "The function that gets its output.")
  (sentinel nil :documentation "The function that is called at its end.")
  (mark nil :documentation "The marker of the end of its output.")
  (plist nil :documentation "A property list for its user.")
  (state 'run :documentation "`run', `stop', `exit' or `signal'.")
  (code 0 :documentation "The exit code, or the number of the signal.")
  (dumpedp nil :documentation "Whether it wrote a core file.")
  (query-on-exit-flag t :documentation "Whether Emacs asks before it exits.")
  (tty-name nil :documentation "The name of its terminal, or nil.")
  (decoder nil :documentation "The decoder of its standard output.")
  (error-decoder nil :documentation "The decoder of its standard error.")
  (encoding nil :documentation "The coding system of its input.")
  (stderr nil :documentation "What gets its standard error: a `minder-process'.")
  (input nil :documentation "Strings that wait for room in the queue of the module.")
  (brokenp nil :documentation "Whether its input is closed.")
  (eofp nil :documentation "Whether its input was closed by `minder-process-send-eof'.")
  (pieces 0 :documentation "How often it was heard.")
  (bytes 0 :documentation "How many bytes it has written.")
  (started nil :documentation "When it was started.")
  (carrier nil :documentation "The process object of Emacs if it is a native process.")
  (type 'real :documentation "`real', or `pipe' for the standard error of another.")
  (coding nil :documentation "The coding system that the process object had.")
  (pausedp nil :documentation "Whether its filter is t.")
  (held nil :documentation "Events that came while it was paused, the last one first.")
  (ready nil :documentation "Those that came before `held', the first one first."))

(defvar minder--processes (make-hash-table)
  "The live processes, by their numbers in the module.")

(defvar minder--names (make-hash-table :test #'equal)
  "The live processes, by their names.")

(defvar minder--event-pipe nil
  "The pipe process that gets a byte when there are events.")

(defvar minder--handled 0
  "How many events were handled.")

(defvar minder--batch (make-vector (* 3 256) nil)
  "Events that were taken from the module: child, kind and data of each.")
(defvar minder--batch-next 0
  "The place of the next event in `minder--batch'.")
(defvar minder--batch-end 0
  "The place after the last event in `minder--batch'.")

(defvar minder--only nil
  "The process whose events alone are handled, or nil for all.")

(defvar minder--waiting nil
  "The processes that are paused because of `minder--only'.")

(defun minder--on-events (_process _bytes)
  "Handle the events that the module has."
  (minder--dispatch))

(defun minder--dispatch ()
  "Handle events; return how many.
A filter may call this function: it then handles what follows."
  ;; A quit between the module and the batch would lose the events.
  (let ((inhibit-quit t)
        (count 0)
        (finishedp nil))
    (unless minder--only
      (minder--resume-waiting))
    (minder--handle-resumed)
    (when (and minder--event-pipe (>= minder--batch-next minder--batch-end))
      (setq minder--batch-next 0
            minder--batch-end (* 3 (minder--take minder--batch (minder--read-max)))))
    (unwind-protect
        (progn
          (while (< minder--batch-next minder--batch-end)
            (let ((at minder--batch-next))
              (setq minder--batch-next (+ at 3))
              (minder--handle (aref minder--batch at)
                              (aref minder--batch (+ at 1))
                              (prog1 (aref minder--batch (+ at 2))
                                (aset minder--batch (+ at 2) nil))))
            (setq count (1+ count)))
          (minder--handle-resumed)
          (setq finishedp t))
      ;; A filter may leave by `throw'.
      (unless (or finishedp (>= minder--batch-next minder--batch-end))
        (run-at-time 0 nil #'minder--dispatch)))
    count))

(defun minder--read-max ()
  "Return how many bytes to take from the module at once."
  (max 1 (min minder-read-max (ash 1 30))))

(defun minder--handle (key kind data)
  "Handle one event of the child KEY: its KIND and DATA."
  (setq minder--handled (1+ minder--handled))
  (let ((process (gethash key minder--processes)))
    (when process
      (if (and (/= kind 4)
               (or (minder--has-to-wait-p process) (minder--held-p process)))
          (push (cons kind data) (minder-process-held process))
        (minder--handle-now process kind data)))))

(defun minder--held-p (process)
  "Return whether there are events of PROCESS that came while it was paused."
  (or (minder-process-ready process) (minder-process-held process)))

(defun minder--pop-held (process)
  "Remove and return the first event of PROCESS that came while it was paused."
  (unless (minder-process-ready process)
    (setf (minder-process-ready process) (nreverse (minder-process-held process))
          (minder-process-held process) nil))
  (pop (minder-process-ready process)))

(defun minder--has-to-wait-p (process)
  "Return whether the events of PROCESS have to wait; pause it if so."
  (when (and minder--only
             (not (eq process minder--only))
             (null (minder-process-pausedp process)))
    (push process minder--waiting)
    (minder--pause-output process 'wait))
  (minder-process-pausedp process))

(defun minder--handle-now (process kind data)
  "Handle one event of PROCESS: its KIND and DATA."
  (pcase kind
    (0 (minder--output process (minder-process-decoder process) data nil))
    (1 (minder--error-output process data nil))
    (2 (cl-incf (minder-process-bytes process) (length data))
       (minder--filter process data))
    (3 (minder--report "cannot read a message of process %s: %s"
                       (minder-process-name process) data))
    (4 (minder--flush process))
    (_ (minder--ended process kind data))))

(defvar minder--resumed nil
  "The processes that are not paused any more, and whose events wait.")

(defun minder--pause-output (process why)
  "Hold the output of PROCESS if WHY is non-nil, or else let it come again.
WHY is t if its filter is t, or `wait' because of `minder--only'."
  (let ((before (minder-process-pausedp process)))
    (setf (minder-process-pausedp process) why)
    (unless (eq (null before) (null why))
      (when (and (null why)
                 (minder--held-p process)
                 (not (memq process minder--resumed)))
        (push process minder--resumed))
      (when (gethash (minder-process-key process) minder--processes)
        (minder--pause (minder-process-key process) why)))))

(defun minder--resume-waiting ()
  "Let the output of the processes come that waited because of `minder--only'."
  (while minder--waiting
    (let ((process (pop minder--waiting)))
      (when (eq (minder-process-pausedp process) 'wait)
        (minder--pause-output process nil)))))

(defun minder--handle-resumed ()
  "Handle the events that came while processes were paused."
  (while minder--resumed
    (let ((process (car minder--resumed))
          (finishedp nil))
      (if (or (not (minder--held-p process))
              (minder--has-to-wait-p process))
          (setq minder--resumed (delq process minder--resumed))
        ;; The process stays in the list: its filter may handle what follows.
        (unwind-protect
            (let ((event (minder--pop-held process)))
              (setq minder--handled (1+ minder--handled))
              (minder--handle-now process (car event) (cdr event))
              (setq finishedp t))
          ;; A filter may leave by `throw'.
          (unless finishedp
            (run-at-time 0 nil #'minder--dispatch)))))))

(defun minder--output (process decoder bytes lastp)
  "Give the text of BYTES, decoded by DECODER, to the filter of PROCESS.
Non-nil LASTP means that nothing follows."
  (cl-incf (minder-process-bytes process) (length bytes))
  (minder--follow-coding process decoder)
  (let ((text (minder--decode decoder bytes lastp)))
    (minder--show-coding process decoder)
    (unless (string-empty-p text)
      (minder--filter process text))))

(defun minder--follow-coding (process decoder)
  "Use the coding system that the process object of PROCESS has for DECODER."
  (let ((carrier (minder-process-carrier process)))
    (when carrier
      (let ((coding (car (process-coding-system carrier))))
        (unless (eq coding (minder-process-coding process))
          (setf (minder-process-coding process) coding
                (minder-decoder-coding decoder) (or coding 'undecided)))))))

(defun minder--show-coding (process decoder)
  "Give the process object of PROCESS the coding system that DECODER has found."
  (let ((carrier (minder-process-carrier process))
        (coding (minder-decoder-coding decoder)))
    (unless (or (null carrier) (eq coding (minder-process-coding process)))
      (setf (minder-process-coding process) coding)
      (set-process-coding-system carrier coding
                                 (cdr (process-coding-system carrier))))))

(defun minder--error-output (process bytes lastp)
  "Give BYTES to what gets the standard error of PROCESS.
Non-nil LASTP means that nothing follows."
  (let ((target (minder--stderr-target process)))
    (cl-incf (minder-process-pieces process))
    (when target
      (minder--output target (minder-process-error-decoder process) bytes lastp))))

(defun minder--stderr-target (process)
  "Return what gets the standard error of PROCESS, unless that was deleted."
  (let ((target (minder-process-stderr process)))
    (and target (eq (minder-process-state target) 'run) target)))

(defmacro minder--guarded (process what &rest body)
  "Run BODY for PROCESS; report an error of WHAT, and keep a quit for later."
  (declare (indent 2))
  `(condition-case-unless-debug problem
       (save-match-data
         (save-current-buffer
           (let ((inhibit-quit t)
                 (last-nonmenu-event t)
                 ;; The body may wait for other processes.
                 (minder--only nil))
             ,@body)))
     (quit (setq quit-flag t))
     (error (minder--report "error in the %s of process %s: %s" ,what
                            (minder-process-name ,process)
                            (error-message-string problem)))))

(defun minder--report (format &rest args)
  "Show a message: FORMAT with ARGS."
  (message "minder: %s" (apply #'format-message format args)))

(defun minder--filter (process text)
  "Call the filter of PROCESS with TEXT."
  (cl-incf (minder-process-pieces process))
  (minder--guarded process "filter"
                   (let ((carrier (minder-process-carrier process)))
                     (if carrier
                         (funcall (process-filter carrier) carrier text)
                       (funcall (or (minder-process-filter process) #'minder-default-filter)
                                process text)))))

(defun minder--ended (process kind data)
  "Handle the end of PROCESS, of this KIND: DATA is its code or signal."
  (setf (minder-process-dumpedp process) (= kind 7))
  ;; A filter may leave by `throw'.
  (unwind-protect
      (minder--output process (minder-process-decoder process) "" t)
    (unwind-protect
        (let ((target (minder--stderr-target process)))
          (when target
            (minder--output target (minder-process-error-decoder process) "" t)))
      ;; A filter may have deleted it.
      (when (eq process (gethash (minder-process-key process) minder--processes))
        (minder--finish process (if (= kind 5) 'exit 'signal) data)))))

(defun minder--finish (process state code)
  "Give PROCESS, which has ended, its STATE and CODE, and call its sentinel."
  (let* ((target (minder--stderr-target process))
         (ended (if target (list process target) (list process))))
    (minder--forget process)
    (setf (minder-process-state process) state
          (minder-process-code process) code
          (minder-process-input process) nil
          (minder-process-brokenp process) t)
    (when target
      (setf (minder-process-state target) 'exit))
    (dolist (record ended)
      (when (minder-process-carrier record)
        (minder--drop-carrier record)))
    ;; A sentinel may leave by `throw'.
    (unwind-protect
        (minder--notify process)
      (when target
        (minder--notify target)))))

(defun minder--forget (process)
  "Remove PROCESS from the live ones."
  (when (eq process (gethash (minder-process-key process) minder--processes))
    (remhash (minder-process-key process) minder--processes))
  (when (eq process (gethash (minder-process-name process) minder--names))
    (remhash (minder-process-name process) minder--names)))

(defun minder--lost (process)
  "Handle the end of PROCESS without waiting for the module."
  (setf (minder-process-held process) nil
        (minder-process-ready process) nil)
  (minder--finish process 'signal 9))

(defun minder--notify (process)
  "Call the sentinel of PROCESS."
  (let ((text (minder--status-text process)))
    (minder--guarded process "sentinel"
                     (let ((carrier (minder-process-carrier process))
                           (sentinel (minder-process-sentinel process)))
                       (if carrier
                           (funcall (or sentinel #'internal-default-process-sentinel) carrier text)
                         (funcall (or sentinel #'minder-default-sentinel) process text))))))

(defconst minder--signal-names
  '((1 . "hangup") (2 . "interrupt") (3 . "quit") (4 . "illegal instruction")
    (5 . "trace/breakpoint trap") (6 . "aborted") (7 . "bus error")
    (8 . "floating point exception") (9 . "killed")
    (10 . "user defined signal 1") (11 . "segmentation fault")
    (12 . "user defined signal 2") (13 . "broken pipe") (14 . "alarm clock")
    (15 . "terminated"))
  "The names of signals on Linux, as the sentinels of Emacs get them.")

(defun minder--status-text (process)
  "Return the text that the sentinel of PROCESS gets."
  (let ((code (minder-process-code process))
        (core (if (minder-process-dumpedp process) " (core dumped)" "")))
    (pcase (minder-process-state process)
      ('run "run\n")
      ('stop "stopped\n")
      ('exit (if (zerop code) "finished\n"
               (format "exited abnormally with code %d%s\n" code core)))
      (_ (format "%s%s\n" (or (cdr (assq code minder--signal-names))
                              (format "signal %d" code))
                 core)))))

(defun minder-default-filter (process text)
  "Insert TEXT into the buffer of PROCESS, before its mark."
  (let ((buffer (minder-process-buffer process))
        (mark (minder-process-mark process)))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (unless (marker-position mark)
          (set-marker mark (point-max)))
        (let ((inhibit-read-only t)
              (movingp (= (point) mark)))
          (save-restriction
            (unless (<= (point-min) mark (point-max))
              (widen))
            (save-excursion
              (goto-char mark)
              (insert-before-markers text)
              (set-marker mark (point))))
          (when movingp
            (goto-char mark)))))))

(defun minder-default-sentinel (process text)
  "Insert TEXT, the end of PROCESS, into its buffer."
  (when (and (buffer-live-p (minder-process-buffer process))
             (memq (minder-process-state process) '(exit signal)))
    (minder-default-filter process (format "\nProcess %s %s"
                                           (minder-process-name process) text))))

(defun minder--flush (process)
  "Give what waits for the input of PROCESS to the module."
  (let ((roomp t))
    (while (and roomp (minder-process-input process))
      (let* ((string (car (minder-process-input process)))
             (count (minder--write (minder-process-key process) string)))
        (cond ((null count)
               (setf (minder-process-input process) nil
                     (minder-process-brokenp process) t))
              ((< count (length string))
               (setcar (minder-process-input process) (substring string count))
               (setq roomp nil))
              (t (pop (minder-process-input process))))))))

(defun minder-accept-output (&optional process seconds just-this-one)
  "Wait for output of PROCESS, at most SECONDS; return non-nil if some came.
Without PROCESS wait for an event of any process.  Without SECONDS wait until
something comes, or PROCESS has ended.  Filters and sentinels of all processes
run meanwhile, unless JUST-THIS-ONE is non-nil.  If it is an integer, timers do
not run either."
  (cond ((null minder--event-pipe)
         (and (null process) (accept-process-output nil seconds)))
        ((and process just-this-one (eq (minder-process-type process) 'real))
         (minder--with-only process #'minder--accept process seconds just-this-one))
        (t (minder--with-only nil #'minder--accept process seconds nil))))

(defun minder--with-only (only function &rest args)
  "Call FUNCTION with ARGS while `minder--only' is ONLY.
A timer may call it while other code waits for another process."
  (if (eq only minder--only)
      (apply function args)
    (minder--resume-waiting)
    (unwind-protect
        (let ((minder--only only))
          (apply function args))
      (minder--resume-waiting))))

(defun minder--accept (process seconds just-this-one)
  "Wait as `minder-accept-output' does.
PROCESS, SECONDS and JUST-THIS-ONE are its arguments."
  (let* ((deadline (and seconds (+ (float-time) seconds)))
         (heard (lambda () (if process (minder-process-pieces process) minder--handled)))
         (before (funcall heard))
         (waitp t))
    (minder--dispatch)
    (unless (process-live-p minder--event-pipe)
      ;; Other code has deleted it.
      (minder-ensure-started))
    (while (and waitp
                (= before (funcall heard))
                (or (null process)
                    (memq (minder-process-state process) '(run stop))))
      (let ((left (and deadline (max 0 (- deadline (float-time))))))
        (accept-process-output minder--event-pipe (minder--slice left) nil just-this-one)
        (when (and left (<= left 0))
          (setq waitp nil))))
    (/= before (funcall heard))))

(defun minder--slice (left)
  "Return how long to wait at once if LEFT seconds are left, or nil for ever.
Another thread of Lisp may handle the event that this one waits for."
  (if (and (fboundp 'all-threads) (cdr (all-threads)))
      (min 0.05 (or left 0.05))
    left))

(provide 'minder-dispatch)
;;; minder-dispatch.el ends here
