package api

import (
	"context"
	"fmt"
	"mime"
	"net/http"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/peer"
)

const (
	// FreezePath is the REST path for freezing.
	FreezePath = "/v1/freeze"

	// frozenHeader is in each response below /v1/ while hdsd is frozen.
	frozenHeader = "X-Hdsd-Frozen"

	// maxBody is the size limit of a request that changes something, in bytes.
	maxBody = 64 << 10
)

// Handler serves the service as REST.
func (c *Control) Handler() (http.Handler, error) {
	mux := newGateway()
	if err := hdsdv1.RegisterControlHandlerServer(context.Background(), mux, c); err != nil {
		return nil, fmt.Errorf("serving REST: %w", err)
	}
	return identified(bounded(checkParameters(mux))), nil
}

// Mark adds frozenHeader to responses while hdsd is frozen, and forbids storing them: they are
// for one caller and one moment.
func (c *Control) Mark(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if frozen := c.controller.Frozen(); frozen != nil {
			w.Header().Set(frozenHeader, mime.QEncoding.Encode("utf-8", frozen.String()))
		}
		next.ServeHTTP(w, r)
	})
}

// identified puts the caller into the context of a request, for the audit.
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(peer.With(r.Context(), peer.OfRequest(r))))
	})
}

// bounded bounds the size of requests.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}
