package coordinator

import (
	"net/http"

	"hdsd/internal/origin"
	"hdsd/internal/rest"
)

// guarded refuses requests that a web page of another site may have made, for all paths and methods. It sets
// the headers that tell browsers how to treat a response.
func (c *Coordinator) guarded(next http.Handler) http.Handler {
	hosts := origin.Hosts(c.started.GetHttp().GetAllowedHosts())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin.SetHeaders(w.Header())
		err := hosts.Check(r)
		if err == nil {
			next.ServeHTTP(w, r)
			return
		}
		c.log.Warn().Str("event", "http_refused").Str("client", r.RemoteAddr).Err(err).Msg("refused an HTTP request that a web page may have made")
		c.servers.calls.counted("refused", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close") // drainRefused removes it after reading the body
			rest.WriteError(w, err)
		})).ServeHTTP(w, r)
	})
}
