package relay

import (
	"bytes"
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/inflight"
	"hdsd/internal/share"
	"hdsd/relay/message"
)

// smallAnswer is how many bytes a response may have that needs no room.
const smallAnswer = inflight.Ahead

// copies is how many times hdsd has a response while it comes: in the parts in which it came, and
// whole; then as it came, and as it goes.
const copies = 2

// longestHold is for how long a response may have room while others wait for it. Half of the
// largest room, 512 MiB, passes at 36 Mbit/s meanwhile.
const longestHold = 2 * time.Minute

// answers bound the bytes of responses on their way to clients. The resources of large ones are
// encoded once for all clients that get the same, and have room once.
type answers struct {
	room *share.Room // nil: nothing bounds them

	mu   sync.Mutex // guards what follows
	runs map[uint64]*run
}

// run is the encoded resources of a response, in one memory for all that have the same.
type run struct {
	wire []byte
	hash uint64
	uses int         // guarded by answers.mu
	turn *share.Turn // has its room; nil: it has none
}

// encoded is an encoded response.
type encoded struct {
	parts [][]byte
	place *place // nil: it has neither room nor shared parts
}

// place is what a response has until it is written.
type place struct {
	turn *share.Turn // its room; nil: it has none, or that of its run
	run  *run        // nil: none
	late *time.Timer // guarded by places.mu
}

// places are those of a stream.
type places struct {
	mu  sync.Mutex
	all map[*place]struct{}
}

// begin waits for room for a response of so many bytes, before it is asked for. Callers take turns.
func (st *stream) begin(ctx context.Context, bytes int) (*place, error) {
	room := st.server.answers.room
	if room == nil || bytes <= smallAnswer {
		return nil, nil
	}
	turn, err := room.Wait(ctx, st.caller, copies*int64(bytes))
	if err != nil {
		return nil, err
	}
	return st.keep(turn), nil
}

// keep keeps a turn until the stream is done with it. A stream that has it for too long while
// others wait ends.
func (st *stream) keep(turn *share.Turn) *place {
	h := &place{turn: turn}
	st.places.mu.Lock()
	defer st.places.mu.Unlock()
	h.late = time.AfterFunc(longestHold, func() {
		st.places.mu.Lock()
		defer st.places.mu.Unlock()
		if room := st.server.answers.room; room == nil || room.Waiting().Count == 0 {
			h.late.Reset(time.Second)
			return
		}
		st.fail(status.Errorf(codes.DeadlineExceeded,
			"a response has not passed within %v, and others wait for its room: read faster, or raise limits.max_bytes_in_flight", longestHold))
	})
	if st.places.all == nil {
		st.places.all = map[*place]struct{}{}
	}
	st.places.all[h] = struct{}{}
	return h
}

// done gives back what a response has; nil is nothing. It may be called more than once.
func (st *stream) done(h *place) {
	st.places.mu.Lock()
	_, has := st.places.all[h]
	if has {
		h.late.Stop()
		delete(st.places.all, h)
	}
	st.places.mu.Unlock()
	if has {
		st.server.answers.leave(h.run)
		h.turn.Release()
	}
}

// doneWithAll gives everything back once nothing of the stream is left to send. If its client does
// not let it come to that, its connection ends.
func (st *stream) doneWithAll() {
	st.places.mu.Lock()
	all := slices.Collect(maps.Keys(st.places.all))
	st.places.mu.Unlock()
	if len(all) == 0 {
		return
	}
	deaf := time.AfterFunc(longestHold, func() { inflight.End(st.down.Context()) })
	inflight.After(st.down.Context(), func() {
		deaf.Stop()
		for _, h := range all {
			st.done(h)
		}
	})
}

// encode encodes a response. h is what it has; nil: nothing.
func (st *stream) encode(d *message.Draft, h *place) (*encoded, error) {
	size, err := d.Size()
	if err != nil {
		return nil, err
	}
	if size <= largeMessage {
		wire, err := d.Encode()
		return &encoded{[][]byte{wire}, h}, err
	}
	var hash maphash.Hash
	hash.SetSeed(seed)
	var before, after []byte
	size = 0
	if err = eachOf(d, func(part []byte) { _, _ = hash.Write(part); size += len(part) }, func(part []byte) {
		if size == 0 {
			before = append(before, part...)
		} else {
			after = append(after, part...)
		}
	}); err != nil {
		return nil, err
	}
	if h == nil {
		h = st.keep(nil)
	}
	err = st.server.answers.take(h, d, hash.Sum64(), size)
	return &encoded{[][]byte{before, h.run.wire, after}, h}, err
}

