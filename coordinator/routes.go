package coordinator

import "net/http"

// routes is a mux that knows its patterns: a test holds that access has a role for
// each.
type routes struct {
	*http.ServeMux
	patterns []string
}

// Handle registers a handler for a pattern.
func (r *routes) Handle(pattern string, handler http.Handler) {
	r.patterns = append(r.patterns, pattern)
	r.ServeMux.Handle(pattern, handler)
}

// HandleFunc registers a function for a pattern.
func (r *routes) HandleFunc(pattern string, handle func(http.ResponseWriter, *http.Request)) {
	r.Handle(pattern, http.HandlerFunc(handle))
}
