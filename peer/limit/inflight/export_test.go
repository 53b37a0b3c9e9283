package inflight

import "context"

// FirstWindow is how many bytes of a stream may be here without room.
const FirstWindow = firstWindow

// MessageBytes is what a message takes beside its content.
const MessageBytes = messageHeadBytes + messageBytes

// LargestQuestion is how many bytes the message of a call with a stream of answers may have.
const LargestQuestion = largestQuestion

// Arrived reports whether so many messages of a call have begun, and all of them is here.
func Arrived(ctx context.Context, messages int) bool {
	c, s := find(ctx)
	if s == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.messages.len() >= messages && s.left == 0
}
