;;; minder-jsonrpc.el --- Messages of language servers  -*- lexical-binding: t; -*-

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

;; A connection of the library `jsonrpc' over a light process.  The module cuts
;; the output into messages, so a long one costs one call of the filter.
;;
;;   (setq server (minder-jsonrpc-start '("clangd") :name "clangd"))
;;   (jsonrpc-request server :initialize
;;                    (list :processId (emacs-pid) :rootUri :null :capabilities nil))

;;; Code:

(require 'cl-lib)
(require 'eieio)
(require 'jsonrpc)
(require 'subr-x)
(require 'minder)

(defclass minder-jsonrpc-connection (jsonrpc-connection)
  ((process :initform nil :accessor minder-jsonrpc-process
            :documentation "The light process of the server."))
  :documentation "A connection to a server that is a light process.")

;;;###autoload
(defun minder-jsonrpc-start (command &rest args)
  "Start COMMAND, a server, and return a connection to it.
ARGS are the arguments of `jsonrpc-connection', such as `:name' and
`:request-dispatcher'."
  (let ((connection (apply #'make-instance 'minder-jsonrpc-connection args)))
    (setf (minder-jsonrpc-process connection)
          (minder-make-process
           :name (or (plist-get args :name) (car command)) :light t :noquery t
           :command command :framing 'content-length :coding 'utf-8-unix
           :stderr (get-buffer-create (format " *%s stderr*" (car command)))
           :filter (lambda (_process message)
                     (jsonrpc-connection-receive
                      connection (minder-jsonrpc--read message)))
           :sentinel (lambda (_process _text)
                       (minder-jsonrpc--ended connection))))
    connection))

(defun minder-jsonrpc--read (message)
  "Return the property list that MESSAGE, a unibyte string, has."
  (json-parse-string (decode-coding-string message 'utf-8-unix t)
                     :object-type 'plist :null-object nil :false-object :json-false))

(defun minder-jsonrpc--ended (connection)
  "Answer the requests of CONNECTION that the server did not answer."
  (let ((waiting (jsonrpc--request-continuations connection)))
    (when (hash-table-p waiting)
      (let ((all (hash-table-values waiting)))
        (clrhash waiting)
        (dolist (continuations all)
          (when (timerp (nth 2 continuations))
            (cancel-timer (nth 2 continuations)))
          (funcall (nth 1 continuations) '(:code -1 :message "The server has ended")))))))

(cl-defmethod jsonrpc-connection-send ((connection minder-jsonrpc-connection)
                                       &rest args
                                       &key method &allow-other-keys)
  "Send ARGS as a message to the server of CONNECTION.
METHOD is a string, a symbol or a keyword."
  (when method
    (setq args (plist-put (copy-sequence args) :method
                          (if (stringp method) method
                            (string-remove-prefix ":" (symbol-name method))))))
  (let ((json (json-serialize (append '(:jsonrpc "2.0") args)
                              :null-object nil :false-object :json-false)))
    (minder-process-send-string (minder-jsonrpc-process connection)
                                (format "Content-Length: %d\r\n\r\n%s"
                                        (string-bytes json) json))))

(cl-defmethod jsonrpc-running-p ((connection minder-jsonrpc-connection))
  "Return non-nil if the server of CONNECTION has not ended."
  (minder-process-live-p (minder-jsonrpc-process connection)))

(cl-defmethod jsonrpc-shutdown ((connection minder-jsonrpc-connection))
  "End the server of CONNECTION."
  (minder-terminate-process (minder-jsonrpc-process connection))
  (while (jsonrpc-running-p connection)
    (minder-accept-output (minder-jsonrpc-process connection) 1)))

(provide 'minder-jsonrpc)
;;; minder-jsonrpc.el ends here
