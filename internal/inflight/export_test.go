package inflight

// FreeBytes is how much a stream has without a lease.
const FreeBytes = freeBytes
