package rest

import (
	"context"
	"net/http"
	"sync"
	"time"
	"weak"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/peer"
	"hdsd/peer/limit"
)

// patience bounds the time that a body waits for others before its request is refused. A client
// that waits for longer has no answer either.
const patience = 10 * time.Second

// Bodies of up to smallBody bytes are processed at once. Larger ones, which may be many times as
// large when they are decoded, are processed one at a time.
const smallBody = 64 << 10

// Bodies of more than largeBody bytes are read into reused memory for the largest ones: a flood
// of them would else take several times as much until the garbage is collected.
const largeBody = 4 << 20

// slab is memory for a large body.
type slab []byte

// slabs are unused slabs. The garbage collector may take them.
type slabs struct {
	mu    sync.Mutex // guards the fields below
	spare []weak.Pointer[slab]
}

// get returns empty memory for so many bytes.
func (s *slabs) get(size int) *slab {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.spare) > 0 {
		last := s.spare[len(s.spare)-1].Value()
		s.spare = s.spare[:len(s.spare)-1]
		if last != nil && cap(*last) >= size {
			return last
		}
	}
	return new(slab(make([]byte, 0, size)))
}

func (s *slabs) giveBack(memory *slab) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, weak.Make(memory))
}

// Budget bounds the bytes of bodies, over all servers that share it. A nil one bounds
// nothing.
type Budget struct {
	// Refused, if not nil, is called for each request that is refused because of its size. It
	// must not block.
	Refused func(*http.Request, error)

	room  *limit.Room
	turns *limit.Queue
	slabs slabs
}

func (b *Budget) refused(r *http.Request, err error) {
	if b != nil && b.Refused != nil && status.Code(err) == codes.ResourceExhausted {
		b.Refused(r, err)
	}
}

// NewBudget makes a budget of the bytes in a room, which others may share.
func NewBudget(room *limit.Room) *Budget {
	return &Budget{room: room, turns: limit.NewWork(1, 0)}
}

// acquire waits for room for a body of so many bytes, before any is read: a part of it never
// holds room that another needs. A body of unknown length needs room for the maximum.
func (b *Budget) acquire(r *http.Request, bytes int64) (done func(), err error) {
	if b == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	t, err := b.room.Wait(ctx, peer.OfRequest(r).Key(), bytes)
	if err != nil {
		return nil, status.Errorf(codes.ResourceExhausted, "there is no room for a request of %d bytes within %s: try again later, announce its length, or raise limits.max_bytes_in_flight", bytes, patience)
	}
	return t.Release, nil
}

// memory returns memory for a large body, and adds its return to done.
func (b *Budget) memory(size int, done *func()) []byte {
	if b == nil {
		return make([]byte, 0, size)
	}
	memory, before := b.slabs.get(size), *done
	*done = func() {
		b.slabs.giveBack(memory)
		before()
	}
	return *memory
}

// turn waits for the turn of a body, and adds the end of that to done.
func (b *Budget) turn(r *http.Request, bytes int, done *func()) error {
	if b == nil || bytes <= smallBody {
		return nil
	}
	turn, err := b.turns.Work(r.Context(), peer.OfRequest(r).Key(), int64(bytes))
	if err != nil {
		return status.FromContextError(r.Context().Err()).Err()
	}
	before := *done
	*done = func() {
		turn.Release()
		before()
	}
	return nil
}
