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

	"hdsd/peer/limit"
	"hdsd/peer/limit/inflight"
	"hdsd/relay/message"
)

// smallAnswer is the size of a response, in bytes, up to which it needs no room.
const smallAnswer = inflight.ReadAhead

// copiesInMemory is how often hdsd has a response in memory while it reads it: first in the parts that
// arrive, and in one piece; then unchanged, and in the form for the client.
const copiesInMemory = 2

// longestHold is how long a response may have room while others wait for it. At 36 Mbit/s, half of
// the largest room (512 MiB) passes in that time.
const longestHold = 2 * time.Minute

// answers bounds the bytes of responses on their way to clients. Clients that get the same resources
// share one encoded copy of them, and its room.
type answers struct {
	room *limit.Room // nil: no bound

	mu   sync.Mutex // guards the fields below
	runs map[uint64]*run
}

// run is the encoded resources of a response. All responses with the same resources share it.
type run struct {
	wire []byte
	hash uint64
	uses int         // guarded by answers.mu
	turn *limit.Turn // its room; nil: none
}

// encoded is an encoded response.
type encoded struct {
	parts [][]byte
	place *place // nil: it has neither room nor a run
}

// place has the room and the run of a response until hdsd has written it.
type place struct {
	turn  *limit.Turn // its room; nil: it has none, or its run has it
	run   *run        // nil: none
	timer *time.Timer // ends the stream after longestHold; guarded by places.mu
}

// places are the places of a stream.
type places struct {
	mu  sync.Mutex
	all map[*place]struct{}
}

// begin waits for room for a response of a size in bytes, before the stream asks for the response.
// Callers take turns. A nil place needs no room.
func (st *stream) begin(ctx context.Context, size int) (*place, error) {
	room := st.server.answers.room
	if room == nil || size <= smallAnswer {
		return nil, nil
	}
	turn, err := room.Wait(ctx, st.caller, copiesInMemory*int64(size))
	if err != nil {
		return nil, err
	}
	return st.keep(turn), nil
}

// keep makes a place of a turn. The stream holds it until it releases it. If that takes longer than
// longestHold while others wait, the stream ends.
func (st *stream) keep(turn *limit.Turn) *place {
	p := &place{turn: turn}
	st.places.mu.Lock()
	defer st.places.mu.Unlock()
	p.timer = time.AfterFunc(longestHold, func() {
		st.places.mu.Lock()
		defer st.places.mu.Unlock()
		if _, held := st.places.all[p]; !held {
			return // just released
		}
		if room := st.server.answers.room; room == nil || room.Waiting().Count == 0 {
			p.timer.Reset(time.Second)
			return
		}
		st.fail(status.Errorf(codes.DeadlineExceeded,
			"a response has not passed within %v, and others wait for its room: read faster, or raise limits.max_bytes_in_flight", longestHold))
	})
	if st.places.all == nil {
		st.places.all = map[*place]struct{}{}
	}
	st.places.all[p] = struct{}{}
	return p
}

// release gives the room and the run of a place back. It ignores nil, and a place that it has released.
func (st *stream) release(p *place) {
	st.places.mu.Lock()
	_, held := st.places.all[p]
	if held {
		p.timer.Stop()
		delete(st.places.all, p)
	}
	st.places.mu.Unlock()
	if held {
		st.server.answers.leave(p.run)
		p.turn.Release()
	}
}

// releaseAll releases all places once nothing of the stream is left to send. If the client does not
// read the rest within longestHold, its connection ends.
func (st *stream) releaseAll() {
	st.places.mu.Lock()
	places := slices.Collect(maps.Keys(st.places.all))
	st.places.mu.Unlock()
	if len(places) == 0 {
		return
	}
	timer := time.AfterFunc(longestHold, func() { inflight.End(st.client.Context()) })
	inflight.After(st.client.Context(), func() {
		timer.Stop()
		for _, p := range places {
			st.release(p)
		}
	})
}

