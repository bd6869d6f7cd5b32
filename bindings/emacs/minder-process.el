;;; minder-process.el --- Light processes  -*- lexical-binding: t; -*-

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

;; A light process has no descriptor of Emacs, so thousands of them can live.
;; The functions have the names and arguments of those of Emacs' processes,
;; with the prefix `minder-'.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'minder-dispatch)

(declare-function minder--close-stdin "ext:minder-module")
(declare-function minder--kill "ext:minder-module")
(declare-function minder--signal "ext:minder-module")
(declare-function minder--suspend "ext:minder-module")
(declare-function minder--resume "ext:minder-module")
(declare-function minder--resize "ext:minder-module")

;;;; Reading and changing

(defun minder--mark (buffer)
  "Return a marker for the end of BUFFER, if there is one."
  (let ((mark (make-marker)))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (set-marker mark (point-max))))
    mark))

(defun minder-process-live-p (process)
  "Return non-nil if PROCESS has not ended."
  (memq (minder-process-state process) '(run stop)))

(defun minder-process-status (process)
  "Return the status of PROCESS: `run', `stop', `exit' or `signal'."
  (minder-process-state process))

(defun minder-process-exit-status (process)
  "Return the exit code of PROCESS, or the signal that killed it; 0 if it lives."
  (minder-process-code process))

(defun minder--all ()
  "Return the records of all live children."
  (hash-table-values minder--processes))

