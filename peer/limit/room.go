package limit

import "context"

// largeShare is the part of a Room from which on an amount is large.
const largeShare = 16

// Room is a Queue of two halves, one for amounts of more than a sixteenth: few large ones never
// keep many small ones waiting. Make one by NewRoom.
type Room struct {
	small, large *Queue
	maxSmall     int64 // bound of small amounts
}

// NewRoom makes a room with a free amount.
func NewRoom(total int64) *Room {
	return &Room{small: NewQueue(total - total/2), large: NewQueue(total / 2), maxSmall: total / largeShare}
}

func (r *Room) queue(amount int64) *Queue {
	if amount > r.maxSmall {
		return r.large
	}
	return r.small
}

// Ask calls that of the half for the amount.
func (r *Room) Ask(caller string, amount int64, granted func(*Turn)) (t *Turn, free bool) {
	return r.queue(amount).Ask(caller, amount, granted)
}

// Wait calls that of the half for the amount.
func (r *Room) Wait(ctx context.Context, caller string, amount int64) (*Turn, error) {
	return r.queue(amount).Wait(ctx, caller, amount)
}

// Common returns the total for small amounts.
func (r *Room) Common() int64 { return r.small.total }

// Taken returns the taken amount.
func (r *Room) Taken() int64 { return r.small.Taken() + r.large.Taken() }

// Waiting describes the waiting turns.
func (r *Room) Waiting() Waiting {
	small, large := r.small.Waiting(), r.large.Waiting()
	count := small.Count + large.Count
	if small.Count == 0 || large.Count > 0 && large.Since.Before(small.Since) {
		small = large
	}
	small.Count = count
	return small
}
