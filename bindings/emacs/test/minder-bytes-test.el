;;; minder-bytes-test.el --- Tests of the bytes of light processes  -*- lexical-binding: t; -*-

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

;; Output, input and coding systems: no byte is lost or comes late.

;;; Code:

(require 'minder-test-support)

(declare-function minder--statistics "ext:minder-module")
(declare-function minder--version "ext:minder-module")

;;;; Bytes

(ert-deftest minder-test-every-byte-20-times ()
  (let* ((size (* 20 1024 1024))
         (file (make-temp-file "minder-test"))
         (coding-system-for-write 'no-conversion)
         expected)
    (unwind-protect
        (progn
          (with-temp-buffer
            (set-buffer-multibyte nil)
            (call-process "sh" nil t nil "-c"
                          (format "seq 1 4000000 | head -c %d" size))
            (write-region nil nil file nil 'quiet)
            (setq expected (buffer-string)))
          (dotimes (_ 20)
            (let* ((end 0)
                   (samep t)
                   (process (minder-test--run
                             (list "cat" file) :coding 'binary
                             :filter (lambda (_ bytes)
                                       (let ((begin end))
                                         (setq end (+ end (length bytes)))
                                         (unless (eq t (compare-strings expected begin end
                                                                        bytes nil nil))
                                           (setq samep nil)))))))
              (should (= end size))
              (should samep)
              (should (= (minder-process-bytes process) size)))))
      (delete-file file))))

(ert-deftest minder-test-bytes-come-before-the-sentinel ()
  (dotimes (_ 50)
    (let ((process (minder-test--start
                    (minder-test--sh "head -c 300000 /dev/zero; exit 7") :coding 'binary
                    :sentinel (lambda (process _)
                                (minder-process-put process 'length
                                                    (length (minder-test--text process)))))))
      ;; A reader that stops when the process is dead.
      (while (minder-process-live-p process)
        (minder-accept-output process 1))
      (should (= (minder-process-get process 'length) 300000)))))

(ert-deftest minder-test-input-is-echoed ()
  (let* ((bytes (apply #'unibyte-string (number-sequence 0 255)))
         (all (apply #'concat (make-list 12000 bytes)))
         (process (minder-test--start '("cat") :coding 'binary)))
    (minder-process-send-string process all)
    (minder-process-send-eof process)
    ;; As with a process of Emacs, this is lost.
    (minder-process-send-string process "x")
    (minder-process-send-eof process)
    (minder-test--finish process)
    (should (equal (minder-test--text process) all))))

(ert-deftest minder-test-send-region ()
  (with-temp-buffer
    (insert "one two three")
    (let ((process (minder-test--start '("cat"))))
      (minder-process-send-region process 5 8)
      (minder-process-send-eof process)
      (minder-test--finish process)
      (should (equal (minder-test--text process) "two")))))

(ert-deftest minder-test-input-of-a-child-that-has-gone ()
  (let ((process (minder-test--run '("true"))))
    (should-error (minder-process-send-string process "text"))))

(ert-deftest minder-test-separate-stderr ()
  (with-temp-buffer
    (let* ((buffer (current-buffer))
           (process (minder-test--run (minder-test--sh "echo out; echo err >&2")
                                      :stderr buffer)))
      (should (equal (minder-test--text process) "out\n"))
      (should (string-prefix-p "err\n" (buffer-string))))))

(ert-deftest minder-test-stderr-to-a-pipe-process ()
  (let* ((text "")
         (pipe (make-pipe-process :name "err" :noquery t
                                  :filter (lambda (_ s) (setq text (concat text s))))))
    (minder-test--run (minder-test--sh "echo err >&2") :stderr pipe)
    (delete-process pipe)
    (should (equal text "err\n"))))

;;;; Coding systems

(ert-deftest minder-test-decode-at-every-border ()
  (dolist (coding '(utf-8-unix utf-8-dos utf-8 undecided utf-16le-unix utf-16be-dos
                               gb18030-unix euc-jp-unix shift_jis-unix big5-unix
                               iso-2022-jp-unix latin-1-unix windows-1252-dos))
    (let* ((text (cond ((memq (coding-system-base coding)
                              '(utf-8 undecided utf-16le utf-16be gb18030))
                        "aé€\n日本語😀\r!\n")
                       ((memq (coding-system-base coding) '(iso-latin-1 windows-1252))
                        "aé\nÿ!\n")
                       (t "a日本\n語!\n")))
           (text (if (memq coding '(utf-8-dos utf-16be-dos utf-8 undecided))
                     (string-replace "\r" "" text) text))
           (bytes (encode-coding-string
                   text (if (memq coding '(utf-8 undecided)) 'utf-8-dos coding) t)))
      (dotimes (cut (1+ (length bytes)))
        (let ((decoder (minder--make-decoder coding)))
          (should (equal (list coding cut
                               (concat (minder--decode decoder (substring bytes 0 cut) nil)
                                       (minder--decode decoder (substring bytes cut) nil)
                                       (minder--decode decoder "" t)))
                         (list coding cut text)))))
      (let ((decoder (minder--make-decoder coding)))
        (should (equal (concat (mapconcat (lambda (byte)
                                            (minder--decode decoder (unibyte-string byte) nil))
                                          bytes "")
                               (minder--decode decoder "" t))
                       text))))))

(ert-deftest minder-test-signature-at-every-border ()
  (dolist (coding '(utf-16 utf-16-unix utf-16le-with-signature utf-16be-with-signature-dos
                           utf-8-with-signature utf-8-auto-unix))
    (dolist (mark (if (eq (coding-system-type coding) 'utf-16)
                      '("\377\376" "\376\377" "")
                    '("\357\273\277" "")))
      (let* ((plain (cond ((not (eq (coding-system-type coding) 'utf-16)) 'utf-8-unix)
                          ((equal mark "\377\376") 'utf-16le-unix)
                          ((equal mark "\376\377") 'utf-16be-unix)
                          ((eq (coding-system-get coding :endian) 'little) 'utf-16le-unix)
                          (t 'utf-16be-unix)))
             (text "a\u00e9\u65e5\ufeff!")
             (bytes (concat mark (encode-coding-string text plain t))))
        (dotimes (cut (1+ (length bytes)))
          (let ((decoder (minder--make-decoder coding)))
            (should (equal (list coding mark cut
                                 (concat (minder--decode decoder (substring bytes 0 cut) nil)
                                         (minder--decode decoder (substring bytes cut) nil)
                                         (minder--decode decoder "" t)))
                           (list coding mark cut text)))))))))

(ert-deftest minder-test-coding-of-a-process ()
  (let ((process (minder-test--run
                  (minder-test--sh "printf '\\303'; sleep 0.05; printf '\\244\\n'")
                  :coding 'utf-8-unix)))
    (should (equal (minder-test--text process) "ä\n")))
  (let ((process (minder-test--start '("cat") :coding '(latin-1-unix . utf-8-unix))))
    (minder-process-send-string process "ä")
    (minder-process-send-eof process)
    (minder-test--finish process)
    (should (equal (minder-test--text process) "Ã¤")))
  (let ((process (minder-test--start '("cat"))))
    (minder-set-process-coding-system process 'utf-8-unix 'latin-1-unix)
    (minder-process-send-string process "ä")
    (minder-process-send-eof process)
    (minder-test--finish process)
    (should (equal (minder-test--text process) (string-to-multibyte "\344")))))

;;;; Messages

(ert-deftest minder-test-messages ()
  (let* ((messages nil)
         (process (minder-test--start
                   (minder-test--sh "printf 'Content-Length: 4\\r\\n\\r\\n\"\\303\\244\"Content-'
                                     sleep 0.05; printf 'Length: 2\\r\\n\\r\\n{}'")
                   :framing 'content-length
                   :filter (lambda (_ message) (push message messages)))))
    (minder-test--finish process)
    (should (equal (nreverse messages) '("\"\303\244\"" "{}")))))

(ert-deftest minder-test-message-that-cannot-be-read ()
  (let* ((inhibit-message t)
         (messages nil)
         (process (minder-test--start
                   (minder-test--sh "printf 'nonsense\\r\\n\\r\\nContent-Length: 2\\r\\n\\r\\n{}'")
                   :framing 'content-length
                   :filter (lambda (_ message) (push message messages)))))
    (minder-test--finish process)
    (should (equal messages '("{}")))
    (should (= (minder-process-exit-status process) 0))))

(ert-deftest minder-test-lines ()
  (let* ((lines nil)
         (process (minder-test--start '("seq" "3") :framing 'lines
                                      :filter (lambda (_ line) (push line lines)))))
    (minder-test--finish process)
    (should (equal (nreverse lines) '("1" "2" "3")))))

(provide 'minder-bytes-test)
;;; minder-bytes-test.el ends here
