package api

import (
	"context"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/rest"
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
	return guardChanges(checkParameters(mux)), nil
}

// MarkFrozen adds frozenHeader to responses while hdsd is frozen.
func (c *Control) MarkFrozen(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if frozen := c.controller.Frozen(); frozen != nil {
			w.Header().Set(frozenHeader, mime.QEncoding.Encode("utf-8", frozen.String()))
		}
		next.ServeHTTP(w, r)
	})
}

// guardChanges keeps web pages from changing anything through the browser of a person
// who can reach hdsd:
//   - A form cannot send JSON.
//   - The Origin header shows a script of another site.
//   - The Host header shows a site whose name was made to resolve to hdsd.
func guardChanges(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		changing := r.Method != http.MethodGet && r.Method != http.MethodHead
		switch {
		case !changing:
		case origins.Check(r) != nil || fromBrowser(r) && !ownName(r):
			rest.WriteError(w, status.Error(codes.PermissionDenied, "a web page of another site cannot change anything here"))
			return
		case r.Method == http.MethodPost && !isJSON(r):
			rest.WriteError(w, rest.Errorf(http.StatusUnsupportedMediaType, codes.InvalidArgument, "a change is asked for with Content-Type: application/json"))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

func fromBrowser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

// ownName reports whether the Host of a request can only be hdsd's own: a certificate
// has it, or no stranger can own it.
func ownName(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(host)
	return r.TLS != nil || host == "localhost" || err == nil
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}
