package scale

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"sync/atomic"
)

// seed makes the digests of all followers comparable.
var seed = maphash.MakeSeed()

// follower watches by server-sent events, on a connection of its own.
type follower struct {
	url     string
	total   int // how many transitions it wants
	leaveAt int // after so many it connects again, once; 0: never
	synced  func()

	seen  []uint64     // digest of each transition, in order
	count atomic.Int64 // of them
	last  string       // id of the last event
	bytes int64
}

var errEnough = errors.New("seen enough")

// follow takes events until it has all it wants.
func (f *follower) follow(ctx context.Context) error {
	for {
		err := f.connection(ctx)
		if !errors.Is(err, errEnough) {
			return err
		}
		if len(f.seen) >= f.total {
			return nil
		}
	}
}

func (f *follower) connection(ctx context.Context) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url, nil)
	if err != nil {
		return err
	}
	if f.last != "" {
		request.Header.Set("Last-Event-ID", f.last)
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return f.events(bufio.NewReaderSize(response.Body, 32<<10))
}

// events reads until it has had enough of this connection.
func (f *follower) events(from *bufio.Reader) error {
	var name string
	for {
		line, err := from.ReadSlice('\n')
		if err != nil {
			return err
		}
		f.bytes += int64(len(line))
		field, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(": "))
		switch string(field) {
		case "event":
			name = string(value)
		case "id":
			f.last = string(value)
		case "data":
			if err := f.take(name, value); err != nil {
				return err
			}
		}
	}
}

func (f *follower) take(name string, data []byte) error {
	switch name {
	case "endpoint":
	case "synced":
		if f.last == "" || len(f.seen) > 0 {
			return errors.New("synced again, or without an id")
		}
		f.synced()
	case "transition":
		f.seen = append(f.seen, maphash.Bytes(seed, data))
		f.count.Add(1)
		if len(f.seen) >= f.total {
			return errEnough
		}
		if len(f.seen) == f.leaveAt {
			return errEnough
		}
	default:
		return fmt.Errorf("event %q: %s", name, data)
	}
	return nil
}
