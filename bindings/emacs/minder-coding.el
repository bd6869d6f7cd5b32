;;; minder-coding.el --- Decoding of bytes that arrive in chunks  -*- lexical-binding: t; -*-

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

;; The output of a child arrives in chunks that end anywhere: within a
;; character, or between a carriage return and a line feed.  A decoder keeps
;; the bytes of an incomplete character for the next chunk.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(cl-defstruct (minder-decoder (:constructor minder--make-decoder (coding))
                              (:copier nil))
  "What is known of the encoding of a stream."
  (coding 'undecided :documentation "A coding system; it becomes more exact.")
  (held "" :documentation "The bytes of an incomplete character.")
  (plain nil :documentation "Nil, or a cons of the base of a coding system with a
signature, and of the one for what follows the signature."))

(defconst minder--held-max 65536
  "The most bytes of text with escape sequences that wait for the end of a line.")

(defun minder--decode (decoder bytes lastp)
  "Return the text of BYTES with DECODER.
Bytes of an incomplete character stay for the next call.
Non-nil LASTP means that nothing follows."
  (let ((coding (minder-decoder-coding decoder)))
    (if (and (eq (coding-system-type coding) 'raw-text)
             (eq (coding-system-eol-type coding) 0))
        bytes
      (minder--decode-held decoder bytes lastp))))

(defun minder--decode-held (decoder bytes lastp)
  "Return the text of the bytes of the last call of DECODER, and BYTES.
Non-nil LASTP means that nothing follows."
  (let* ((held (minder-decoder-held decoder))
         (all (if (string-empty-p held) bytes (concat held bytes)))
         (coding (minder--detect decoder all lastp))
         (start (minder--start-of-text decoder coding all lastp)))
    (if (null start)
        (progn (setf (minder-decoder-held decoder) all)
               "")
      (minder--decode-text decoder (minder--plain decoder coding)
                           (if (zerop start) all (substring all start)) lastp))))

(defun minder--decode-text (decoder coding bytes lastp)
  "Return the text of BYTES of CODING; keep the rest of them in DECODER.
Non-nil LASTP means that nothing follows."
  (let* ((tail (if lastp 0 (minder--incomplete coding bytes)))
         (end (- (length bytes) tail)))
    (setf (minder-decoder-held decoder) (if (zerop tail) "" (substring bytes end)))
    (cond ((zerop end) "")
          ((zerop tail) (decode-coding-string bytes coding t))
          (t (decode-coding-string (substring bytes 0 end) coding t)))))

;;;; Signatures: a byte order mark is at the beginning of a stream alone

(defun minder--start-of-text (decoder coding bytes lastp)
  "Return where the text of BYTES of CODING begins, or nil if that is not known.
The first time, tell DECODER what follows a signature.  Non-nil LASTP means that
nothing follows BYTES."
  (let ((size (if (eq (coding-system-type coding) 'utf-16) 2 3)))
    (cond ((or (null (coding-system-get coding :bom))
               (coding-system-get coding :post-read-conversion)
               (eq (car (minder-decoder-plain decoder)) (coding-system-base coding)))
           0)
          ((and (< (length bytes) size) (not lastp)) nil)
          (t
           (let ((mark (substring bytes 0 (min size (length bytes)))))
             (setf (minder-decoder-plain decoder)
                   (cons (coding-system-base coding)
                         (cond ((= size 3) 'utf-8)
                               ((equal mark "\377\376") 'utf-16le)
                               ((equal mark "\376\377") 'utf-16be)
                               ((eq (coding-system-get coding :endian) 'little) 'utf-16le)
                               (t 'utf-16be))))
             (if (member mark (if (= size 3) '("\357\273\277") '("\377\376" "\376\377")))
                 size
               0))))))

(defun minder--plain (decoder coding)
  "Return the coding system for text of CODING after the signature in DECODER."
  (let ((plain (minder-decoder-plain decoder))
        (eol (coding-system-eol-type coding)))
    (cond ((not (eq (car plain) (coding-system-base coding))) coding)
          ((integerp eol) (coding-system-change-eol-conversion (cdr plain) eol))
          (t (cdr plain)))))

;;;; Detection

(defun minder--detect (decoder bytes lastp)
  "Return the coding system for BYTES, and make that of DECODER more exact.
Non-nil LASTP means that nothing follows."
  (let ((coding (minder-decoder-coding decoder)))
    (when (eq (coding-system-type coding) 'undecided)
      (let* ((eol (coding-system-eol-type coding))
             ;; Half of a character looks like another encoding.
             (tail (if lastp 0 (minder--incomplete-utf-8 bytes)))
             (found (detect-coding-string
                     (substring bytes 0 (- (length bytes) tail)) t)))
        (unless (eq (coding-system-type found) 'undecided)
          (setq coding (if (vectorp eol) (coding-system-base found)
                         (coding-system-change-eol-conversion found eol)))
          (setf (minder-decoder-coding decoder) coding))))
    (when (vectorp (coding-system-eol-type coding))
      (let ((eol (minder--detect-eol coding bytes)))
        (when eol
          (setq coding (coding-system-change-eol-conversion coding eol))
          (setf (minder-decoder-coding decoder) coding)))
      ;; A lone carriage return at the end may be half of a line end.
      (when (and (vectorp (coding-system-eol-type coding))
                 (or lastp (not (string-suffix-p "\r" bytes))))
        (setq coding (coding-system-change-eol-conversion coding 'unix))))
    coding))

(defun minder--detect-eol (coding bytes)
  "Return the type of line ends that BYTES of CODING have, or nil without one.
As in Emacs, three line ends are looked at, and all have to be the same."
  (let* ((width (if (eq (coding-system-type coding) 'utf-16) 2 1))
         (from 0)
         (count 0)
         (dosp t)
         feed)
    (while (and (< count 3)
                (setq feed (string-search "\n" bytes from)))
      (let ((before (- feed width)))
        (unless (and (>= before 0) (eq (aref bytes before) ?\r))
          (setq dosp nil)))
      (setq count (1+ count)
            from (1+ feed)))
    (and (> count 0) (if dosp 'dos 'unix))))

(defun minder--incomplete (coding bytes)
  "Return how many BYTES at the end begin a character of CODING or a line end."
  (let ((returnp (and (not (memq (coding-system-eol-type coding) '(0 2)))
                      (string-suffix-p "\r" bytes)))
        (size (length bytes)))
    (if (eq (coding-system-type coding) 'utf-16)
        (minder--incomplete-utf-16 coding bytes)
      (max
         (if returnp 1 0)
         (pcase (coding-system-type coding)
           ((or 'utf-8 'undecided) (minder--incomplete-utf-8 bytes))
           ('raw-text 0)
           ('iso-2022
            (if (and (string-search "\e" bytes) (< size minder--held-max))
                ;; Escape sequences are complete at the end of a line.
                (- size (1+ (or (cl-position ?\n bytes :from-end t) -1)))
              (minder--incomplete-by-trial coding bytes)))
           (_ (minder--incomplete-by-trial coding bytes)))))))

(defun minder--incomplete-utf-8 (bytes)
  "Return how many BYTES at the end begin a character of UTF-8."
  (let* ((size (length bytes))
         (at (1- size))
         (limit (max 0 (- size 4))))
    (while (and (>= at limit) (= (logand (aref bytes at) #xC0) #x80))
      (setq at (1- at)))
    (if (< at limit) 0
      (let* ((lead (aref bytes at))
             (need (cond ((< lead #xC2) 1) ((< lead #xE0) 2) ((< lead #xF0) 3)
                         ((< lead #xF8) 4) (t 1)))
             (there (- size at)))
        (if (< there need) there 0)))))

(defun minder--incomplete-utf-16 (coding bytes)
  "Return how many BYTES at the end begin a character of the UTF-16 of CODING.
A carriage return counts as such if it may be half of a line end."
  (let* ((size (length bytes))
         (odd (logand size 1))
         (littlep (eq (coding-system-get coding :endian) 'little))
         (high (- size odd (if littlep 1 2)))
         (low (- size odd (if littlep 2 1))))
    (if (and (>= (min high low) 0)
             (or (<= #xD8 (aref bytes high) #xDB)
                 (and (zerop (aref bytes high))
                      (eq (aref bytes low) ?\r)
                      (not (memq (coding-system-eol-type coding) '(0 2))))))
        (+ odd 2)
      odd)))

(defun minder--incomplete-by-trial (coding bytes)
  "Return how many BYTES at the end are no character of CODING."
  (let* ((size (length bytes))
         (from (max 0 (- size 64)))
         (text (decode-coding-string (substring bytes from) coding t))
         (count 0)
         (at (1- (length text))))
    (while (and (>= at 0) (< count 3) (>= (aref text at) #x3FFF80))
      (setq count (1+ count)
            at (1- at)))
    count))

(provide 'minder-coding)
;;; minder-coding.el ends here
