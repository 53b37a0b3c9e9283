package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/rest"
	"hdsd/peer"
)

const (
	// WatchPath is the REST path of watches.
	WatchPath = "/v1/watch"

	// lastEvent is the header by which a browser resumes.
	lastEvent = "Last-Event-ID"

	// heartbeat is the maximum silence of an event stream.
	heartbeat = 15 * time.Second
)

// withWatch serves server-sent events, and passes everything else to next.
func (s *Service) withWatch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == WatchPath {
			s.serveEvents(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveEvents serves Watch as server-sent events. The token is the event's id.
func (s *Service) serveEvents(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	unhealthy, _ := strconv.ParseBool(values.Get("unhealthy")) // checked before
	query, err := watchQuery(&hdsdv1.WatchRequest{
		Cluster: values.Get("cluster"), Address: values.Get("address"), Unhealthy: unhealthy, Locality: values.Get("locality"), By: values.Get("by"),
	})
	if err != nil {
		rest.WriteError(w, err)
		return
	}
	resume := ""
	for _, name := range []string{"resumeToken", "resume_token"} {
		if token := values.Get(name); token != "" {
			query.Token, resume = token, name
		}
	}
	if last := r.Header.Get(lastEvent); last != "" {
		query.Token, resume = last, lastEvent
	}
	events := &eventWriter{response: w, control: http.NewResponseController(w)}
	ctx := peer.With(r.Context(), peer.OfRequest(r))
	watch, err := s.watch(ctx, query, func() { _ = events.control.SetWriteDeadline(time.Now().Add(time.Second)) })
	if err != nil {
		rest.WriteError(w, watchError(err, resume))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")       // keeps proxies from buffering events
	w.Header().Set("Transfer-Encoding", "identity") // the end of the connection ends the watch: chunks would triple the writes
	events.quiet.begin(watch)
	defer func() { events.quiet.end() }()
	for err = events.write(nil); err == nil; { // tells the client at once that the watch has started
		err = events.next(watch)
	}
	watch.end(err)
}

// eventWriter writes server-sent events.
type eventWriter struct {
	response http.ResponseWriter
	control  *http.ResponseController
	quiet    silence
	takes    appetite
	deadline time.Time // deadline for the client to read pending writes
}

// silence is a context that ends when a heartbeat is due. Writes do not renew it: that would
// cost more than the wait itself.
type silence struct {
	context.Context
	end context.CancelFunc
}

func (s *silence) begin(ctx context.Context) {
	if s.end != nil {
		s.end()
	}
	s.Context, s.end = context.WithTimeout(ctx, heartbeat)
}

// next waits for events and writes them.
func (e *eventWriter) next(w *watching) error {
	batch, err := w.Next(e.quiet.Context, e.takes.changes())
	var text []byte
	switch {
	case err == nil:
		text, err = batch.Text()
	case w.Err() != nil:
		if err = w.reason(w.Err()); errors.Is(err, w.Err()) {
			return err // the client has gone
		}
	case errors.Is(err, context.DeadlineExceeded):
		e.quiet.begin(w)
		text, err = []byte(": heartbeat\n\n"), nil
	}
	if err != nil { // The client has the token of the last event.
		return errors.Join(err, e.write(appendEvent(nil, "error", "", rest.ErrorText(grpcError(err)))))
	}
	end, err := w.turn()
	if err != nil {
		return nil //nolint:nilerr // the next step says why it ends
	}
	defer end()
	return e.write(text)
}

// write sends text. The client has to read it within deafAfter, or a second more.
func (e *eventWriter) write(text []byte) error {
	began := time.Now()
	if e.deadline.Before(began.Add(deafAfter)) {
		e.deadline = began.Add(deafAfter + time.Second) // for the writes of the next second, too
		_ = e.control.SetWriteDeadline(e.deadline)      // without deadlines, the server's own applies
	}
	if _, err := e.response.Write(text); err != nil {
		return err
	}
	if err := e.control.Flush(); err != nil {
		return err
	}
	now := time.Now()
	if now.After(e.deadline) { // it has failed, but not every wrapper of a response says so
		return errDeaf
	}
	e.takes.record(len(text), now.Sub(began))
	return nil
}

// appendEvent frames an event.
func appendEvent(buffer []byte, name, token string, text []byte) []byte {
	buffer = fmt.Appendf(buffer, "event: %s\n", name)
	if token != "" {
		buffer = fmt.Appendf(buffer, "id: %s\n", token)
	}
	return fmt.Appendf(buffer, "data: %s\n\n", text)
}
