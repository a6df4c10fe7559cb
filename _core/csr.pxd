"""Index types and the inline formulas that every scoring kernel shares.

Nothing here may call libm: `log` and `pow` differ in the last bit from one CPU and one libm to
the next, and a score must not. `frexp` and `ldexp` are exact everywhere.
"""

from libc.math cimport frexp, ldexp
from libc.stdint cimport int32_t, int64_t

ctypedef fused index_t:
    int32_t
    int64_t


cdef inline double natural_log(double x) noexcept nogil:
    """ln x for x > 0, to about 1 ulp, by ln m = 2 artanh((m - 1) / (m + 1)) on m in [0.7, 1.42)."""
    cdef int exponent
    cdef double m = frexp(x, &exponent)
    if m < 0.70710678118654752:
        m *= 2.0
        exponent -= 1
    cdef double s = (m - 1.0) / (m + 1.0)
    cdef double z = s * s
    cdef double series = 1.0 / 21.0
    series = series * z + 1.0 / 19.0
    series = series * z + 1.0 / 17.0
    series = series * z + 1.0 / 15.0
    series = series * z + 1.0 / 13.0
    series = series * z + 1.0 / 11.0
    series = series * z + 1.0 / 9.0
    series = series * z + 1.0 / 7.0
    series = series * z + 1.0 / 5.0
    series = series * z + 1.0 / 3.0
    # ln 2 in two parts, the first with trailing zeros, so that exponent * ln2_high is exact
    return exponent * 6.93147180369123816490e-01 + (
        2.0 * s + (2.0 * s * z * series + exponent * 1.90821492927058770002e-10))


cdef inline double inverse_document_frequency(int64_t df, int64_t n_blocks) noexcept nogil:
    """idf = ln((N + 1) / (df + 1)) + 1."""
    return natural_log((<double> n_blocks + 1.0) / (<double> df + 1.0)) + 1.0


cdef struct LengthNorm:
    # BM25's length term k1 (1 - b + b |x| / avg|x|) as base + slope |x|
    double base
    double slope


cdef inline LengthNorm length_norm(double average, double k1, double b) noexcept nogil:
    """The length term for sides of this average length; without lengths (average 0) it is constant.

    Its base is never 0, so that tf / (tf + norm) is 0 for tf 0 and 1 for k1 0; what it adds is lost in rounding.
    """
    cdef LengthNorm norm
    norm.base = k1 * (1.0 - b) + 1e-300
    norm.slope = k1 * b / average if average > 0.0 else 0.0
    return norm


cdef inline double saturated(double weight, double tf, double length, LengthNorm norm) noexcept nogil:
    """One term's part of BM25, weight tf / (tf + norm), with weight = idf (k1 + 1)."""
    return weight * tf / (tf + (norm.base + norm.slope * length))


cdef inline double fifth_root(double x) noexcept nogil:
    """x^(1/5) for x >= 1, by Newton's steps down from a power of two above it."""
    cdef int exponent
    frexp(x, &exponent)
    cdef double r = ldexp(1.0, (exponent + 4) // 5)
    cdef double r4
    cdef int _step
    for _step in range(9):
        r4 = r * r * r * r
        r += (x / r4 - r) / 5.0
    return r
