;;; minder-native.el --- Children behind process objects of Emacs  -*- lexical-binding: t; -*-

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

;; A native process is a process object of Emacs, so that `processp',
;; `get-buffer-process', `process-list', filters, buffers, marks and property
;; lists work as they are.  Its child is one of the module.
;;
;; The object is a socket that is never connected, and that Emacs does not watch
;; since it is "stopped": it costs one descriptor of Emacs and no time.  What
;; such an object has another meaning for (status, number, command, terminal,
;; signals, input, sentinel, waiting) is redirected to the child by an advice of
;; the primitive.  The advices stay after the first native process.

;;; Code:

(require 'minder-process)
(require 'seq)

(declare-function minder--pause "ext:minder-module")

(defvar minder--carriers (make-hash-table :test #'eq :weakness 'key)
  "The record of each process object.")

(defun minder--make-socket (name &rest args)
  "Return a socket NAME that is never connected nor watched, with more ARGS."
  (apply #'make-network-process :name name :type 'datagram :family 'local
         :service "/minder" :stop t args))

(defun minder--make-carrier (name buffer plist)
  "Return a process object NAME with BUFFER for a child with the keywords PLIST."
  (let ((carrier (condition-case problem
                     (minder--make-socket
                      name :buffer buffer
                      :noquery (plist-get plist :noquery)
                      :sentinel #'minder--carrier-changed
                      :plist (copy-sequence (plist-get plist :plist)))
                   (file-error
                    (signal 'minder-no-descriptor (cdr problem))))))
    (when (buffer-live-p buffer)
      (set-marker (process-mark carrier)
                  (with-current-buffer buffer (point-max)) buffer))
    carrier))

(defun minder--adopt (carrier process)
  "Make CARRIER the process object of PROCESS."
  (setf (minder-process-carrier process) carrier
        (minder-process-name process) (process-name carrier))
  (puthash carrier process minder--carriers))

(defun minder--drop-carrier (process)
  "Remove the process object of PROCESS, which has ended, from those that live."
  (let ((carrier (minder-process-carrier process)))
    (when carrier
      ;; The record is not live any more, so this reaches the primitive, and
      ;; `minder--carrier-changed' does nothing.
      (delete-process carrier))))

(defun minder--carrier-changed (carrier _text)
  "Handle that Emacs itself has deleted CARRIER, as `kill-buffer' does.
The child gets SIGHUP, as a child of Emacs would."
  (let ((process (gethash carrier minder--carriers)))
    (when (and process
               (minder--live-record-p process)
               (not (memq carrier (process-list))))
      (if (eq (minder-process-type process) 'real)
          (minder--signal-group process 1)
        (setf (minder-process-state process) 'exit)
        (minder--notify process)))))

(defun minder--live-record-p (process)
  "Return whether the module still has the child of PROCESS."
  (memq (minder-process-state process) '(run stop)))

;;;; The primitives

(defun minder--record (object)
  "Return the record of OBJECT if it denotes a native process, or nil.
OBJECT is what the primitives take: a process, a buffer, a name of one, or nil."
  (let ((process (cond ((processp object) object)
                       ((stringp object)
                        (or (get-process object)
                            (and (get-buffer object) (get-buffer-process object))))
                       ((bufferp object) (get-buffer-process object))
                       ((null object) (get-buffer-process (current-buffer))))))
    (and process (gethash process minder--carriers))))

(defvar minder--advices nil
  "The primitives that are redirected, with their advices.")

(defun minder--object-record (object)
  "Return the record of OBJECT if it is a native process, or nil."
  (and (processp object) (gethash object minder--carriers)))

(defun minder--named-record (object)
  "Return the record of OBJECT, or nil.
In contrast to `minder--record', a string is the name of a process alone."
  (and (or (not (stringp object)) (get-process object))
       (minder--record object)))

(defun minder--active (process)
  "Return PROCESS; signal the error of the primitives unless it is active."
  (cond ((not (eq (minder-process-type process) 'real))
         (error "Process %s is not a subprocess" (minder-process-name process)))
        ((not (minder--live-record-p process))
         (error "Process %s is not active" (minder-process-name process)))
        (t process)))

(defmacro minder--redirect (primitive arguments find &rest body)
  "Make BODY what PRIMITIVE does with a native process.
ARGUMENTS are those after the process, which the function FIND looks for.  In
BODY, `process' is its record, and `object' what PRIMITIVE got."
  (declare (indent 3))
  (let ((name (intern (format "minder--redirected-%s" primitive))))
    `(progn
       (defun ,name (original &optional object &rest rest)
         ,(format "Act as `%s': ORIGINAL with OBJECT and REST." primitive)
         (let ((process (,find object)))
           (if (null process)
               (apply original object rest)
             (let ,(seq-map-indexed (lambda (name at) `(,name (nth ,at rest))) arguments)
               ,@body))))
       (setf (alist-get ',primitive minder--advices) #',name))))

(minder--redirect process-status () minder--named-record
  (let ((state (minder-process-state process)))
    (cond ((not (eq (minder-process-type process) 'pipe)) state)
          ((eq state 'run) 'open)
          (t 'closed))))

(minder--redirect process-exit-status () minder--object-record
  (minder-process-code process))

(minder--redirect process-id () minder--object-record
  (minder-process-id process))

(minder--redirect process-command () minder--object-record
  (minder-process-command process))

(minder--redirect process-tty-name () minder--object-record
  (minder-process-tty-name process))

(minder--redirect process-type () minder--record
  (minder-process-type process))

(minder--redirect process-contact () minder--object-record
  t)

(minder--redirect process-sentinel () minder--object-record
  (or (minder-process-sentinel process) #'internal-default-process-sentinel))

(minder--redirect set-process-sentinel (sentinel) minder--object-record
  (minder-set-process-sentinel process sentinel)
  (or sentinel #'internal-default-process-sentinel))

(minder--redirect process-send-string (string) minder--record
  (minder-process-send-string process string))

(minder--redirect process-send-region (start end) minder--record
  (minder-process-send-region process start end))

(minder--redirect process-send-eof () minder--record
  (minder-process-send-eof process)
  object)

(minder--redirect kill-process (current-group) minder--record
  (minder-kill-process (minder--active process) current-group)
  object)

;; And not `interrupt-process', which calls `interrupt-process-functions'.
(minder--redirect internal-default-interrupt-process (current-group) minder--record
  (minder-interrupt-process (minder--active process) current-group)
  object)

(minder--redirect quit-process (current-group) minder--record
  (minder-quit-process (minder--active process) current-group)
  object)

(minder--redirect stop-process (current-group) minder--record
  (minder-stop-process (minder--active process) current-group)
  object)

(minder--redirect continue-process () minder--record
  (minder-continue-process (minder--active process))
  object)

(minder--redirect signal-process (signal) minder--record
  (minder--signal-alone process signal original))

(minder--redirect set-process-window-size (height width) minder--object-record
  (minder-set-process-window-size process height width))

(minder--redirect process-running-child-p () minder--record
  (minder--foreground-group (minder--active process)))

(defun minder--redirected-delete-process (original &optional object)
  "Do what `delete-process' does: ORIGINAL with OBJECT."
  (let ((process (minder--record object)))
    (if (null process)
        (funcall original object)
      (minder-delete-process process)
      ;; This has removed the object, unless it is that of a standard error.
      (funcall original (minder-process-carrier process))
      nil)))
(setf (alist-get 'delete-process minder--advices) #'minder--redirected-delete-process)

(defun minder--redirected-set-process-filter (original object filter)
  "Do what `set-process-filter' does: ORIGINAL with OBJECT and FILTER."
  (prog1 (funcall original object filter)
    (let ((process (minder--record object)))
      (when process
        (minder--pause-output process (eq filter t))))))
(setf (alist-get 'set-process-filter minder--advices)
      #'minder--redirected-set-process-filter)

(defun minder--redirected-accept-process-output
    (original &optional object seconds milliseconds just-this-one)
  "Do what `accept-process-output' does: ORIGINAL with OBJECT and a time-out.
SECONDS, MILLISECONDS and JUST-THIS-ONE are the other arguments of ORIGINAL."
  (let ((process (minder--object-record object)))
    (if (null process)
        (minder--with-only (and object just-this-one minder--only)
                           original object seconds milliseconds just-this-one)
      (minder-accept-output
       process
       (and (or seconds milliseconds)
            (+ (or seconds 0) (/ (or milliseconds 0) 1000.0)))
       just-this-one))))
(setf (alist-get 'accept-process-output minder--advices)
      #'minder--redirected-accept-process-output)

(defvar minder--advisedp nil
  "Whether all primitives are redirected.")

;;;; Trampolines

;; Natively compiled code calls a primitive directly, and so without an advice,
;; unless a trampoline takes the place of the primitive.  `advice-add' compiles a
;; missing one, which takes a third of a second for each primitive.  Here one file
;; has the trampolines of all primitives, and its compilation takes as long as
;; that of one.

(declare-function native-comp-available-p "comp.c")
(declare-function native-elisp-load "comp.c")
(declare-function comp--install-trampoline "comp.c")
(declare-function native-compile "comp")
(defvar comp-installed-trampolines-h)
(defvar comp-native-version-dir)
(defvar native-comp-eln-load-path)

(defun minder--trampoline-name (primitive)
  "Return the name of the trampoline of PRIMITIVE."
  (intern (format "minder--trampoline-%s" primitive)))

(defun minder--trampoline (primitive)
  "Return the definition of the trampoline of PRIMITIVE.
It has the arguments of PRIMITIVE, and a call by the symbol, which stays one
below speed 2."
  (pcase-let* ((`(,least . ,most) (subr-arity (symbol-function primitive)))
               (names (mapcar (lambda (at) (intern (format "argument-%d" at)))
                              (number-sequence 1 most))))
    `(defun ,(minder--trampoline-name primitive)
         (,@(seq-take names least) ,@(and (< least most) '(&optional)) ,@(nthcdr least names))
       (declare (speed 1))
       (funcall ',primitive ,@names))))

(defun minder--trampoline-directory ()
  "Return the first directory for compiled files that can be written, or nil."
  (seq-some (lambda (parent)
              (let ((directory (expand-file-name comp-native-version-dir parent)))
                (ignore-errors (make-directory directory t))
                (and (file-directory-p directory) (file-writable-p directory) directory)))
            native-comp-eln-load-path))

(defun minder--compile-trampolines (forms target)
  "Compile FORMS into the file TARGET."
  (require 'comp)
  (let* ((directory (make-temp-file "minder-trampolines" t))
         (source (expand-file-name "minder-trampolines.el" directory))
         (compiled (make-temp-file (concat target ".") nil ".eln"))
         (coding-system-for-write 'utf-8-unix))
    (unwind-protect
        (progn
          (write-region (concat ";;; -*- lexical-binding: t; -*-\n"
                                (mapconcat #'prin1-to-string forms "\n"))
                        nil source nil 'silent)
          (delete-file compiled)
          (native-compile source compiled)
          (rename-file compiled target t))
      (delete-directory directory t)
      (when (file-exists-p compiled)
        (delete-file compiled)))))

(defun minder--install-trampolines (primitives)
  "Install trampolines for PRIMITIVES, unless they have one.
They are compiled once for each user and version of Emacs.  If there is no
directory for them, `advice-add' does what it can."
  (when-let* ((enabled (seq-some (lambda (name) (and (boundp name) (symbol-value name)))
                                 '(native-comp-enable-subr-trampolines
                                   comp-enable-subr-trampolines)))
              (available (and (fboundp 'native-comp-available-p)
                              (fboundp 'comp--install-trampoline)
                              (native-comp-available-p)))
              (missing (seq-remove (lambda (primitive)
                                     (gethash primitive comp-installed-trampolines-h))
                                   primitives))
              (directory (minder--trampoline-directory)))
    (let* ((forms (mapcar #'minder--trampoline primitives))
           (hash (substring (sha1 (prin1-to-string forms)) 0 8))
           (file (expand-file-name (format "minder-trampolines-%s.eln" hash) directory)))
      (unless (file-exists-p file)
        (minder--compile-trampolines forms file))
      (native-elisp-load file)
      (dolist (primitive missing)
        (comp--install-trampoline
         primitive (symbol-function (minder--trampoline-name primitive)))))))

(defun minder--advise ()
  "Redirect the primitives, unless they are.
With native compilation this fails if no trampoline can be written."
  (unless minder--advisedp
    (let ((primitives (mapcar #'car minder--advices)))
      (condition-case problem
          (minder--install-trampolines primitives)
        (error (message "minder: trampolines are compiled one by one: %s"
                        (error-message-string problem)))))
    (pcase-dolist (`(,primitive . ,advice) minder--advices)
      (advice-add primitive :around advice))
    (setq minder--advisedp t)))

(defun minder-native-unload-function ()
  "Remove the redirections before this library is unloaded."
  (pcase-dolist (`(,primitive . ,advice) minder--advices)
    (advice-remove primitive advice))
  (setq minder--advisedp nil)
  ;; The rest is done as usual.
  nil)

(provide 'minder-native)
;;; minder-native.el ends here
