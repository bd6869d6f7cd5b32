;;; chain.el --- A chain of conses, and messages of JSON, in Emacs  -*- lexical-binding: t -*-

;; Prints rows `name,value':
;;     emacs -Q --batch -l chain.el -f cells-chain CELLS
;;     emacs -Q --batch -l chain.el -f cells-json FILE TIMES

;;; Code:

(defvar cells-chain nil)

(defun cells-spent (operation)
  "Call OPERATION, and return seconds of CPU time and of wall time."
  (let ((cpu (float-time (get-internal-run-time)))
        (wall (float-time)))
    (funcall operation)
    (let ((wall (- (float-time) wall)))
      (cons (- (float-time (get-internal-run-time)) cpu) wall))))

(defun cells-measure (name cells operation)
  "Print what OPERATION about CELLS cells takes, under NAME."
  (let ((spent (cells-spent operation)))
    (princ (format "%s_ns,%f\n%s_ms,%f\n%s_wall_ms,%f\n"
                   name (/ (* 1e9 (car spent)) cells)
                   name (* 1e3 (car spent))
                   name (* 1e3 (cdr spent))))))

(defun cells-grow (cells)
  "Add CELLS conses to the chain."
  (let ((chain cells-chain))
    (dotimes (_ cells)
      (setq chain (cons 0 chain)))
    (setq cells-chain chain)
    nil))

(defun cells-thin ()
  "Take about half of the conses out of the chain, and return how many are left."
  (let* ((left 1)
         (last cells-chain)
         (cell (cdr last)))
    (while cell
      (when (= (random 2) 0)
        (setq left (1+ left))
        (setcdr last cell)
        (setq last cell))
      (setq cell (cdr cell)))
    (setcdr last nil)
    left))

(defun cells-used ()
  "Collect, and return the number of conses that live."
  (nth 2 (assq 'conses (garbage-collect))))

(defun cells-chain ()
  "Measure a chain."
  (let ((cells (string-to-number (pop command-line-args-left)))
        left used)
    (setq gc-cons-threshold most-positive-fixnum
          gc-cons-percentage 1e9)
    (random "cells")
    (cells-measure "build" cells (lambda () (cells-grow cells)))
    (garbage-collect)
    (cells-measure "live" cells #'garbage-collect)
    (setq left (cells-thin))
    (cells-measure "half" cells #'garbage-collect)
    (cells-measure "refill_half" (- cells left) (lambda () (cells-grow (- cells left))))
    (setq cells-chain nil)
    (cells-measure "dead" cells (lambda () (setq used (cells-used))))
    (when (> used (/ cells 2))
      (error "The chain is not dead"))
    (cells-measure "refill_dead" cells (lambda () (cells-grow cells)))))

(defun cells-median (values)
  "Return the middle one of VALUES."
  (nth (/ (length values) 2) (sort values #'<)))

(defun cells-json ()
  "Measure a message of JSON, as eglot parses it, and the collection after it."
  (let* ((file (pop command-line-args-left))
         (times (string-to-number (pop command-line-args-left)))
         (text (with-temp-buffer
                 (insert-file-contents file)
                 (buffer-string)))
         (bytes (string-bytes text))
         message parses drops)
    (setq gc-cons-threshold most-positive-fixnum
          gc-cons-percentage 1e9)
    (dotimes (_ times)
      (garbage-collect)
      (push (car (cells-spent (lambda () (setq message (json-parse-string text :object-type 'plist)))))
            parses)
      (unless (= 4000 (length (plist-get (plist-get message :result) :items)))
        (error "The message has other items"))
      (setq message nil)
      (push (car (cells-spent #'garbage-collect)) drops))
    (let ((parse (cells-median parses)))
      (princ (format "parse_ms,%f\nparse_mb_s,%f\ndrop_us,%f\n"
                     (* 1e3 parse) (/ bytes parse 1e6) (* 1e6 (cells-median drops)))))))

(dolist (name '(cells-spent cells-measure cells-grow cells-thin cells-used cells-chain cells-median cells-json))
  (byte-compile name))

;;; chain.el ends here
