;;; minder-start.el --- The start of light processes  -*- lexical-binding: t; -*-

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

;; This file starts light processes: it turns the keywords of `make-process'
;; into what the module needs.

;;; Code:

(require 'cl-lib)
(require 'minder-process)
(require 'minder-native)

(declare-function minder--spawn "ext:minder-module")

(defun minder--make-light (plist)
  "Start a light process with the keywords of PLIST, and return it."
  (let ((process (minder--make-record)))
    (unwind-protect
        (minder--make-child process plist)
      (minder--abandon process))
    process))

(defun minder--make-native (plist)
  "Start a native process with the keywords of PLIST, and return its object."
  (let* ((name (minder--checked-name (plist-get plist :name)))
         (given (plist-get plist :buffer))
         (buffer (and given (get-buffer-create given)))
         (process (minder--make-record)))
    (minder--advise)
    (let ((carrier (minder--make-carrier name buffer plist)))
      (minder--adopt carrier process)
      (unwind-protect
          (minder--make-child process plist)
        (minder--abandon process))
      carrier)))

(defun minder--abandon (process)
  "Remove what was made for PROCESS if its child could not be started."
  (unless (minder-process-key process)
    (dolist (record (list process (minder-process-stderr process)))
      (when record
        (setf (minder-process-state record) 'exit)
        (when (minder-process-carrier record)
          (minder--drop-carrier record)
          (remhash (minder-process-carrier record) minder--carriers))))))

(defun minder--make-child (process plist)
  "Start the child of PROCESS, a new record, with the keywords of PLIST."
  (let* ((command (minder--checked-command (plist-get plist :command)))
         (buffer (let ((given (plist-get plist :buffer)))
                   (and given (get-buffer-create given))))
         (carrier (minder-process-carrier process))
         (name (if carrier (process-name carrier)
                 (minder--unique-name (plist-get plist :name))))
         (stderr (plist-get plist :stderr))
         (framing (plist-get plist :framing))
         (terminalp (and (null stderr) (minder--wants-terminal-p plist)))
         (filter (plist-get plist :filter))
         (coding (minder--coding plist name buffer command)))
    (setf (minder-process-name process) name
          (minder-process-command process) command
          (minder-process-buffer process) buffer
          (minder-process-sentinel process) (plist-get plist :sentinel)
          (minder-process-decoder process) (minder--make-decoder (car coding))
          (minder-process-coding process) (car coding)
          (minder-process-started process) (current-time))
    (if carrier
        (set-process-coding-system carrier (car coding) (cdr coding))
      (setf (minder-process-filter process) filter
            (minder-process-mark process) (minder--mark buffer)
            (minder-process-query-on-exit-flag process) (not (plist-get plist :noquery))
            (minder-process-encoding process) (cdr coding)
            (minder-process-plist process) (plist-get plist :plist)))
    (when stderr
      (setf (minder-process-error-decoder process) (minder--make-decoder (car coding))
            (minder-process-stderr process) (minder--stderr stderr name carrier
                                                            (plist-get plist :noquery))))
    (minder--start-child process command (cdr coding) terminalp (and stderr t) framing)
    (cond (carrier (set-process-filter carrier filter))
          ((eq filter t) (minder--pause-output process t)))
    (when (and (null carrier) (buffer-live-p buffer))
      (minder--watch-buffer buffer))
    (when (plist-get plist :stop)
      (minder-stop-process process))))

(defun minder--checked-command (command)
  "Return COMMAND; signal an error unless it is a list of strings."
  (unless (and (consp command) (cl-every #'stringp command))
    (signal 'wrong-type-argument (list 'consp command)))
  command)

(defun minder--start-child (process command encoding terminalp stderrp framing)
  "Start COMMAND as the child of PROCESS, with arguments in ENCODING.
TERMINALP, STDERRP and FRAMING are as in `minder-make-process'."
  (let* ((program (minder--program (car command)))
         (words (cons program (minder--encoded-arguments (cdr command) encoding)))
         (directory (minder--directory))
         ;; A quit after the start would leave a child that nobody knows.
         (inhibit-quit t)
         (started (minder--spawn
                   (minder--encoded (if terminalp (minder--with-terminal words) words))
                   (minder--encode directory)
                   (minder--encoded (minder--environment directory))
                   (and terminalp (minder--window-size (minder-process-buffer process)))
                   stderrp
                   (and framing (symbol-name framing)))))
    (setf (minder-process-key process) (car started)
          (minder-process-id process) (cdr started)
          (minder-process-tty-name process)
          (and terminalp
               (file-symlink-p (format "/proc/%d/fd/0" (cdr started)))))
    (puthash (car started) process minder--processes)
    (unless (minder-process-carrier process)
      (puthash (minder-process-name process) process minder--names))))

(defvar minder--last-numbers (make-hash-table :test #'equal)
  "The last number that was appended to a name.")

(defun minder--checked-name (name)
  "Return NAME; signal an error unless it is a string."
  (unless (stringp name)
    (signal 'wrong-type-argument (list 'stringp name)))
  name)

(defun minder--unique-name (name)
  "Return NAME, with a number if a live process has this name."
  (minder--checked-name name)
  (if (null (minder-get-process name))
      name
    ;; The search begins at 1, unless thousands have the same name.
    (let* ((last (gethash name minder--last-numbers 0))
           (number (if (and (> last 16)
                            (minder-get-process (format "%s<%d>" name last)))
                       last 0))
           unique)
      (while (progn
               (setq number (1+ number)
                     unique (format "%s<%d>" name number))
               (minder-get-process unique)))
      (puthash name number minder--last-numbers)
      unique)))

