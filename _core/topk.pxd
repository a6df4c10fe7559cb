"""The k best of a stream of scored blocks: a binary heap with the worst on top."""

from libc.stdint cimport int32_t


cdef struct Scored:
    double score
    double lex_user
    double lex_assistant
    int32_t turn
    int32_t n_held


cdef inline bint is_better(const Scored *a, const Scored *b) noexcept nogil:
    """Higher score first; ties go to the newer turn."""
    return a.score > b.score or (a.score == b.score and a.turn > b.turn)


cdef inline void sift_down(Scored *heap, Py_ssize_t n, Py_ssize_t i) noexcept nogil:
    cdef Py_ssize_t child
    cdef Scored moved = heap[i]
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and is_better(&heap[child], &heap[child + 1]):
            child += 1
        if not is_better(&moved, &heap[child]):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = moved


cdef inline Py_ssize_t offer(Scored *heap, Py_ssize_t n, Py_ssize_t k, const Scored *scored) noexcept nogil:
    """Put `scored` into the heap of n of at most k if it belongs there; the new n."""
    cdef Py_ssize_t i
    if n < k:
        i = n
        while i > 0 and is_better(&heap[(i - 1) // 2], scored):
            heap[i] = heap[(i - 1) // 2]
            i = (i - 1) // 2
        heap[i] = scored[0]
        return n + 1
    if k > 0 and is_better(scored, &heap[0]):
        heap[0] = scored[0]
        sift_down(heap, n, 0)
    return n


cdef inline void sort_best_first(Scored *heap, Py_ssize_t n) noexcept nogil:
    cdef Scored worst
    cdef Py_ssize_t last
    for last in range(n - 1, 0, -1):
        worst = heap[0]
        heap[0] = heap[last]
        heap[last] = worst
        sift_down(heap, last, 0)
