package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/caller"
	"hdsd/internal/rest"
)

const (
	// WatchPath is the REST path of watches.
	WatchPath = "/v1/watch"

	// lastEvent is the header with which a browser resumes on its own.
	lastEvent = "Last-Event-ID"

	// heartbeat is the maximum silence of an event stream.
	heartbeat = 15 * time.Second
)

// withWatch serves server-sent events, and everything else by next.
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
	given := r.URL.Query()
	unhealthy, _ := strconv.ParseBool(given.Get("unhealthy")) // checked before
	filter, err := filterOf(&hdsdv1.WatchRequest{Unhealthy: unhealthy, Locality: given.Get("locality")})
	if err != nil {
		rest.WriteError(w, err)
		return
	}
	query := WatchQuery{Cluster: given.Get("cluster"), Address: given.Get("address"), Filter: filter}
	from := ""
	for _, name := range []string{"resumeToken", "resume_token"} {
		if token := given.Get(name); token != "" {
			query.Token, from = token, name
		}
	}
	if last := r.Header.Get(lastEvent); last != "" {
		query.Token, from = last, lastEvent
	}
	events := &eventWriter{to: w, control: http.NewResponseController(w)}
	ctx := caller.With(r.Context(), caller.OfRequest(r))
	watch, err := s.watch(ctx, query, func() { _ = events.control.SetWriteDeadline(time.Now().Add(time.Second)) })
	if err != nil {
		rest.WriteError(w, watchError(err, from))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Accel-Buffering", "no")                           // keeps proxies from buffering events
	defer func() { _ = events.control.SetWriteDeadline(time.Time{}) }() // the connection may serve further requests
	for err = events.write(nil); err == nil; {                          // tells the client at once that the watch has started
		err = events.next(watch)
	}
	watch.end(err)
}

// eventWriter writes server-sent events.
type eventWriter struct {
	to      http.ResponseWriter
	control *http.ResponseController
}

// next waits for events and writes them.
func (e *eventWriter) next(w *watching) error {
	waiting, cancel := context.WithTimeout(w, heartbeat)
	defer cancel()
	batch, err := w.Next(waiting)
	var text []byte
	switch {
	case err == nil:
		text, err = batch.Text()
	case w.Err() != nil:
		if err = w.reason(w.Err()); errors.Is(err, w.Err()) {
			return err // the client has gone
		}
	case errors.Is(err, context.DeadlineExceeded):
		text, err = []byte(": heartbeat\n\n"), nil
	}
	if err != nil { // The client has the token of the last event.
		return errors.Join(err, e.write(appendEvent(nil, "error", "", rest.ErrorText(grpcError(err)))))
	}
	end, err := w.service.turns.take(w)
	if err != nil {
		return nil //nolint:nilerr // the next step says why it ends
	}
	defer end()
	return e.write(text)
}

// write sends text, for a bounded time.
func (e *eventWriter) write(text []byte) error {
	deadline := time.Now().Add(deafAfter)
	_ = e.control.SetWriteDeadline(deadline) // without deadlines, the server's own applies
	if _, err := e.to.Write(text); err != nil {
		return err
	}
	if err := e.control.Flush(); err != nil {
		return err
	}
	if time.Now().After(deadline) { // it has failed, but not every wrapper of a response says so
		return errDeaf
	}
	return nil
}

// appendEvent frames an event.
func appendEvent(to []byte, name, token string, text []byte) []byte {
	to = fmt.Appendf(to, "event: %s\n", name)
	if token != "" {
		to = fmt.Appendf(to, "id: %s\n", token)
	}
	return fmt.Appendf(to, "data: %s\n\n", text)
}