(defun minder-process-list ()
  "Return the live light processes."
  (cl-remove-if #'minder-process-carrier (minder--all)))

(defun minder--output-buffer (process)
  "Return the buffer of PROCESS, light or native, or nil."
  (let ((carrier (minder-process-carrier process)))
    (if carrier (process-buffer carrier) (minder-process-buffer process))))

(defun minder-get-process (name)
  "Return the live light process with this NAME, or nil."
  (gethash name minder--names))

(defun minder-get-buffer-process (buffer)
  "Return a live light process with this BUFFER, or nil."
  (let ((buffer (and buffer (get-buffer buffer))))
    (and buffer
         (cl-find buffer (minder-process-list) :key #'minder-process-buffer))))

(defun minder-set-process-filter (process filter)
  "Give PROCESS this FILTER; nil is the default, and with t no output comes."
  (setf (minder-process-filter process) filter)
  (minder--pause-output process (eq filter t))
  filter)

(defun minder-set-process-sentinel (process sentinel)
  "Give PROCESS this SENTINEL; nil is the default."
  (setf (minder-process-sentinel process) sentinel))

(defun minder-set-process-buffer (process buffer)
  "Make the output of PROCESS go to BUFFER from now on."
  (unless (or (null buffer) (bufferp buffer))
    (signal 'wrong-type-argument (list 'bufferp buffer)))
  (setf (minder-process-buffer process) buffer
        (minder-process-mark process) (minder--mark buffer))
  (when (buffer-live-p buffer)
    (minder--watch-buffer buffer))
  buffer)

(defun minder-set-process-query-on-exit-flag (process flag)
  "Make Emacs ask before it exits while PROCESS lives if FLAG is non-nil."
  (setf (minder-process-query-on-exit-flag process) flag))

(defun minder-set-process-coding-system (process &optional decoding encoding)
  "Use DECODING for the output of PROCESS, and ENCODING for its input."
  (check-coding-system decoding)
  (check-coding-system encoding)
  (when decoding
    (setf (minder-decoder-coding (minder-process-decoder process)) decoding))
  (when encoding
    (setf (minder-process-encoding process) encoding)))

(defun minder-process-put (process key value)
  "Set KEY of the property list of PROCESS to VALUE."
  (setf (minder-process-plist process)
        (plist-put (minder-process-plist process) key value)))

(defun minder-process-get (process key)
  "Return the value of KEY in the property list of PROCESS."
  (plist-get (minder-process-plist process) key))

;;;; Input

(defun minder-process-send-string (process string)
  "Send STRING to the input of PROCESS.
While the child does not read, wait for it, and serve the other processes.
As with a process of Emacs, STRING is lost after `minder-process-send-eof'."
  (let ((bytes (encode-coding-string string (minder--encoding process) t)))
    (unless (minder--input-closed-p process)
      (setf (minder-process-input process)
            (append (minder-process-input process) (minder--slices bytes)))
      (minder--flush process)
      (minder--wait-for-input process))
    nil))

(defun minder--wait-for-input (process)
  "Wait until the module has all input of PROCESS."
  (while (minder-process-input process)
    (minder-accept-output nil 1)))

(defun minder--encoding (process)
  "Return the coding system of the input of PROCESS."
  (let ((carrier (minder-process-carrier process)))
    (if carrier
        (cdr (process-coding-system carrier))
      (minder-process-encoding process))))

(defun minder--input-closed-p (process)
  "Return whether the input of PROCESS was closed by us.
Signal an error if PROCESS has ended, or has closed its input itself."
  (cond ((not (minder-process-live-p process))
         (error "Process %s not running" (minder-process-name process)))
        ((minder-process-eofp process) t)
        ((minder-process-brokenp process)
         (error "Cannot write to process %s: its input is closed"
                (minder-process-name process)))))

(defun minder--slices (bytes)
  "Return BYTES in parts that the module takes at once."
  (let ((size (length bytes))
        (at 0)
        parts)
    (while (< at size)
      (let ((end (min size (+ at 262144))))
        (push (substring bytes at end) parts)
        (setq at end)))
    (nreverse parts)))

(defun minder-process-send-region (process start end)
  "Send the text between START and END to the input of PROCESS."
  (minder-process-send-string process (buffer-substring-no-properties start end)))

(defun minder-process-send-eof (process)
  "Close the input of PROCESS; on a terminal send the character for that."
  (unless (minder--input-closed-p process)
    (if (minder-process-tty-name process)
        (minder-process-send-string process "\C-d")
      ;; A filter may send it while other code waits in `minder-process-send-string'.
      (minder--wait-for-input process)
      (when (minder-process-live-p process)
        (setf (minder-process-eofp process) t)
        (minder--close-stdin (minder-process-key process)))))
  process)

;;;; Signals

(defmacro minder--when-live (process &rest body)
  "Run BODY if PROCESS lives, and return PROCESS."
  (declare (indent 1))
  `(progn
     (when (gethash (minder-process-key ,process) minder--processes)
       ,@body)
     ,process))

(defun minder--foreground-group (process)
  "Return the value of `process-running-child-p' for PROCESS.
This is the process group in the foreground of its terminal, unless that is the
group of PROCESS."
  (let* ((id (minder-process-id process))
         (group (and (minder-process-live-p process)
                     (alist-get 'tpgid (process-attributes id)))))
    (cond ((null group) nil)
          ((= group id) nil)
          ((< group 0) t)
          (t group))))

(defun minder-kill-process (process &optional current-group)
  "Kill PROCESS with everything that it started.
With CURRENT-GROUP and a terminal, kill what runs in the foreground, unless that
is PROCESS itself."
  (let ((group (and current-group
                    (minder-process-tty-name process)
                    (minder--foreground-group process))))
    (if (and (integerp group) (> group 1))
        (signal-process (- group) 9)
      (minder--when-live process
        (minder--kill (minder-process-key process) 0))))
  process)

(defun minder-terminate-process (process &optional seconds)
  "Ask PROCESS to exit by SIGTERM, and kill its tree after SECONDS (5)."
  (minder--when-live process
    (minder--kill (minder-process-key process) (round (* 1000 (or seconds 5))))))

(defun minder--signal-group (process number)
  "Send the signal NUMBER to the process group of PROCESS; return PROCESS."
  (minder--when-live process
    (minder--signal (minder-process-key process) number)))

(defun minder-signal-process (process signal)
  "Send SIGNAL, a number or a name, to PROCESS alone; return PROCESS."
  (minder--signal-alone process (if (stringp signal) (intern signal) signal)
                        #'signal-process)
  process)

(defun minder--signal-alone (process signal send)
  "Send SIGNAL to PROCESS by SEND, which takes a number of a process and SIGNAL.
Return the value of SEND, or -1 if PROCESS has ended."
  (if (and (gethash (minder-process-key process) minder--processes)
           ;; After its end, the number may be that of another process.
           (minder--signal (minder-process-key process) 0))
      (funcall send (minder-process-id process) signal)
    -1))

(defun minder--send-signal (process signal character current-group)
  "Send SIGNAL to PROCESS; with CURRENT-GROUP and a terminal send CHARACTER."
  (if (and current-group (minder-process-tty-name process))
      (minder-process-send-string process character)
    (minder--signal-group process signal))
  process)

(defun minder-interrupt-process (process &optional current-group)
  "Interrupt PROCESS by SIGINT.
With CURRENT-GROUP and a terminal, interrupt what runs in the foreground."
  (minder--send-signal process 2 "\C-c" current-group))

(defun minder-quit-process (process &optional current-group)
  "Send SIGQUIT to PROCESS; CURRENT-GROUP as in `minder-interrupt-process'."
  (minder--send-signal process 3 "\C-\\" current-group))

(defun minder-stop-process (process &optional current-group)
  "Suspend PROCESS with everything that it started.
With CURRENT-GROUP and a terminal, suspend what runs in the foreground."
  (if (and current-group (minder-process-tty-name process))
      (minder-process-send-string process "\C-z")
    (minder--when-live process
      (minder--suspend (minder-process-key process))
      (setf (minder-process-state process) 'stop)))
  process)

(defun minder-continue-process (process)
  "Resume PROCESS after `minder-stop-process'."
  (minder--when-live process
    (minder--resume (minder-process-key process))
    (setf (minder-process-state process) 'run)))

(defun minder-delete-process (process)
  "Kill PROCESS with everything that it started, and forget its output.
Its sentinel is called before this function returns."
  (minder--when-live process
    (minder-kill-process process)
    (minder--lost process)))

(defun minder-set-process-window-size (process height width)
  "Give the terminal of PROCESS HEIGHT lines and WIDTH columns.
Return non-nil if it has a terminal."
  (when (minder-process-tty-name process)
    (minder--when-live process
      (minder--resize (minder-process-key process) height width))))

;;;; Buffers

(defun minder--watch-buffer (buffer)
  "Ask before BUFFER is killed while a process writes to it, as Emacs does."
  (with-current-buffer buffer
    (add-hook 'kill-buffer-query-functions #'minder--kill-buffer-p nil t)
    (add-hook 'kill-buffer-hook #'minder--buffer-killed nil t)))

(defun minder--kill-buffer-p ()
  "Return whether the current buffer may be killed."
  (let ((process (minder-get-buffer-process (current-buffer))))
    (or (null process)
        (not (minder-process-query-on-exit-flag process))
        (yes-or-no-p (format "Buffer %S has a running process; kill it? "
                             (buffer-name))))))

;; A major mode that is turned on later must not remove it.
(put 'minder--kill-buffer-p 'permanent-local-hook t)

(defun minder--buffer-killed ()
  "Kill the processes with the current buffer."
  (dolist (process (minder-process-list))
    (when (eq (minder-process-buffer process) (current-buffer))
      (minder-delete-process process))))

(provide 'minder-process)
;;; minder-process.el ends here
