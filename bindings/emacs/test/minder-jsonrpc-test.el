;;; minder-jsonrpc-test.el --- Tests of connections to servers  -*- lexical-binding: t; -*-

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

;; The server is "cat": each request comes back as a request, and the answer to
;; it comes back as the answer.

;;; Code:

(require 'minder-test-support)
(require 'minder-jsonrpc)

(defun minder-test--server (&optional command)
  "Return a connection to COMMAND, or to \"cat\"."
  (minder-jsonrpc-start (or command '("cat")) :name "server"
                        :events-buffer-scrollback-size 0
                        :request-dispatcher
                        (lambda (_connection method params)
                          (list :method (symbol-name method) :params params))))

(ert-deftest minder-test-jsonrpc-request ()
  (let ((server (minder-test--server)))
    (should (jsonrpc-running-p server))
    (dotimes (number 50)
      (should (equal (jsonrpc-request server :some/method (list :text "äöü" :number number))
                     (list :method "some/method"
                           :params (list :text "äöü" :number number)))))
    (let ((long (make-string 3000000 ?x)))
      (should (equal (plist-get (plist-get (jsonrpc-request server 'long (list :text long)
                                                            :timeout minder-test-seconds)
                                           :params)
                                :text)
                     long)))
    (jsonrpc-shutdown server)
    (should-not (jsonrpc-running-p server))))

(ert-deftest minder-test-jsonrpc-end-of-the-server ()
  (let ((server (minder-test--server (minder-test--sh "read line; exit 1"))))
    (should-error (jsonrpc-request server :some/method nil) :type 'jsonrpc-error)))

(provide 'minder-jsonrpc-test)
;;; minder-jsonrpc-test.el ends here