// encode encodes a response. Its place may be nil.
func (st *stream) encode(d *message.Draft, p *place) (*encoded, error) {
	size, err := d.Size()
	if err != nil {
		return nil, undecodable(err)
	}
	if size <= largeMessage {
		wire, err := d.Encode()
		return &encoded{[][]byte{wire}, p}, err
	}
	var hash maphash.Hash
	hash.SetSeed(seed)
	var head, tail []byte
	size = 0
	if err = split(d, func(part []byte) { _, _ = hash.Write(part); size += len(part) }, func(part []byte) {
		if size == 0 {
			head = append(head, part...)
		} else {
			tail = append(tail, part...)
		}
	}); err != nil {
		return nil, err
	}
	if len(head)+len(tail) > smallAnswer { // such as many names that it removes, which no run has
		wire, err := d.Encode()
		return &encoded{[][]byte{wire}, p}, err
	}
	if p == nil {
		p = st.keep(nil)
	}
	err = st.server.answers.share(p, d, hash.Sum64(), size)
	return &encoded{[][]byte{head, p.run.wire, tail}, p}, err
}

// split calls run with the parts of the first resources that follow each other, and rest with the
// parts before and after these.
func split(d *message.Draft, run, rest func(part []byte)) error {
	begun, ended := false, false
	return d.Each(func(part []byte, resource bool) {
		begun, ended = begun || resource, ended || begun && !resource
		if resource && !ended {
			run(part)
		} else {
			rest(part)
		}
	})
}

func ignore([]byte) {}

// share gives a place the run of its response, a new one if there is none yet. A new run gets the
// room of the place; otherwise the place gives its room back.
func (a *answers) share(p *place, d *message.Draft, hash uint64, size int) (err error) {
	p.run = a.find(hash, func(wire []byte) bool {
		same := len(wire) == size
		err = split(d, func(part []byte) {
			if same = same && bytes.HasPrefix(wire, part); same {
				wire = wire[len(part):]
			}
		}, ignore)
		return same
	})
	if p.run == nil {
		wire := make([]byte, 0, size)
		err = split(d, func(part []byte) { wire = append(wire, part...) }, ignore)
		if p.run = a.find(hash, func(candidate []byte) bool { return bytes.Equal(wire, candidate) }); p.run == nil {
			p.run = a.add(wire, hash, p.turn)
			p.turn = nil
		}
	}
	p.turn.Release()
	p.turn = nil
	return err
}

// find returns the run with a hash, with one use more, if it has the same bytes; nil otherwise.
func (a *answers) find(hash uint64, same func(wire []byte) bool) *run {
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

// add adds a run with one use. Of runs with the same hash, find returns the first.
func (a *answers) add(wire []byte, hash uint64, turn *limit.Turn) *run {
	r := &run{wire, hash, 1, turn}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs[hash] == nil {
		a.runs[hash] = r
	}
	return r
}

// leave ends one use of a run, which may be nil.
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

// pushRoom is the room for a stream's next response of hdsd's own. One goroutine uses it. That
// goroutine does not wait for room: it has to write the responses that have room.
type pushRoom struct {
	st      *stream
	turn    *limit.Turn  // nil: it asks for none
	granted *atomic.Bool // of the turn
}

// ready reports whether there is room for a size in bytes. If not, it asks for room, and wakes the
// stream when there is.
func (p *pushRoom) ready(size int) bool {
	room := p.st.server.answers.room
	if room == nil || size <= smallAnswer {
		p.drop()
		return true
	}
	if p.turn == nil {
		granted := &atomic.Bool{} // each turn has its own: a grant may be told after drop has given it back
		turn, free := room.Ask(p.st.caller, int64(size), func(*limit.Turn) { granted.Store(true); p.st.wakeUp() })
		if p.turn, p.granted = turn, granted; free {
			granted.Store(true)
		}
	}
	return p.granted.Load()
}

// take gives the room to a response; nil: it needs none.
func (p *pushRoom) take() *place {
	turn := p.turn
	if p.turn = nil; turn == nil {
		return nil
	}
	return p.st.keep(turn)
}

// drop gives the room back.
func (p *pushRoom) drop() { p.st.release(p.take()) }

// pushSize estimates the size, in bytes, of hdsd's next own response if that has to have every
// resource. Other responses are small. The caller holds mu.
func (st *stream) pushSize() (size int) {
	for _, l := range st.ledgers {
		if l == nil || l.key.splits() || len(l.dirty) == 0 || len(l.offers) > 0 || l.partial {
			continue
		}
		for s := range l.holdings.all() {
			size += len(s.item.wire)
		}
	}
	return size
}
