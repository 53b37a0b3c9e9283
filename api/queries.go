package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/rest"
	"hdsd/peer"
)

// queries is the Query service within its Limits.
type queries struct{ *Service }

// ListEndpoints implements hdsdv1.QueryServer.
func (s queries) ListEndpoints(ctx context.Context, r *hdsdv1.ListEndpointsRequest) (*hdsdv1.ListEndpointsResponse, error) {
	return answer(ctx, s.Service, r.GetPageSize(), r, s.Service.ListEndpoints, func(a *hdsdv1.ListEndpointsResponse) int { return len(a.GetEndpoints()) })
}

// ListTransitions implements hdsdv1.QueryServer.
func (s queries) ListTransitions(ctx context.Context, r *hdsdv1.ListTransitionsRequest) (*hdsdv1.ListTransitionsResponse, error) {
	return answer(ctx, s.Service, r.GetPageSize(), r, s.Service.ListTransitions, func(a *hdsdv1.ListTransitionsResponse) int { return len(a.GetTransitions()) })
}

// ListAvailability implements hdsdv1.QueryServer.
func (s queries) ListAvailability(ctx context.Context, r *hdsdv1.ListAvailabilityRequest) (*hdsdv1.ListAvailabilityResponse, error) {
	rows := r.GetPageSize()
	if (r.GetBy() != "" || r.GetSlo() != "") && rows >= 0 {
		rows = max(rows, MaxPageSize) // it reads all rows before it returns some
	}
	return answer(ctx, s.Service, rows, r, s.Service.ListAvailability, func(a *hdsdv1.ListAvailabilityResponse) int { return len(a.GetAvailability()) })
}

// ListIncidents implements hdsdv1.QueryServer.
func (s queries) ListIncidents(ctx context.Context, r *hdsdv1.ListIncidentsRequest) (*hdsdv1.ListIncidentsResponse, error) {
	return answer(ctx, s.Service, r.GetPageSize(), r, s.Service.ListIncidents, func(a *hdsdv1.ListIncidentsResponse) int { return len(a.GetIncidents()) })
}

// ListEvents implements hdsdv1.QueryServer.
func (s queries) ListEvents(ctx context.Context, r *hdsdv1.ListEventsRequest) (*hdsdv1.ListEventsResponse, error) {
	return answer(ctx, s.Service, r.GetPageSize(), r, s.Service.ListEvents, func(a *hdsdv1.ListEventsResponse) int { return len(a.GetEvents()) })
}

// ListClusters implements hdsdv1.QueryServer.
func (s queries) ListClusters(ctx context.Context, r *hdsdv1.ListClustersRequest) (*hdsdv1.ListClustersResponse, error) {
	return answer(ctx, s.Service, r.GetPageSize(), r, s.Service.ListClusters, func(a *hdsdv1.ListClustersResponse) int { return len(a.GetClusters()) })
}

// ListCheckers implements hdsdv1.QueryServer.
func (s queries) ListCheckers(ctx context.Context, r *hdsdv1.ListCheckersRequest) (*hdsdv1.ListCheckersResponse, error) {
	return answer(ctx, s.Service, r.GetPageSize(), r, s.Service.ListCheckers, func(a *hdsdv1.ListCheckersResponse) int { return len(a.GetCheckers()) })
}

// ListClients implements hdsdv1.QueryServer.
func (s queries) ListClients(ctx context.Context, r *hdsdv1.ListClientsRequest) (*hdsdv1.ListClientsResponse, error) {
	return answer(ctx, s.Service, r.GetPageSize(), r, s.Service.ListClients, func(a *hdsdv1.ListClientsResponse) int { return len(a.GetClients()) })
}

// delivered serves queries over HTTP. Each one counts until its answer is sent. Its turn ends
// when the answer is encoded: it must not depend on the caller's reading.
func delivered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		d := &delivery{stop: func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) }} // without deadlines, the answer is sent all the same
		defer d.finish()
		ctx := peer.With(r.Context(), peer.OfRequest(r))
		w.Header().Add("Vary", "Accept-Encoding")
		response := &encoded{ResponseWriter: w, delivery: d, zip: rest.TakesGzip(r)}
		next.ServeHTTP(response, r.WithContext(withDelivery(ctx, d)))
		if response.sent {
			keepText(d.text)
		}
	})
}

// encoded is a response that ends the turn of its query with its text, which comes as a whole.
// It compresses a long text.
type encoded struct {
	http.ResponseWriter
	delivery *delivery
	zip      bool // the client accepts gzip, and the header is not sent yet
	written  bool
	sent     bool // the text is no longer in use; after an error, HTTP/2 may still read it
}

// WriteHeader implements http.ResponseWriter.
func (e *encoded) WriteHeader(code int) {
	e.zip = false // errors write their header before their text, which is short
	e.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (e *encoded) Write(text []byte) (int, error) {
	if e.written {
		return e.ResponseWriter.Write(text)
	}
	e.written = true
	send := text
	if e.zip && len(text) >= smallAnswer {
		short, err := zipped(text)
		if err != nil {
			return 0, err
		}
		e.Header().Set("Content-Encoding", "gzip")
		send = short
	}
	if e.Header().Get("Transfer-Encoding") == "" { // else trailers follow it
		e.Header().Set("Content-Length", strconv.Itoa(len(send)))
	}
	e.delivery.turn.Release()
	if _, err := e.ResponseWriter.Write(send); err != nil {
		return 0, err
	}
	e.sent = true
	return len(text), nil
}

// Unwrap lets http.ResponseController find the connection.
func (e *encoded) Unwrap() http.ResponseWriter { return e.ResponseWriter }
