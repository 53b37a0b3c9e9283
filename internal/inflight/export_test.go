package inflight

// FreeBytes is how much a stream has without a lease.
const FreeBytes = freeBytes

// MessageBytes is what a message takes beside its content.
const MessageBytes = messageBytes
