package etcd_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hdsd/log/etcd"
	server "hdsd/test/etcd"
)

// patience is longer than any wait of a test that passes.
const patience = time.Minute

const prefix = "/hdsd-test"

// open starts a replica's session, which ends with the test.
func open(t testing.TB, id string, adapt func(*etcd.Options), servers ...*server.Server) *etcd.Client {
	t.Helper()
	options := etcd.Options{
		Prefix: prefix, ID: id, Address: id + ":18100", Version: "test", Started: time.Now(), TTL: time.Second,
		Log: zerolog.New(zerolog.NewTestWriter(t)),
	}
	for _, s := range servers {
		options.Endpoints = append(options.Endpoints, s.URL)
	}
	if adapt != nil {
		adapt(&options)
	}
	client, err := etcd.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// limited is a context that ends a test that hangs.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func join(t testing.TB, client *etcd.Client, fleet string, cursor uint64) *etcd.Log {
	t.Helper()
	log, err := client.Join(limited(t), fleet, cursor)
	if err != nil {
		status, _ := client.Status()
		t.Fatalf("join: %v; %+v", err, status)
	}
	return log
}

func campaign(t testing.TB, log *etcd.Log) int64 {
	t.Helper()
	epoch, err := log.Campaign(limited(t))
	if err != nil {
		var stacks bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		t.Fatalf("campaign: %v\n%s", err, stacks.String())
	}
	return epoch
}

func commit(t testing.TB, log *etcd.Log, epoch int64, from, to uint64) {
	t.Helper()
	for sequence := from; sequence <= to; sequence++ {
		if err := log.Commit(limited(t), epoch, sequence, payload(sequence)); err != nil {
			t.Fatal(err)
		}
	}
}

func payload(sequence uint64) []byte { return fmt.Appendf(nil, "payload %d", sequence) }

// until waits for a value that changes.
func until[T any](t testing.TB, get func() (T, <-chan struct{}), wanted func(T) bool) T {
	t.Helper()
	ctx := limited(t)
	for {
		value, changed := get()
		if wanted(value) {
			return value
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("after %v there still is %+v", patience, value)
		}
	}
}

// reader follows a log from a cursor until the test ends, and keeps what it reads.
type reader struct {
	mu      sync.Mutex
	entries []etcd.Entry
	news    chan struct{} // closed by the next entry or the end
	err     error
	ended   bool
}

func follow(t testing.TB, log *etcd.Log, after uint64) *reader {
	r := &reader{news: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := log.Follow(ctx, etcd.Position{Sequence: after}, func(e etcd.Entry) error {
			r.tell(func() { r.entries = append(r.entries, e) })
			return nil
		})
		r.tell(func() { r.err, r.ended = err, true })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

func (r *reader) tell(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	close(r.news)
	r.news = make(chan struct{})
}

func (r *reader) get() (state, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return state{slices.Clip(r.entries), r.err, r.ended}, r.news
}

type state struct {
	Entries []etcd.Entry
	Err     error
	Ended   bool
}

// head is the last sequence that was read.
func (s state) head() uint64 {
	if len(s.Entries) == 0 {
		return 0
	}
	return s.Entries[len(s.Entries)-1].Sequence
}

// reads waits until a reader has all up to a sequence, and checks each entry.
func (r *reader) reads(t testing.TB, after, head uint64) {
	t.Helper()
	got := until(t, r.get, func(s state) bool { return s.Ended || s.head() >= head })
	if got.Err != nil {
		t.Fatalf("following ended: %v", got.Err)
	}
	for i, e := range got.Entries {
		if want := after + 1 + uint64(i); e.Sequence != want || string(e.Payload) != string(payload(want)) {
			t.Fatalf("entry %d is %d: %q", want, e.Sequence, e.Payload)
		}
	}
	if got.head() != head {
		t.Fatalf("read up to %d, not %d", got.head(), head)
	}
}

// fails waits until a reader ends with an error.
func (r *reader) fails(t testing.TB) error {
	t.Helper()
	return until(t, r.get, func(s state) bool { return s.Ended }).Err
}
