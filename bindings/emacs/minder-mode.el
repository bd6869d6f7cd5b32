;;; minder-mode.el --- Let other libraries use minder  -*- lexical-binding: t; -*-

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

;; `minder-mode' is a global minor mode.  While it is on, `make-process' starts a
;; native process of minder for the libraries that `minder-mode-predicates' name:
;; compile, grep, comint, shell, eshell, and those of language servers.  What
;; minder cannot carry goes to Emacs, and a line in the buffer *minder log* says
;; why, once for each reason.

;;; Code:

(require 'cl-lib)
(require 'minder)

(defcustom minder-mode-predicates
  (list #'minder-for-compilation-p #'minder-for-comint-p #'minder-for-eshell-p
        #'minder-for-jsonrpc-p)
  "The functions that choose the processes for minder.
Each is called with the keywords of `make-process', in the buffer of the caller.
If one of them returns non-nil, the process is one of minder.  The function
`always' chooses all."
  :type '(repeat function)
  :group 'minder)

(defun minder--in-mode-p (plist &rest modes)
  "Return whether the buffer of PLIST, or the current one, is in one of MODES."
  (let ((buffer (let ((given (plist-get plist :buffer)))
                  (and given (get-buffer given)))))
    (with-current-buffer (if (buffer-live-p buffer) buffer (current-buffer))
      (apply #'derived-mode-p modes))))

(defun minder-for-compilation-p (plist)
  "Return whether PLIST is for `compile', `grep' or another such command."
  (minder--in-mode-p plist 'compilation-mode))

(defun minder-for-comint-p (plist)
  "Return whether PLIST is for `shell' or another mode of `comint'."
  (minder--in-mode-p plist 'comint-mode))

(defun minder-for-eshell-p (plist)
  "Return whether PLIST is for `eshell'."
  (minder--in-mode-p plist 'eshell-mode))

(defun minder-for-jsonrpc-p (plist)
  "Return whether PLIST is for a server of `eglot' or `lsp-mode'.
`eglot' names the process so, and `lsp-mode' the buffer of its standard error."
  (let ((name (plist-get plist :name))
        (stderr (plist-get plist :stderr)))
    (or (and (stringp name) (string-prefix-p "EGLOT (" name))
        (let ((buffer (and (or (stringp stderr) (bufferp stderr)) (get-buffer stderr))))
          (and buffer (string-suffix-p "::stderr*" (buffer-name buffer)))))))

(defvar minder-mode-carried 0
  "How many processes of other libraries minder has started.")

(defun minder--obstacle (plist)
  "Return why minder cannot carry a process with the keywords PLIST, or nil."
  (let ((command (plist-get plist :command)))
    (cond ((null command) "a terminal without a program")
          ((not (and (consp command) (cl-every #'stringp command)))
           "a command that is not a list of strings")
          ((and (plist-get plist :file-handler)
                (find-file-name-handler default-directory 'make-process))
           "a remote directory")
          ((plist-get plist :stop) "the keyword `:stop', which is an error")
          ((not (minder--executable-p (car command)))
           "a program that does not exist"))))

(defun minder--executable-p (program)
  "Return whether PROGRAM can be found."
  (if (file-name-absolute-p program)
      (file-executable-p program)
    (executable-find program)))

(defun minder--chosen-p (plist)
  "Return whether one of `minder-mode-predicates' chooses PLIST."
  (cl-some (lambda (predicate)
             (condition-case problem
                 (funcall predicate plist)
               (error
                (minder--log "%S fails: %s" predicate (error-message-string problem))
                nil)))
           minder-mode-predicates))

(defun minder--around-make-process (original &rest plist)
  "Start a process with PLIST by minder if it may, or else by ORIGINAL."
  (if (or minder--stockp (not (minder--chosen-p plist)))
      (apply original plist)
    (let ((obstacle (minder--obstacle plist)))
      (if (null obstacle)
          (minder--carry original plist)
        (minder--log "%s: started by Emacs: %s" (plist-get plist :name) obstacle)
        (apply original plist)))))

(defun minder--carry (original plist)
  "Start a process with PLIST by minder; if that fails, by ORIGINAL."
  (let ((process (condition-case problem
                     (apply #'minder-make-process (minder--with-connection plist))
                   (error
                    (minder--log "%s: started by Emacs: %s" (plist-get plist :name)
                                 (error-message-string problem))
                    nil))))
    (if (null process)
        (apply original plist)
      (when (or (minder--record process) (process-get process 'minder-command))
        (setq minder-mode-carried (1+ minder-mode-carried)))
      (when (minder--record process)
        (run-at-time 0 nil #'minder--show-status (process-buffer process)))
      process)))

(defun minder--with-connection (plist)
  "Return PLIST with the type of connection that `make-process' would choose."
  (if (plist-get plist :connection-type)
      plist
    (append (list :connection-type (if process-connection-type 'pty 'pipe)) plist)))

(defun minder--show-status (buffer)
  "Let the mode line of BUFFER show the status of its native process.
Emacs shows that of the process object for \"%s\", which is always \"stop\"."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq mode-line-process (minder--with-status mode-line-process))
      (force-mode-line-update))))

(defun minder--with-status (form)
  "Return the mode line FORM with another form for \"%s\"."
  (cond ((and (stringp form) (string-search "%s" form))
         (list (substring form 0 (string-search "%s" form))
               '(:eval (minder--mode-line-status))
               (substring form (+ 2 (string-search "%s" form)))))
        ((and (consp form) (eq (car form) :propertize) (stringp (cadr form))
              (string-search "%s" (cadr form)))
         (let ((face (plist-get (cddr form) 'face)))
           `(:eval (propertize (minder--mode-line-text ,(cadr form)) 'face ',face))))
        ((and (consp form) (not (memq (car form) '(:eval :propertize))))
         (cons (minder--with-status (car form)) (minder--with-status (cdr form))))
        (t form)))

(defun minder--mode-line-status ()
  "Return the status of the process of the current buffer."
  (let ((process (get-buffer-process (current-buffer))))
    (if process (symbol-name (process-status process)) "no process")))

(defun minder--mode-line-text (text)
  "Return TEXT with the status of the process of the buffer in place of \"%s\"."
  (replace-regexp-in-string "%s" (minder--mode-line-status) text t t))

;;;###autoload
(define-minor-mode minder-mode
  "Start the processes of compile, grep, shell, comint, eshell and eglot by minder.
`minder-mode-predicates' chooses them."
  :global t
  :group 'minder
  (if (not minder-mode)
      (advice-remove 'make-process #'minder--around-make-process)
    (condition-case problem
        (minder-ensure-started)
      (error
       (minder--log "minder-mode: no module: %s" (error-message-string problem))
       (minder--log "minder-mode: each process gets %s"
                    (if (minder--relay-p) "the helper `minder relay'"
                      "what Emacs has, since `minder-program' is not found"))))
    (advice-add 'make-process :around #'minder--around-make-process)))

(defun minder-mode-unload-function ()
  "Turn the mode off before this library is unloaded."
  (minder-mode -1)
  nil)

(provide 'minder-mode)
;;; minder-mode.el ends here
