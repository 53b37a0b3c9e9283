package coordinator

import (
	"net/http"

	"hdsd/internal/origin"
	"hdsd/internal/rest"
)

// guarded refuses what a web page of another site may have asked for, on every path and
// by every method, and says with each answer what a browser may do with it.
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
			w.Header().Set("Connection", "close") // unless patiently reads the body
			rest.WriteError(w, err)
		})).ServeHTTP(w, r)
	})
}
