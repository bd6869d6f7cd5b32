;;; minder.el --- Child processes that never wait for their reader  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The minder authors

;; Author: The minder authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: processes, tools
;; URL: https://example.org/minder

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

;; A thread of the module reads all children all the time, so no child waits
;; while Emacs is busy, and a filter gets large pieces in few calls.
;;
;;   (minder-make-process :name "find" :buffer "*find*"
;;                        :command '("find" "/usr" "-name" "*.h"))
;;
;; The result is a process object of Emacs.  `minder-mode' uses such processes
;; for compile, shell, eshell and others.
;;
;; With `:light t' it has no descriptor of Emacs: thousands of them can live.
;; The functions `minder-process-…' do with it what `process-…' do with a
;; process of Emacs.  See README.md for the differences.

;;; Code:

(require 'cl-lib)
(require 'minder-start)
(require 'minder-relay)

(declare-function minder--start "ext:minder-module")
(declare-function minder--attach "ext:minder-module")
(declare-function minder--stop "ext:minder-module")
(declare-function minder--started-p "ext:minder-module")

(defgroup minder nil
  "Child processes that never wait for Emacs."
  :group 'processes
  :prefix "minder-")

(define-error 'minder-error "Cannot do that with a child process")
(define-error 'minder-no-descriptor "No descriptor is free for a native process"
  'minder-error)

(defvar minder--stockp nil
  "Whether `make-process' is called for a process of Emacs.")

(defvar minder--logged nil
  "The lines that are in the log.")

(defun minder--log (format &rest args)
  "Append a line to the buffer *minder log*, unless it is there: FORMAT with ARGS."
  (let ((line (apply #'format-message format args)))
    (unless (member line minder--logged)
      (push line minder--logged)
      (with-current-buffer (get-buffer-create "*minder log*")
        (save-excursion
          (goto-char (point-max))
          (let ((inhibit-read-only t))
            (insert line "\n")))))))

(defcustom minder-module-directory nil
  "The directory of the module and of the program `minder-guardian'.
Nil is the directory of this package."
  :type '(choice (const nil) directory))

(defconst minder--directory
  (file-name-directory (or load-file-name buffer-file-name default-directory))
  "The directory of this package.")

(defun minder--file (name)
  "Return the path of the file NAME in the directory of the module, or nil."
  (let ((path (expand-file-name name (or minder-module-directory minder--directory))))
    (and (file-exists-p path) path)))

(defun minder-load-module ()
  "Load the module, unless it is loaded."
  (unless (featurep 'minder-module)
    (unless (fboundp 'module-load)
      (error "Cannot load the module of minder: this Emacs has no modules"))
    (let ((path (minder--file (concat "minder-module" module-file-suffix))))
      (unless path
        (error "Cannot find minder-module%s in %s; build it: M-x minder-module-compile"
               module-file-suffix (or minder-module-directory minder--directory)))
      (condition-case reason
          (module-load path)
        ;; It is for another system, or for a newer C library.
        (module-open-failed
         (error "Cannot load %s: %s; build it: M-x minder-module-compile"
                path (error-message-string reason)))))))

(defun minder-module-compile (directory)
  "Build the module for this Emacs from DIRECTORY, a copy of the repository.
This takes a minute or two and needs cargo.  The module that is loaded stays in
use until Emacs is started again."
  (interactive "DDirectory of the repository of minder: ")
  (let ((default-directory (file-name-as-directory (expand-file-name directory))))
    (compile (minder--compile-command
              (or minder-module-directory minder--directory)))))

(defun minder--compile-command (target)
  "Return a shell command that puts the module into the directory TARGET."
  (let ((to (shell-quote-argument (expand-file-name target))))
    ;; "install" removes the old file first: this Emacs may have it in memory.
    (concat "cargo build --release --package minder-emacs --package minder-guardian"
            " && install -d " to
            " && install target/release/libminder_module" module-file-suffix
            " " to "/minder-module" module-file-suffix
            " && install target/release/minder-guardian " to)))

(defun minder-ensure-started ()
  "Load the module and start its set of children, unless that was done."
  (minder-load-module)
  (unless (process-live-p minder--event-pipe)
    (let ((pipe (minder--make-event-pipe)))
      (unwind-protect
          (progn
            (if (minder--started-p)
                (minder--attach pipe)
              (minder--start pipe (minder--file "minder-guardian")))
            (setq minder--event-pipe pipe))
        (unless (eq minder--event-pipe pipe)
          (delete-process pipe)))
      (add-hook 'kill-emacs-query-functions #'minder--kill-emacs-p)
      ;; At the end: other functions of the hook may talk to their processes.
      (add-hook 'kill-emacs-hook #'minder--kill-emacs 90))))

(defun minder--make-event-pipe ()
  "Return a pipe process that handles events."
  ;; With this variable, Emacs would read single bytes 20 ms late.
  (let* ((process-adaptive-read-buffering nil)
         (buffer (generate-new-buffer " *minder-events*"))
         (pipe (unwind-protect
                   (make-pipe-process :name "minder-events" :noquery t :buffer buffer
                                      :coding 'no-conversion
                                      :filter #'minder--on-events
                                      :sentinel #'minder--event-pipe-deleted)
                 ;; Without one, Emacs makes a buffer that is listed.
                 (when (get-buffer-process buffer)
                   (set-process-buffer (get-buffer-process buffer) nil))
                 (kill-buffer buffer))))
    (set-process-thread pipe nil)
    pipe))

(defun minder--event-pipe-deleted (process _text)
  "Replace the pipe process PROCESS if other code has deleted it."
  (when (and (eq process minder--event-pipe)
             (not (process-live-p process)))
    (run-at-time 0 nil #'minder-ensure-started)))

(defun minder-stop ()
  "Kill all processes of minder, and stop the set of children.
The sentinels are called.  The next process starts another set."
  (interactive)
  (when minder--event-pipe
    (let ((pipe minder--event-pipe))
      (setq minder--event-pipe nil
            minder--batch-next 0
            minder--batch-end 0)
      (delete-process pipe)
      (minder--stop))
    (let ((all (minder--all)))
      ;; The next set may use the same numbers.
      (mapc #'minder--forget all)
      (minder--lose all))))

(defun minder--lose (processes)
  "Handle that PROCESSES have ended with the set of children."
  (unwind-protect
      (while processes
        (minder--lost (pop processes)))
    ;; A sentinel may leave by `throw'.
    (when processes
      (run-at-time 0 nil #'minder--lose processes))))

(defun minder--kill-emacs ()
  "Kill all light processes, without their sentinels, when Emacs exits."
  (when minder--event-pipe
    (setq minder--event-pipe nil)
    (mapc #'minder--forget (minder--all))
    (minder--stop)))

(defun minder--kill-emacs-p ()
  "Return whether Emacs may exit: ask if there are live processes."
  (let ((live (cl-remove-if-not #'minder-process-query-on-exit-flag
                                (minder-process-list))))
    (or (null live)
        (not confirm-kill-processes)
        (yes-or-no-p (format "%d light processes run; kill them and exit anyway? "
                             (length live))))))

;;;###autoload
(defun minder-make-process (&rest args)
  "Start a process with ARGS, the keywords of `make-process', and return it.

With `:light t' the result is a light process: `minder-process-p' is true for
it, and the functions `minder-process-…' take it.  Otherwise it is a native
process: a process object of Emacs.  It needs one descriptor of Emacs; without
a free one, and if `:file-handler' is given and `default-directory' is remote,
the result is that of `make-process'.  Without the module, the command
`minder-program' is started as a helper for each native process.

More keywords: `:framing' is `content-length', `lines' or
`nul': the filter then gets each message of the standard output as one unibyte
string.  `:plist' is the initial property list.  `:connection-type' is a pipe
by default.  With `:stderr' it always is.

\(fn &rest ARGS)"
  (cond ((null args) nil)
        ((and (plist-get args :file-handler)
              (find-file-name-handler default-directory 'make-process))
         (minder--make-stock args))
        ((plist-get args :light)
         (minder-ensure-started)
         (minder--make-light args))
        ((minder--module-missing-p)
         (let ((minder--stockp t))
           (minder--make-relay (minder--stock-arguments args))))
        (t (minder-ensure-started)
           (condition-case problem
               (minder--make-native args)
             (minder-no-descriptor
              (minder--log "%s: started by Emacs: %s" (plist-get args :name)
                           (error-message-string problem))
              (minder--make-stock args))))))

(defun minder--module-missing-p ()
  "Return whether the module cannot be used, and the helper can."
  (and (not (featurep 'minder-module))
       (condition-case nil
           (progn (minder-load-module) nil)
         (error (minder--relay-p)))))

(defun minder--make-stock (args)
  "Start a process of Emacs with the keywords ARGS."
  (let ((minder--stockp t))
    (apply #'make-process (minder--stock-arguments args))))

(defun minder--stock-arguments (args)
  "Return ARGS with those keywords alone that `make-process' knows.
Signal an error for `:framing', which it cannot do."
  (when (plist-get args :framing)
    (error "Cannot cut the output of a process of Emacs into messages"))
  (let (known)
    (while args
      (unless (memq (car args) '(:light :framing :plist))
        (setq known (cons (cadr args) (cons (car args) known))))
      (setq args (cddr args)))
    (nreverse known)))

(defun minder-unload-function ()
  "Stop the set of children before this library is unloaded."
  (remove-hook 'kill-emacs-query-functions #'minder--kill-emacs-p)
  (remove-hook 'kill-emacs-hook #'minder--kill-emacs)
  (minder-stop)
  nil)

(provide 'minder)
;;; minder.el ends here
