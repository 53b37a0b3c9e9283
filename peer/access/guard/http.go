package guard

import (
	"errors"
	"net/http"

	"hdsd/internal/rest"
	"hdsd/peer"
	"hdsd/peer/access"
)

// Handler admits requests to next; mutual means that its server demands client certificates.
func (g *Guard) Handler(mutual bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		facts := access.Facts{Caller: peer.OfRequest(r), Mutual: mutual}
		c, err := g.enter(r.Context(), r.Method+" "+r.URL.Path, access.OfRequest(r.Method, r.URL.Path), facts, bearer(r.Header.Values("Authorization")))
		if err != nil {
			w.Header().Set("Connection", "close") // unless the server reads the body first
			if denied := (*access.Denied)(nil); errors.As(err, &denied) && denied.Unknown {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			rest.WriteError(w, err)
			return
		}
		ctx, leave := c.follow(c.context(r.Context()))
		defer leave()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
