;;; A chain of conses in the heap of SBCL: chain.lisp CELLS. Prints rows `name,value`.

(declaim (optimize (speed 3) (safety 0)))

(defvar *chain* nil)
(declaim (type list *chain*))

(defun run-time () (/ (get-internal-run-time) (float internal-time-units-per-second 1d0)))
(defun real-time () (/ (get-internal-real-time) (float internal-time-units-per-second 1d0)))

(defun measure (name cells operation)
  (declare (type function operation))
  (let ((cpu (run-time)) (wall (real-time)))
    (funcall operation)
    (let ((wall (- (real-time) wall)) (cpu (- (run-time) cpu)))
      (format t "~a_ns,~,6f~%~a_ms,~,6f~%~a_wall_ms,~,6f~%"
              name (/ (* cpu 1d9) cells) name (* cpu 1d3) name (* wall 1d3)))))

(defun grow (cells)
  (declare (type fixnum cells))
  (let ((chain *chain*))
    (dotimes (index cells) (setf chain (cons 0 chain)))
    (setf *chain* chain))
  nil)

;; Takes about half of the cells out of the chain, and returns how many are left.
(defun thin ()
  (let ((random 1) (left 1) (last *chain*))
    (declare (type (unsigned-byte 64) random) (type fixnum left) (type cons last))
    (loop for cell of-type list = (cdr last) then (cdr cell)
          while cell
          do (setf random (logxor random (ldb (byte 64 0) (ash random 13))))
             (setf random (logxor random (ash random -7)))
             (setf random (logxor random (ldb (byte 64 0) (ash random 17))))
             (when (zerop (ash random -63))
               (incf left)
               (setf (cdr last) cell)
               (setf last cell)))
    (setf (cdr last) nil)
    left))

;; A word of the stack that is taken for an address would keep a part of the chain: its links are cut.
(defun drop ()
  (let ((cell *chain*))
    (declare (type list cell))
    (loop while cell
          do (let ((rest (cdr cell)))
               (setf (cdr cell) nil)
               (setf cell rest))))
  (setf *chain* nil))

(defun collect () (sb-ext:gc :full t))

(let ((cells (parse-integer (car (last sb-ext:*posix-argv*)))))
  (measure "build" cells (lambda () (grow cells)))
  (collect)
  (measure "live" cells #'collect)
  (let ((left (thin)))
    (declare (type fixnum left))
    (measure "half" cells #'collect)
    (measure "refill_half" (- cells left) (lambda () (grow (- cells left)))))
  (drop)
  (sb-sys:scrub-control-stack)
  (measure "dead" cells #'collect)
  (measure "refill_dead" cells (lambda () (grow cells))))
