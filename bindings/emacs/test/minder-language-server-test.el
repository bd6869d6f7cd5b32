;;; minder-language-server-test.el --- A test with a real server  -*- lexical-binding: t; -*-

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

;; The sample with clangd, in another Emacs.

;;; Code:

(require 'minder-test-support)

(defun minder-test--sample (function)
  "Return what FUNCTION of the sample writes in another Emacs."
  (let ((process
         (minder-test--start
          (list (expand-file-name invocation-name invocation-directory)
                "--batch" "--no-init-file" "-L" (file-name-directory (locate-library "minder"))
                "-l" (expand-file-name "../samples/language-server.el" minder-test--directory)
                "-f" function))))
    (minder-test--finish process)
    (minder-test--text process)))

(ert-deftest minder-test-clangd-by-messages ()
  (skip-unless (executable-find "clangd"))
  (let ((text (minder-test--sample "sample-messages")))
    (should (string-search "completions of \"num\": number\n" text))
    (should (string-search "first mistake: Use of undeclared identifier" text))))

(ert-deftest minder-test-clangd-by-eglot ()
  (skip-unless (and (executable-find "clangd")
                    (or (locate-library "eglot")
                        (file-expand-wildcards "/usr/share/emacs/site-lisp/elpa/eglot-*"))))
  (let ((text (minder-test--sample "sample-eglot")))
    (should (string-search "Use of undeclared identifier" text))
    (should (string-search "processes by minder: 1\n" text))))

(provide 'minder-language-server-test)
;;; minder-language-server-test.el ends here
