package aggregate

// Codes is a set of HTTP status codes, each below MaxCode.
type Codes [MaxCode / 64]uint64

// MaxCode is greater than every status code.
const MaxCode = 640

// Add puts the codes from first to last into the set.
func (c *Codes) Add(first, last int) {
	for code := max(first, 0); code <= min(last, MaxCode-1); code++ {
		c[code/64] |= 1 << (code % 64)
	}
}

// Has reports whether a code is in the set.
func (c *Codes) Has(code uint16) bool {
	return code < MaxCode && c[code/64]&(1<<(code%64)) != 0
}
