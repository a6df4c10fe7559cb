"""Growable C arrays. A failed allocation returns -1 and leaves the old array as it was."""

from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport free, realloc


cdef struct IntBuffer:
    int32_t *data
    Py_ssize_t size
    Py_ssize_t capacity


cdef inline int int_reserve(IntBuffer *buffer, Py_ssize_t capacity) noexcept nogil:
    cdef Py_ssize_t wanted = buffer.capacity if buffer.capacity > 0 else 64
    if capacity <= buffer.capacity:
        return 0
    while wanted < capacity:
        wanted *= 2
    cdef int32_t *data = <int32_t *> realloc(buffer.data, wanted * sizeof(int32_t))
    if data == NULL:
        return -1
    buffer.data = data
    buffer.capacity = wanted
    return 0


cdef inline int int_push(IntBuffer *buffer, int32_t value) noexcept nogil:
    if buffer.size == buffer.capacity and int_reserve(buffer, buffer.size + 1) < 0:
        return -1
    buffer.data[buffer.size] = value
    buffer.size += 1
    return 0


cdef inline void int_free(IntBuffer *buffer) noexcept nogil:
    free(buffer.data)
    buffer.data = NULL
    buffer.size = buffer.capacity = 0


cdef struct DoubleBuffer:
    double *data
    Py_ssize_t size
    Py_ssize_t capacity


cdef inline int double_push(DoubleBuffer *buffer, double value) noexcept nogil:
    cdef Py_ssize_t capacity
    cdef double *data
    if buffer.size == buffer.capacity:
        capacity = 2 * buffer.capacity if buffer.capacity > 0 else 64
        data = <double *> realloc(buffer.data, capacity * sizeof(double))
        if data == NULL:
            return -1
        buffer.data = data
        buffer.capacity = capacity
    buffer.data[buffer.size] = value
    buffer.size += 1
    return 0
