;;; language-server.el --- Talk with a language server  -*- lexical-binding: t; -*-

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

;; Two ways to a language server, here "clangd" for a C file with a mistake:
;;
;; - `minder-jsonrpc-start' starts it as a light process.  The module cuts its
;;   output into messages, and each costs one call of a filter.
;; - `minder-mode' makes `eglot' start it as a native process.  The package eglot
;;   has to be installed before Emacs 29.
;;
;;   emacs -Q --batch -L DIRECTORY-OF-MINDER -l language-server.el -f sample-messages
;;   emacs --batch -L DIRECTORY-OF-MINDER -l language-server.el -f sample-eglot

;;; Code:

(require 'minder)
(require 'minder-jsonrpc)
(require 'minder-mode)
(require 'flymake)

(declare-function eglot "eglot")
(declare-function eglot-current-server "eglot")
(declare-function eglot-shutdown "eglot")

(defvar sample-text "int main(void) { int number = 1; return num; }\n"
  "A program with a mistake.")

(defun sample-directory ()
  "Return a new directory with the program."
  (let ((directory (file-name-as-directory (make-temp-file "minder-sample" t))))
    (write-region sample-text nil (expand-file-name "main.c" directory) nil 'silent)
    directory))

(defun sample-messages ()
  "Ask clangd for the mistakes and for completions, by whole messages."
  (let* ((directory (sample-directory))
         (uri (concat "file://" directory "main.c"))
         (diagnostics nil)
         (server (minder-jsonrpc-start
                  '("clangd" "--log=error") :name "clangd" :events-buffer-scrollback-size 0
                  :notification-dispatcher
                  (lambda (_server method params)
                    (when (eq method 'textDocument/publishDiagnostics)
                      (setq diagnostics (append (plist-get params :diagnostics) nil)))))))
    (unwind-protect
        (progn
          (jsonrpc-request server :initialize
                           (list :processId (emacs-pid) :rootUri (concat "file://" directory)
                                 :capabilities (list :textDocument nil))
                           :timeout 60)
          (jsonrpc-notify server :initialized (make-hash-table))
          (jsonrpc-notify server :textDocument/didOpen
                          (list :textDocument (list :uri uri :languageId "c" :version 1
                                                    :text sample-text)))
          (let ((found (jsonrpc-request
                        server :textDocument/completion
                        (list :textDocument (list :uri uri)
                              :position (list :line 0 :character 43))
                        :timeout 60)))
            (message "completions of \"num\": %s"
                     (mapconcat (lambda (item) (string-trim (plist-get item :label)))
                                (plist-get found :items) ", ")))
          (with-timeout (60 (error "No diagnostics came"))
            (while (null diagnostics)
              (accept-process-output nil 0.1)))
          (message "first mistake: %s" (plist-get (car diagnostics) :message))
          (jsonrpc-request server :shutdown nil :timeout 60)
          (jsonrpc-notify server :exit nil))
      (jsonrpc-shutdown server)
      (delete-directory directory t))))

(defun sample-eglot ()
  "Let eglot start clangd as a native process, and show the mistakes."
  (require 'package)
  (package-activate-all)
  (require 'eglot)
  (minder-mode 1)
  (let ((directory (sample-directory)))
    (unwind-protect
        (with-current-buffer (find-file-noselect (expand-file-name "main.c" directory))
          (call-interactively #'eglot)
          ;; Without windows nothing else starts it.
          (flymake-start)
          (with-timeout (60 (error "No diagnostics came"))
            (while (null (flymake-diagnostics))
              (accept-process-output nil 0.1)))
          (message "first mistake: %s"
                   (flymake-diagnostic-text (car (flymake-diagnostics))))
          (message "processes by minder: %d" minder-mode-carried)
          (eglot-shutdown (eglot-current-server))
          (set-buffer-modified-p nil))
      (delete-directory directory t))))

(provide 'language-server)
;;; language-server.el ends here
