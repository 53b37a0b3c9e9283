package inflight

// FirstWindow is how many bytes of a stream may be here without room.
const FirstWindow = firstWindow

// MessageBytes is what a message takes beside its content.
const MessageBytes = messageHeadBytes + messageBytes
