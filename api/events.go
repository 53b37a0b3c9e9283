package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/rest"
)

const (
	watchPath = "/v1/watch"

	// lastEvent is the header with which a browser resumes on its own.
	lastEvent = "Last-Event-ID"

	// heartbeat is the maximum silence of an event stream.
	heartbeat = 15 * time.Second

	// writeTimeout is how long to wait for a client that takes nothing.
	writeTimeout = 30 * time.Second

	// chunk is the number of bytes after which the buffer is written, so that many
	// clients that are far behind do not cost much memory.
	chunk = 32 << 10
)

// withWatch serves server-sent events, and everything else by next.
func (s *Service) withWatch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == watchPath {
			s.serveEvents(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveEvents serves Watch as server-sent events. The token is the event's id.
func (s *Service) serveEvents(w http.ResponseWriter, r *http.Request) {
	given := r.URL.Query()
	query := WatchQuery{Cluster: given.Get("cluster"), Address: given.Get("address")}
	from := ""
	for _, name := range []string{"resumeToken", "resume_token"} {
		if token := given.Get(name); token != "" {
			query.Token, from = token, name
		}
	}
	if last := r.Header.Get(lastEvent); last != "" {
		query.Token, from = last, lastEvent
	}
	watcher, err := s.backend.Watch(r.Context(), query)
	if err != nil {
		rest.WriteError(w, watchError(err, from))
		return
	}
	defer watcher.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Accel-Buffering", "no") // keeps proxies from buffering events
	events := &eventWriter{to: w, control: http.NewResponseController(w)}
	defer func() { _ = events.control.SetWriteDeadline(time.Time{}) }() // the connection may serve further requests
	for err = events.flush(); err == nil; {                             // tells the client at once that the watch has started
		err = events.next(r.Context(), watcher)
	}
}

// eventWriter writes server-sent events.
type eventWriter struct {
	to      http.ResponseWriter
	control *http.ResponseController
	buffer  bytes.Buffer
}

// next waits for events and writes them.
func (e *eventWriter) next(ctx context.Context, watcher Watcher) error {
	waiting, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	sights, err := watcher.Next(waiting)
	switch {
	case err == nil:
		for i := 0; i < len(sights) && err == nil; i++ {
			if err = e.put(&sights[i]); err == nil && e.buffer.Len() >= chunk {
				err = e.flush()
			}
		}
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		e.buffer.WriteString(": heartbeat\n\n")
		err = nil
	}
	if err != nil {
		e.fail(err)
	}
	return errors.Join(err, e.flush())
}

func (e *eventWriter) put(s *Sight) error {
	switch {
	case s.Endpoint != nil:
		text, err := compactJSON(endpointMessage(*s.Endpoint))
		e.event("endpoint", s.Token, text)
		return err
	case s.Change != nil:
		_, event, err := s.Change.encoded()
		e.buffer.Write(event)
		return err
	}
	e.event("synced", s.Token, []byte("{}"))
	return nil
}

func (e *eventWriter) event(name, token string, text []byte) {
	e.buffer.Write(appendEvent(e.buffer.AvailableBuffer(), name, token, text))
}

// appendEvent frames an event.
func appendEvent(to []byte, name, token string, text []byte) []byte {
	to = fmt.Appendf(to, "event: %s\n", name)
	if token != "" {
		to = fmt.Appendf(to, "id: %s\n", token)
	}
	return fmt.Appendf(to, "data: %s\n\n", text)
}

// fail writes why the stream ends. The client has the token of the last event.
func (e *eventWriter) fail(err error) {
	e.event("error", "", rest.ErrorText(grpcError(err)))
}

// flush sends the buffer, for a bounded time.
func (e *eventWriter) flush() error {
	// If deadlines are not supported, the server's own applies.
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := e.to.Write(e.buffer.Bytes()); err != nil {
		return err
	}
	e.buffer.Reset()
	return e.control.Flush()
}

// compactJSON returns JSON on one line. protojson varies its white space on purpose;
// programs want it stable.
func compactJSON(m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	err = json.Compact(&line, text)
	return line.Bytes(), err
}