// eachOf calls run with the parts of the first resources that follow each other, and other with
// those before and after these.
func eachOf(d *message.Draft, run, other func(part []byte)) error {
	begun, ended := false, false
	return d.Each(func(part []byte, resource bool) {
		begun, ended = begun || resource, ended || begun && !resource
		if resource && !ended {
			run(part)
		} else {
			other(part)
		}
	})
}

func nothing([]byte) {}

// take gives a response the run that it has, which is made unless it is there. The room of the
// response becomes that of the run, or is given back.
func (a *answers) take(h *place, d *message.Draft, hash uint64, size int) (err error) {
	h.run = a.known(hash, func(wire []byte) bool {
		same := len(wire) == size
		err = eachOf(d, func(part []byte) {
			if same = same && bytes.HasPrefix(wire, part); same {
				wire = wire[len(part):]
			}
		}, nothing)
		return same
	})
	if h.run == nil {
		wire := make([]byte, 0, size)
		err = eachOf(d, func(part []byte) { wire = append(wire, part...) }, nothing)
		if h.run = a.known(hash, func(other []byte) bool { return bytes.Equal(wire, other) }); h.run == nil {
			h.run = a.add(wire, hash, h.turn)
			h.turn = nil
		}
	}
	h.turn.Release()
	h.turn = nil
	return err
}

// known returns a run that is there with one more use, if it is the same; nil: there is none.
func (a *answers) known(hash uint64, same func(wire []byte) bool) *run {
	a.mu.Lock()
	r := a.runs[hash]
	if r != nil {
		r.uses++
	}
	a.mu.Unlock()
	if r != nil && !same(r.wire) {
		a.leave(r)
		return nil
	}
	return r
}

// add adds a run. Of those with the same hash, one can be shared.
func (a *answers) add(wire []byte, hash uint64, turn *share.Turn) *run {
	r := &run{wire, hash, 1, turn}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs[hash] == nil {
		a.runs[hash] = r
	}
	return r
}

// leave ends a use of a run; nil is none.
func (a *answers) leave(r *run) {
	if r == nil {
		return
	}
	a.mu.Lock()
	r.uses--
	unused := r.uses == 0
	if unused && a.runs[r.hash] == r {
		delete(a.runs, r.hash)
	}
	a.mu.Unlock()
	if unused {
		r.turn.Release()
	}
}

// pushRoom is the room for a stream's next response of hdsd's own. One goroutine uses it, which
// does not wait: what has room already would wait for it.
type pushRoom struct {
	st   *stream
	turn *share.Turn // nil: none is asked for
	has  atomic.Bool
}

// ready reports whether there is room. It asks for it, and wakes the stream when there is.
func (p *pushRoom) ready() bool {
	room, size := p.st.server.answers.room, p.st.whole()
	if room == nil || size <= smallAnswer {
		p.drop()
		return true
	}
	if p.turn == nil {
		turn, free := room.Ask(p.st.caller, int64(size), func(*share.Turn) { p.has.Store(true); p.st.wakeUp() })
		if p.turn = turn; free {
			p.has.Store(true)
		}
	}
	return p.has.Load()
}

// take gives the room to a response; nil: it needs none.
func (p *pushRoom) take() *place {
	turn := p.turn
	p.turn = nil
	p.has.Store(false)
	if turn == nil {
		return nil
	}
	return p.st.keep(turn)
}

// drop gives the room back.
func (p *pushRoom) drop() { p.st.done(p.take()) }

// whole returns how many bytes hdsd's next own response has, about, if it has to have everything.
// Others are small.
func (st *stream) whole() (size int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, l := range st.ledgers {
		if l == nil || l.key.splits() || len(l.dirty) == 0 || len(l.offers) > 0 || l.partial {
			continue
		}
		for s := range l.held.all() {
			size += len(s.item.wire)
		}
	}
	return size
}
