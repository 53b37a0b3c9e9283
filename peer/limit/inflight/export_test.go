package inflight

// FirstWindow is how many bytes of a stream may be here without room.
const FirstWindow = firstWindow

// MessageBytes is what a message takes beside its content.
const MessageBytes = messageHeadBytes + messageBytes

// LargestQuestion is how many bytes the message of a call with a stream of answers may have.
const LargestQuestion = largestQuestion