(defun minder--stderr (target name nativep noqueryp)
  "Return the process that gets the standard error of the process NAME.
TARGET is a buffer, its name, or a pipe process of Emacs.
NATIVEP is whether the process NAME is a native one, and NOQUERYP whether
Emacs may exit while it lives."
  (if (processp target)
      (progn
        (unless (eq (process-type target) 'pipe)
          (error "Process is not a pipe process"))
        (minder--make-record :name (process-name target) :mark (make-marker) :type 'pipe
                             :filter (lambda (_ text)
                                       (funcall (process-filter target) target text))
                             :sentinel (lambda (&rest _)
                                         (minder--end-of-stderr target))))
    (let* ((buffer (get-buffer-create target))
           (name (concat name " stderr"))
           (process (minder--make-record :name name :buffer buffer :type 'pipe
                                         :mark (minder--mark buffer))))
      (when nativep
        (minder--adopt (minder--make-carrier name buffer (list :noquery noqueryp)) process))
      process)))

(defun minder--end-of-stderr (target)
  "End TARGET, a pipe process of Emacs that got the standard error of a child."
  (let ((sentinel (process-sentinel target)))
    (set-process-sentinel target #'ignore)
    (delete-process target)
    (funcall sentinel target "finished\n")))

(defun minder--wants-terminal-p (plist)
  "Return whether PLIST asks for a pseudo-terminal."
  (let* ((type (plist-get plist :connection-type))
         (types (if (consp type) (list (car type) (cdr type)) (list type))))
    (dolist (one types)
      (unless (memq one '(nil pipe pty))
        (signal 'file-error (list "Unknown connection type" one))))
    (and (memq 'pty types) t)))

(defun minder--coding (plist name buffer command)
  "Return the coding systems for PLIST, to decode and to encode.
NAME, BUFFER and COMMAND are those of the process."
  (let* ((given (plist-get plist :coding))
         (found (and (null given)
                     (find-operation-coding-system
                      'start-process name buffer (car command))))
         (unibytep (and (buffer-live-p buffer)
                        (not (buffer-local-value 'enable-multibyte-characters buffer))))
         (read (cond ((consp given) (car given))
                     (given)
                     (coding-system-for-read)
                     (unibytep 'raw-text)
                     ((consp found) (car found))
                     (found)
                     (t (car default-process-coding-system))))
         (write (cond ((consp given) (cdr given))
                      (given)
                      (coding-system-for-write)
                      ((consp found) (cdr found))
                      (found)
                      (t (cdr default-process-coding-system)))))
    (cons (or (and read (check-coding-system read)) 'undecided)
          (or (and write (check-coding-system write)) 'utf-8-unix))))

(defun minder--descriptor-free-p ()
  "Return whether Emacs has a descriptor that it can use."
  (condition-case nil
      (progn (delete-process (minder--make-socket "minder" :noquery t))
             t)
    (file-error nil)))

(defun minder--program (name)
  "Return the file of the program NAME; signal an error if there is none."
  (let ((found (if (file-name-absolute-p name)
                   (and (file-executable-p name) name)
                 (executable-find name))))
    (unless found
      ;; Emacs finds no file without a descriptor.
      (if (minder--descriptor-free-p)
          (signal 'file-missing
                  (list "Searching for program" "No such file or directory" name))
        (signal 'minder-no-descriptor (list name))))
    (file-name-unquote (file-local-name (expand-file-name found)))))

(defun minder--with-terminal (words)
  "Return a command for WORDS on a terminal like one of `make-process'.
There is no echo, and a line end stays one byte."
  (append '("/bin/sh" "-c"
            "stty -echo -onlcr erase undef kill undef 2>/dev/null; exec \"$0\" \"$@\"")
          words))

(defun minder--encode (string)
  "Return the bytes of STRING for the operating system."
  (encode-coding-string string (or locale-coding-system 'utf-8-unix) t))

(defun minder--encoded-arguments (arguments encoding)
  "Return the bytes of ARGUMENTS for a child whose input is in ENCODING.
Emacs uses the same coding system for both."
  (let ((coding (if (memq (coding-system-type encoding) '(raw-text undecided utf-16))
                    (or locale-coding-system 'utf-8-unix)
                  encoding)))
    (mapcar (lambda (argument) (encode-coding-string argument coding t)) arguments)))

(defun minder--encoded (strings)
  "Return a vector of the bytes of STRINGS."
  (vconcat (mapcar #'minder--encode strings)))

(defun minder--directory ()
  "Return the directory for a child: the current one, if it is a local one."
  (let ((directory (expand-file-name
                    (or (unhandled-file-name-directory default-directory) "~/"))))
    (unless (file-accessible-directory-p directory)
      (signal 'file-missing
              (list "Setting current directory" "No such file or directory" directory)))
    directory))

(defun minder--environment (directory)
  "Return the environment for a child in DIRECTORY.
As for a child of Emacs, PWD is there if Emacs has it, and DISPLAY is that of
the frame: Emacs itself removes it from the variable `process-environment'."
  (let ((display (getenv "DISPLAY"))
        (entries (cl-remove-if-not (lambda (entry)
                                     (and (stringp entry) (string-match-p "\\`[^=]" entry)))
                                   process-environment)))
    (when display
      (push (concat "DISPLAY=" display) entries))
    (when (getenv "PWD")
      (push (concat "PWD=" (directory-file-name directory)) entries))
    entries))

(defun minder--window-size (buffer)
  "Return the size of the window of BUFFER, as a vector of lines and columns."
  (let ((window (and buffer (get-buffer-window buffer t))))
    (if window
        (vector (window-body-height window) (window-max-chars-per-line window))
      [24 80])))

(provide 'minder-start)
;;; minder-start.el ends here
